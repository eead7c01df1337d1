// Charsmap: SentencePiece's compiled normalisation rules (`precompiled_charsmap`): a double-array
// trie from strings to their replacements.
//
// Threads: immutable after parse().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::text {

class Charsmap {
 public:
  static Result<Charsmap> parse(std::string_view base64);

  // Appends the normal form of `text`; stops once `out` is longer than `bytes_max`.
  // REQUIRES: valid UTF-8.
  void append_normalised(std::string& out, std::string_view text, size_t bytes_max) const;

 private:
  // The replacement of the shortest rule that `text` begins with (and so, as the crate has it, of
  // the whole of `text`).
  std::optional<std::string_view> replacement(std::string_view text) const;

  std::vector<uint32_t> units_;  // darts-clone's.
  std::string replacements_;     // Each ends with a zero byte.
};

}  // namespace weir::text
