#include "api/anthropic/message_error.h"

#include "api/exchange/api_error.h"
#include "base/json.h"

namespace weir::api::anthropic {

namespace {

// Every path of the API is answered without its version, too.
constexpr std::string_view kVersion = "/v1", kMessages = "/messages", kModels = "/models";
constexpr int kOverloaded = 529;

bool is_below(std::string_view root, std::string_view path) {
  if (path.starts_with(kVersion)) path.remove_prefix(kVersion.size());
  return path.starts_with(root) && (path.size() == root.size() || path[root.size()] == '/');
}

std::string_view type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 504:
      return "timeout_error";
    case kOverloaded:
      return "overloaded_error";
    default:
      return status >= 500 ? "api_error" : "invalid_request_error";
  }
}

}  // namespace

bool is_messages_path(std::string_view path) { return is_below(kMessages, path); }

bool speaks_anthropic(const net::HttpRequest& request) {
  return is_messages_path(request.path) ||
         (is_below(kModels, request.path) && !request.header("anthropic-version").empty());
}

int http_status(const Error& error) {
  if (error.kind == "request_timeout") return 504;
  switch (error.code) {
    case ErrorCode::kOverloaded:
      return error.kind == "rate_limit_exceeded" ? 429 : kOverloaded;
    case ErrorCode::kUnavailable:
    case ErrorCode::kCapacity:
      return kOverloaded;
    default:
      return api::http_status(error.code);
  }
}

std::string error_json(const Error& error, std::string_view request_id) {
  std::string_view message = error.message;
  // The message has a wording for every protocol, this one's last.
  if (const size_t begin = message.rfind(kPromptTooLong);
      error.code == ErrorCode::kContextLength && begin != std::string_view::npos)
    message.remove_prefix(begin);
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("type", "error").key("error").begin_object();
  json.field("type", type_of(http_status(error))).field("message", message).end_object();
  if (!request_id.empty()) json.field("request_id", request_id);
  json.end_object();
  return out;
}

namespace {

class MessageErrors final : public ErrorShape {
 public:
  int http_status(const Error& error) const override { return anthropic::http_status(error); }
  std::string json(const Error& error, std::string_view request_id) const override {
    return error_json(error, request_id);
  }
  std::string event(const Error& error) const override {
    return "event: error\ndata: " + error_json(error, {}) + "\n\n";
  }
  // Anthropic's clients look for it by its own name.
  std::string_view id_header() const override { return "request-id"; }
};

}  // namespace

const ErrorShape& message_errors() {
  static const MessageErrors errors;
  return errors;
}

}  // namespace weir::api::anthropic
