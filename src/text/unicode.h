// Properties of characters, as the Hugging Face `tokenizers` crate sees them.
//
// Threads: pure functions.
#pragma once

#include <string>

namespace weir::text {

bool is_space(char32_t c);             // White_Space.
bool is_word(char32_t c);              // \w of UTS 18: Alphabetic, M, Nd, Pc, Join_Control.
bool is_numeric(char32_t c);           // N.
bool is_punctuation(char32_t c);       // P, and all ASCII punctuation.
bool is_mark(char32_t c);              // M by Unicode 9, as StripAccents has it.
bool is_nonspacing_mark(char32_t c);   // Mn by Unicode 8, as BertNormalizer has it.
bool is_control_or_other(char32_t c);  // C, but not unassigned.

// The full lower-case mapping, without context (no final sigma).
void append_lower(std::string& out, char32_t c);

}  // namespace weir::text
