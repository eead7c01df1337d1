#include "api/access/media_type.h"

#include <string>
#include <string_view>

#include "base/ascii.h"
#include "base/concat.h"

namespace weir::api {

namespace {

constexpr std::string_view kJson = "application/json";
constexpr size_t kShownBytes = 128;  // Of the header, in a message.

// Without parameters such as "; charset=utf-8".
std::string_view media_type(const net::HttpRequest& request) {
  std::string_view type = request.header("content-type");
  type = type.substr(0, type.find(';'));
  while (type.ends_with(' ')) type.remove_suffix(1);
  return type;
}

bool is_of_browser(const net::HttpRequest& request) {
  return !request.header("origin").empty() || !request.header("sec-fetch-site").empty();
}

}  // namespace

bool is_json(const net::HttpRequest& request) {
  const std::string_view type = media_type(request);
  if (type.empty()) return !is_of_browser(request);
  constexpr std::string_view kSuffix = "+json";
  return equals_ignoring_case(type, kJson) ||
         (type.size() > kSuffix.size() &&
          equals_ignoring_case(type.substr(type.size() - kSuffix.size()), kSuffix));
}

bool says_json(const net::HttpRequest& request) {
  return equals_ignoring_case(media_type(request), kJson);
}

bool is_form(const net::HttpRequest& request) {
  return equals_ignoring_case(media_type(request), "multipart/form-data");
}

bool is_curls_default(const net::HttpRequest& request) {
  return equals_ignoring_case(media_type(request), "application/x-www-form-urlencoded") &&
         !is_of_browser(request);
}

Error wrong_media_type(const net::HttpRequest& request) {
  const std::string_view found = request.header("content-type");
  return {ErrorCode::kMediaType,
          concat({"Unsupported content type: expected application/json, found ",
                  found.empty() ? "none" : found.substr(0, kShownBytes), "."})};
}

Error wrong_form_type(const net::HttpRequest& request) {
  const std::string_view found = request.header("content-type");
  return {ErrorCode::kMediaType,
          concat({"Unsupported content type: expected multipart/form-data with the sound's file in "
                  "its part 'file', found ",
                  found.empty() ? "none" : found.substr(0, kShownBytes), "."})};
}

}  // namespace weir::api
