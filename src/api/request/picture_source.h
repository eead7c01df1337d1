// PictureSource: where a request says that a picture is, or a frame of a video: in the request
// itself, at a web address, or in a file of the server's machine. Nothing is read or fetched here.
//
// Threads: a plain value; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::api {

// Of a video's frames, which follow each other in the request's list.
struct FramePlace {
  int32_t index = 0;
  int32_t count = 0;   // Of all its frames.
  double rate = 0;     // Frames a second.
  std::string part{};  // Names the video in errors.
};

struct PictureSource {
  enum class Kind : uint8_t { kBase64, kRemote, kFile };

  Kind kind = Kind::kBase64;
  std::string text{};    // Digits, an address, or a path.
  std::string field{};   // Names it in errors: `messages[0].content[1].image_url`.
  bool at_most_512 = false;  // OpenAI's detail "low": in at most 512 x 512 pixels.
  std::optional<FramePlace> frame{};  // It is one of a video.
};

// An error about a picture, with the word by which OpenAI's clients know it: all are 400s, for the
// body as such is neither too large nor of a wrong type.
tl::unexpected<Error> picture_error(const std::string& field, const std::string& what,
                                    std::string kind);
// The same of an error of a decoder, a processor or a file.
tl::unexpected<Error> picture_error(const std::string& field, const Error& error);

// Of an address: data:image/...;base64,..., http(s)://..., file:...
Result<PictureSource> picture_at(const std::string& field, std::string_view url);
// Of the digits alone.
PictureSource picture_of_base64(const std::string& field, std::string_view digits);

}  // namespace weir::api
