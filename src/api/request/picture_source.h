// PictureSource: where a request says that a picture is: in the request itself, at a web address, or
// in a file of the server's machine. Nothing is read or fetched here.
//
// Threads: a plain value; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::api {

struct PictureSource {
  enum class Kind : uint8_t { kBase64, kRemote, kFile };

  Kind kind = Kind::kBase64;
  std::string text{};    // Digits, an address, or a path.
  std::string field{};   // Names it in errors: `messages[0].content[1].image_url`.
  bool at_most_512 = false;  // OpenAI's detail "low": in at most 512 x 512 pixels.
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
