// With which edition of Unicode a character came. The tables of the Hugging Face crate are those of
// Unicode 9 (normal forms, StripAccents) and 8 (BERT's accents): later characters are to it what
// unassigned ones are.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/unicode.h"

namespace weir::text {

struct AgeRange {
  char32_t first = 0, last = 0;
  uint8_t edition = 0;
};

// Whether the character was assigned by edition 8 or 9 of Unicode.
bool assigned_by(char32_t c, uint8_t edition);

// As weir::append_normalised(), by Unicode 9: a later character stays as it is, and nothing moves
// across it or joins with it. REQUIRES: valid UTF-8.
void append_normalised_by_9(std::string& out, std::string_view text, NormalForm form,
                            size_t bytes_max);

}  // namespace weir::text
