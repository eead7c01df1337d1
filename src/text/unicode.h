// Properties of characters and normal forms, as the Hugging Face `tokenizers` crate sees them. The
// only file of src/text that knows utf8proc.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir::text {

bool is_space(char32_t c);             // White_Space.
bool is_word(char32_t c);              // \w of UTS 18: Alphabetic, M, Nd, Pc, Join_Control.
bool is_numeric(char32_t c);           // N.
bool is_punctuation(char32_t c);       // P, and all ASCII punctuation.
bool is_mark(char32_t c);              // M.
bool is_nonspacing_mark(char32_t c);   // Mn.
bool is_control_or_other(char32_t c);  // C, but not unassigned.

// The full lower-case mapping, without context (no final sigma).
void append_lower(std::string& out, char32_t c);

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Appends `text` in a normal form; stops once `out` is longer than `bytes_max`. REQUIRES: valid
// UTF-8.
void append_normalised(std::string& out, std::string_view text, NormalForm form, size_t bytes_max);

// Ends of the extended grapheme clusters of `text`, ascending; the last is text.size().
// REQUIRES: valid UTF-8.
void grapheme_ends(std::string_view text, std::vector<size_t>& ends);

}  // namespace weir::text
