// Code points as Python's str sees them: UTF-8 in memory, character classes and case mappings by
// Unicode's tables. Every string here is valid UTF-8.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir::jinja {

// REQUIRES: `at` is at the start of a sequence. Moves it past the sequence.
inline char32_t next_codepoint(const char*& at) {
  const auto lead = static_cast<uint8_t>(*at++);
  if (lead < 0x80) return lead;
  const auto more = [&at](char32_t head) {
    return (head << 6) | (static_cast<uint8_t>(*at++) & 0x3f);
  };
  if (lead < 0xe0) return more(lead & 0x1f);
  if (lead < 0xf0) {
    const char32_t two = more(lead & 0x0f);
    return more(two);
  }
  const char32_t two = more(lead & 0x07);
  const char32_t three = more(two);
  return more(three);
}

inline bool is_continuation(char byte) { return (static_cast<uint8_t>(byte) & 0xc0) == 0x80; }

inline size_t sequence_bytes(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

size_t count_codepoints(std::string_view text);
// Byte offset of code point `index`, or text.size() if there are fewer.
size_t codepoint_offset(std::string_view text, size_t index);

// As str.isspace(), isalpha(), isdecimal(), isdigit(), isnumeric(), isprintable(), islower(),
// isupper() say of one character. isnumeric leaves out the 83 ideographs that mean numbers.
bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_printable(char32_t c);
bool is_lower(char32_t c);
bool is_upper(char32_t c);
bool is_title(char32_t c);
// As regular expressions mean \w.
bool is_word(char32_t c);

void append_upper(std::string& out, char32_t c);
void append_title(std::string& out, char32_t c);
std::string to_upper(std::string_view text);
// With the rule for a final sigma.
std::string to_lower(std::string_view text);
std::string to_swapped_case(std::string_view text);
// First character in title case, the rest in lower case.
std::string to_capitalized(std::string_view text);
// Capitalizes every run of cased characters.
std::string to_title(std::string_view text);

std::string_view strip_left(std::string_view text);
std::string_view strip_right(std::string_view text);

}  // namespace weir::jinja
