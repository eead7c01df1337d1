// Unicode: the tables of characters, the normal forms and the borders of grapheme clusters. The
// only file that knows utf8proc. What a language or a library calls a letter or a space is made of
// it elsewhere: text/unicode.h, jinja/codepoint.h.
//
// Threads: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// General_Category, grouped as the standard groups it: letters, marks, numbers, punctuation,
// symbols, separators, others. kCn, unassigned, comes first.
enum class Category : uint8_t {
  // clang-format off
  kCn,
  kLu, kLl, kLt, kLm, kLo,
  kMn, kMc, kMe,
  kNd, kNl, kNo,
  kPc, kPd, kPs, kPe, kPi, kPf, kPo,
  kSm, kSc, kSk, kSo,
  kZs, kZl, kZp,
  kCc, kCf, kCs, kCo,
  // clang-format on
};
Category category(char32_t c);

constexpr bool is_letter(Category c) { return c >= Category::kLu && c <= Category::kLo; }
constexpr bool is_mark(Category c) { return c >= Category::kMn && c <= Category::kMe; }
constexpr bool is_number(Category c) { return c >= Category::kNd && c <= Category::kNo; }
constexpr bool is_punctuation(Category c) { return c >= Category::kPc && c <= Category::kPo; }

// The simple mappings, of one character to one; a character without a mapping is its own.
char32_t lower_case(char32_t c);
char32_t upper_case(char32_t c);
char32_t title_case(char32_t c);

enum class NormalForm : uint8_t { kNfc, kNfd, kNfkc, kNfkd };

// Appends `text` in a normal form; stops once `out` is longer than `bytes_max`. REQUIRES: valid
// UTF-8.
void append_normalised(std::string& out, std::string_view text, NormalForm form, size_t bytes_max);

// Ends of the extended grapheme clusters of `text`, ascending; the last is text.size().
// REQUIRES: valid UTF-8.
void grapheme_ends(std::string_view text, std::vector<size_t>& ends);

}  // namespace weir
