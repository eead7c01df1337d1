// MediaSource: where a request says that a picture, a frame of a video, a video's file or a sound is:
// in the request itself, at a web address, or in a file of the server's machine. Nothing is read or
// fetched here.
//
// Threads: a plain value; pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::api {

// Of a source: a picture, which a frame of a video is too, a file of a video, or a sound.
enum class Medium : uint8_t { kPicture, kVideo, kSound };

// As errors name them: "image", "video", "audio".
std::string_view medium_name(Medium medium);

// Of a video's frames, which follow each other in the request's list.
struct FramePlace {
  int32_t index = 0;
  int32_t count = 0;   // Of all its frames.
  double rate = 0;     // Frames a second.
  std::string part{};  // Names the video in errors.
};

struct MediaSource {
  enum class Kind : uint8_t { kBase64, kRemote, kFile };

  Medium medium = Medium::kPicture;
  Kind kind = Kind::kBase64;
  std::string text{};    // Digits, an address, or a path.
  std::string field{};   // Names it in errors: `messages[0].content[1].image_url`.
  bool at_most_512 = false;  // OpenAI's detail "low": in at most 512 x 512 pixels.
  std::optional<FramePlace> frame{};  // It is one of a video.
  // Of a video's file: frames of it a second that are to be seen, where the request says so.
  std::optional<double> rate{};
};

// An error about a picture, a video or a sound, with the word by which OpenAI's clients know it: all are
// 400s, for the body as such is neither too large nor of a wrong type.
tl::unexpected<Error> media_error(Medium medium, const std::string& field, const std::string& what,
                                  std::string kind);
// The same of an error of a decoder, a processor, a front end or a file.
tl::unexpected<Error> media_error(Medium medium, const std::string& field, const Error& error);

// Of an address: data:image/...;base64,..., data:video/... or data:audio/..., http(s)://...,
// file:...
Result<MediaSource> media_at(Medium medium, const std::string& field, std::string_view url);
// Of the digits alone.
MediaSource media_of_base64(Medium medium, const std::string& field, std::string_view digits);
// What an address is of, where only that says it: its media type, or how its name ends. A picture
// where neither says anything of a video or of sound.
Medium medium_of_address(std::string_view url);

}  // namespace weir::api
