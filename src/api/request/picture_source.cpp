#include "api/request/picture_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/request/json_fields.h"
#include "base/ascii.h"
#include "base/concat.h"

namespace weir::api {

namespace {

constexpr std::string_view kExpected =
    "expected data:image/TYPE;base64,DIGITS, or an address that begins with https://, http:// or "
    "file:";
// A media type with its parameters; beyond it there are no more.
constexpr size_t kDataHeadMax = 256;

Result<PictureSource> of_data(const std::string& field, std::string_view rest) {
  const size_t comma = rest.substr(0, kDataHeadMax).find(',');
  constexpr std::string_view kBase64 = ";base64";
  const std::string_view head = rest.substr(0, std::min(comma, kDataHeadMax));
  const bool base64 = head.size() >= kBase64.size() &&
                      starts_with_ignoring_case(head.substr(head.size() - kBase64.size()), kBase64);
  if (comma == std::string_view::npos || !starts_with_ignoring_case(head, "image/") || !base64)
    return picture_error(field,
                         concat({"expected data:image/TYPE;base64,DIGITS, found \"data:",
                                 shown(head), "\""}),
                         "invalid_image_url");
  return picture_of_base64(field, rest.substr(comma + 1));
}

}  // namespace

tl::unexpected<Error> picture_error(const std::string& field, const std::string& what,
                                    std::string kind) {
  return fail(ErrorCode::kInvalid, concat({"Invalid image in '", field, "': ", what, "."}), field,
              std::move(kind));
}

tl::unexpected<Error> picture_error(const std::string& field, const Error& error) {
  if (!error.kind.empty() && error.code == ErrorCode::kInvalid)
    return picture_error(field, error.message, error.kind);
  switch (error.code) {
    case ErrorCode::kOverloaded:
    case ErrorCode::kCancelled:
    case ErrorCode::kContextLength:
      return tl::unexpected<Error>(error);
    case ErrorCode::kTooLarge:
      return picture_error(field, error.message, "image_too_large");
    case ErrorCode::kMediaType:
    case ErrorCode::kUnsupported:
      return picture_error(field, error.message, "unsupported_image_media_type");
    default:
      return picture_error(field, error.message, "image_parse_error");
  }
}

PictureSource picture_of_base64(const std::string& field, std::string_view digits) {
  return {.kind = PictureSource::Kind::kBase64, .text = std::string(digits), .field = field};
}

Result<PictureSource> picture_at(const std::string& field, std::string_view url) {
  constexpr std::string_view kData = "data:", kFile = "file:";
  if (starts_with_ignoring_case(url, kData)) return of_data(field, url.substr(kData.size()));
  if (starts_with_ignoring_case(url, "https://") || starts_with_ignoring_case(url, "http://"))
    return PictureSource{
        .kind = PictureSource::Kind::kRemote, .text = std::string(url), .field = field};
  if (starts_with_ignoring_case(url, kFile))
    return PictureSource{.kind = PictureSource::Kind::kFile,
                         .text = std::string(url.substr(kFile.size())),
                         .field = field};
  return picture_error(field, concat({kExpected, ", found \"", shown(url), "\""}),
                       "invalid_image_url");
}

}  // namespace weir::api
