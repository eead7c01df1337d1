#include "api/request/media_source.h"

#include <algorithm>
#include <string>
#include <utility>

#include "api/request/json_fields.h"
#include "base/ascii.h"
#include "base/concat.h"

namespace weir::api {

namespace {

constexpr std::string_view kData = "data:", kFile = "file:", kHttp = "http://",
                           kHttps = "https://";
// A media type with its parameters; beyond it there are no more.
constexpr size_t kDataHeadMax = 256;

// What of a media type all of the medium's begin with.
std::string_view type_of(Medium medium) {
  return medium == Medium::kSound ? "audio/" : medium == Medium::kVideo ? "video/" : "image/";
}

// GIF is a picture's type, whether the picture moves or not.
bool is_type_of(Medium medium, std::string_view type) {
  return starts_with_ignoring_case(type, type_of(medium)) ||
         (medium == Medium::kVideo && starts_with_ignoring_case(type, "image/gif"));
}

std::string word(Medium medium, std::string_view before, std::string_view after) {
  return concat({before, medium_name(medium), after});
}

Result<MediaSource> of_data(Medium medium, const std::string& field, std::string_view rest) {
  const size_t comma = rest.substr(0, kDataHeadMax).find(',');
  constexpr std::string_view kBase64 = ";base64";
  const std::string_view head = rest.substr(0, std::min(comma, kDataHeadMax));
  const bool base64 = head.size() >= kBase64.size() &&
                      starts_with_ignoring_case(head.substr(head.size() - kBase64.size()), kBase64);
  if (comma == std::string_view::npos || !is_type_of(medium, head) || !base64)
    return media_error(medium, field,
                       concat({"expected data:", type_of(medium),
                               "TYPE;base64,DIGITS, found \"data:", shown(head), "\""}),
                       word(medium, "invalid_", "_url"));
  return media_of_base64(medium, field, rest.substr(comma + 1));
}

}  // namespace

std::string_view medium_name(Medium medium) {
  return medium == Medium::kSound ? "audio" : medium == Medium::kVideo ? "video" : "image";
}

tl::unexpected<Error> media_error(Medium medium, const std::string& field, const std::string& what,
                                  std::string kind) {
  return fail(ErrorCode::kInvalid,
              concat({"Invalid ", medium_name(medium), " in '", field, "': ", what, "."}), field,
              std::move(kind));
}

tl::unexpected<Error> media_error(Medium medium, const std::string& field, const Error& error) {
  if (!error.kind.empty() && error.code == ErrorCode::kInvalid)
    return media_error(medium, field, error.message, error.kind);
  switch (error.code) {
    case ErrorCode::kOverloaded:
    case ErrorCode::kCancelled:
    case ErrorCode::kContextLength:
      return tl::unexpected<Error>(error);
    case ErrorCode::kTooLarge:
      return media_error(medium, field, error.message, word(medium, "", "_too_large"));
    case ErrorCode::kMediaType:
    case ErrorCode::kUnsupported:
      return media_error(medium, field, error.message,
                         word(medium, "unsupported_", "_media_type"));
    default:
      return media_error(medium, field, error.message, word(medium, "", "_parse_error"));
  }
}

MediaSource media_of_base64(Medium medium, const std::string& field, std::string_view digits) {
  return {.medium = medium,
          .kind = MediaSource::Kind::kBase64,
          .text = std::string(digits),
          .field = field};
}

Result<MediaSource> media_at(Medium medium, const std::string& field, std::string_view url) {
  if (starts_with_ignoring_case(url, kData))
    return of_data(medium, field, url.substr(kData.size()));
  MediaSource source = {.medium = medium, .field = field};
  if (starts_with_ignoring_case(url, kHttps) || starts_with_ignoring_case(url, kHttp)) {
    source.kind = MediaSource::Kind::kRemote;
    source.text = url;
    return source;
  }
  if (starts_with_ignoring_case(url, kFile)) {
    source.kind = MediaSource::Kind::kFile;
    source.text = url.substr(kFile.size());
    return source;
  }
  return media_error(medium, field,
                     concat({"expected data:", type_of(medium),
                             "TYPE;base64,DIGITS, or an address that begins with https://, "
                             "http:// or file:, found \"",
                             shown(url), "\""}),
                     word(medium, "invalid_", "_url"));
}

Medium medium_of_address(std::string_view url) {
  if (starts_with_ignoring_case(url, kData)) {
    for (const Medium medium : {Medium::kVideo, Medium::kSound})
      if (starts_with_ignoring_case(url.substr(kData.size()), type_of(medium))) return medium;
    return Medium::kPicture;
  }
  url = url.substr(0, url.find_first_of("?#"));
  const auto ends_in = [&](std::string_view end) {
    return url.size() > end.size() &&
           starts_with_ignoring_case(url.substr(url.size() - end.size()), end);
  };
  for (const std::string_view end : {".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus"})
    if (ends_in(end)) return Medium::kSound;
  for (const std::string_view end : {".mp4", ".m4v", ".mov", ".webm", ".mkv"})
    if (ends_in(end)) return Medium::kVideo;
  return Medium::kPicture;
}

}  // namespace weir::api
