// UTF-8: one decoder for everything that reads bytes from outside. Valid means Unicode 15, table
// 3-7: no overlong forms, no surrogates, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weir {

inline constexpr std::string_view kReplacementCharacter = "\xef\xbf\xbd";  // U+FFFD.

// What stands at the front of some bytes.
struct Utf8Front {
  enum class Kind : uint8_t {
    kValid,       // One character of `bytes` bytes.
    kInvalid,     // A maximal ill-formed part of `bytes` bytes: one U+FFFD.
    kIncomplete,  // The bytes end inside a character that is valid so far.
  };
  Kind kind = Kind::kValid;
  uint8_t bytes = 1;
};

// REQUIRES: `text` is not empty.
Utf8Front utf8_front(std::string_view text);

bool valid_utf8(std::string_view text);

// The character at text[index]; moves `index` past it. REQUIRES: `text` is valid there.
inline char32_t decode_utf8(std::string_view text, size_t& index) {
  const auto byte = [&](size_t i) { return static_cast<char32_t>(static_cast<uint8_t>(text[i])); };
  const char32_t lead = byte(index);
  if (lead < 0x80) {
    ++index;
    return lead;
  }
  if (lead < 0xe0) {
    index += 2;
    return (lead & 0x1f) << 6 | (byte(index - 1) & 0x3f);
  }
  if (lead < 0xf0) {
    index += 3;
    return (lead & 0x0f) << 12 | (byte(index - 2) & 0x3f) << 6 | (byte(index - 1) & 0x3f);
  }
  index += 4;
  return (lead & 0x07) << 18 | (byte(index - 3) & 0x3f) << 12 | (byte(index - 2) & 0x3f) << 6 |
         (byte(index - 1) & 0x3f);
}

// The character that ends before text[index]; moves `index` to its start. REQUIRES: `text` is
// valid and index > 0.
inline char32_t decode_utf8_before(std::string_view text, size_t& index) {
  do {
    --index;
  } while ((static_cast<uint8_t>(text[index]) & 0xc0) == 0x80);
  size_t end = index;
  return decode_utf8(text, end);
}

// REQUIRES: a scalar value (no surrogate, at most U+10FFFF).
void append_utf8(std::string& out, char32_t character);

// Appends `bytes` with one U+FFFD for each maximal ill-formed part (what Rust's from_utf8_lossy and
// the WHATWG decoder do); an incomplete character at the end is one as well.
void append_valid_utf8(std::string& out, std::string_view bytes);

}  // namespace weir
