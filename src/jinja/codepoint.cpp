// Code points: base/unicode.h knows the categories and the one-to-one case mappings; the tables
// below are what Unicode has beside them (SpecialCasing.txt, Other_Lowercase, Other_Uppercase,
// Numeric_Type).
#include "jinja/codepoint.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "base/unicode.h"
#include "base/utf8.h"

namespace weir::jinja {

namespace {

struct Range {
  char32_t first, last;
};

// Digits that are not decimal: superscripts, circled digits and the like.
constexpr Range kOtherDigits[] = {
    {0xb2, 0xb3},       {0xb9, 0xb9},       {0x1369, 0x1371},   {0x19da, 0x19da},
    {0x2070, 0x2070},   {0x2074, 0x2079},   {0x2080, 0x2089},   {0x2460, 0x2468},
    {0x2474, 0x247c},   {0x2488, 0x2490},   {0x24ea, 0x24ea},   {0x24f5, 0x24fd},
    {0x24ff, 0x24ff},   {0x2776, 0x277e},   {0x2780, 0x2788},   {0x278a, 0x2792},
    {0x10a40, 0x10a43}, {0x10e60, 0x10e68}, {0x11052, 0x1105a}, {0x1f100, 0x1f10a}};
constexpr Range kOtherLower[] = {
    {0xaa, 0xaa},       {0xba, 0xba},       {0x2b0, 0x2b8},     {0x2c0, 0x2c1},    {0x2e0, 0x2e4},
    {0x345, 0x345},     {0x37a, 0x37a},     {0x1d2c, 0x1d6a},   {0x1d78, 0x1d78},  {0x1d9b, 0x1dbf},
    {0x2071, 0x2071},   {0x207f, 0x207f},   {0x2090, 0x209c},   {0x2170, 0x217f},  {0x24d0, 0x24e9},
    {0x2c7c, 0x2c7d},   {0xa69c, 0xa69d},   {0xa770, 0xa770},   {0xa7f8, 0xa7f9},  {0xab5c, 0xab5f},
    {0x10780, 0x10780}, {0x10783, 0x10785}, {0x10787, 0x107b0}, {0x107b2, 0x107ba}};
constexpr Range kOtherUpper[] = {
    {0x2160, 0x216f}, {0x24b6, 0x24cf}, {0x1f130, 0x1f149}, {0x1f150, 0x1f169}, {0x1f170, 0x1f189}};

// Characters whose upper or title case is several characters.
struct SpecialCase {
  char32_t from;
  const char* upper;
  const char* title;  // Null: one character, title_case() has it.
};
constexpr SpecialCase kSpecialCases[] = {
    {0x00df, "SS", "Ss"},
    {0x0149, "\312\274N", "\312\274N"},
    {0x01f0, "J\314\214", "J\314\214"},
    {0x0390, "\316\231\314\210\314\201", "\316\231\314\210\314\201"},
    {0x03b0, "\316\245\314\210\314\201", "\316\245\314\210\314\201"},
    {0x0587, "\324\265\325\222", "\324\265\326\202"},
    {0x1e96, "H\314\261", "H\314\261"},
    {0x1e97, "T\314\210", "T\314\210"},
    {0x1e98, "W\314\212", "W\314\212"},
    {0x1e99, "Y\314\212", "Y\314\212"},
    {0x1e9a, "A\312\276", "A\312\276"},
    {0x1f50, "\316\245\314\223", "\316\245\314\223"},
    {0x1f52, "\316\245\314\223\314\200", "\316\245\314\223\314\200"},
    {0x1f54, "\316\245\314\223\314\201", "\316\245\314\223\314\201"},
    {0x1f56, "\316\245\314\223\315\202", "\316\245\314\223\315\202"},
    {0x1f80, "\341\274\210\316\231", nullptr},
    {0x1f81, "\341\274\211\316\231", nullptr},
    {0x1f82, "\341\274\212\316\231", nullptr},
    {0x1f83, "\341\274\213\316\231", nullptr},
    {0x1f84, "\341\274\214\316\231", nullptr},
    {0x1f85, "\341\274\215\316\231", nullptr},
    {0x1f86, "\341\274\216\316\231", nullptr},
    {0x1f87, "\341\274\217\316\231", nullptr},
    {0x1f88, "\341\274\210\316\231", nullptr},
    {0x1f89, "\341\274\211\316\231", nullptr},
    {0x1f8a, "\341\274\212\316\231", nullptr},
    {0x1f8b, "\341\274\213\316\231", nullptr},
    {0x1f8c, "\341\274\214\316\231", nullptr},
    {0x1f8d, "\341\274\215\316\231", nullptr},
    {0x1f8e, "\341\274\216\316\231", nullptr},
    {0x1f8f, "\341\274\217\316\231", nullptr},
    {0x1f90, "\341\274\250\316\231", nullptr},
    {0x1f91, "\341\274\251\316\231", nullptr},
    {0x1f92, "\341\274\252\316\231", nullptr},
    {0x1f93, "\341\274\253\316\231", nullptr},
    {0x1f94, "\341\274\254\316\231", nullptr},
    {0x1f95, "\341\274\255\316\231", nullptr},
    {0x1f96, "\341\274\256\316\231", nullptr},
    {0x1f97, "\341\274\257\316\231", nullptr},
    {0x1f98, "\341\274\250\316\231", nullptr},
    {0x1f99, "\341\274\251\316\231", nullptr},
    {0x1f9a, "\341\274\252\316\231", nullptr},
    {0x1f9b, "\341\274\253\316\231", nullptr},
    {0x1f9c, "\341\274\254\316\231", nullptr},
    {0x1f9d, "\341\274\255\316\231", nullptr},
    {0x1f9e, "\341\274\256\316\231", nullptr},
    {0x1f9f, "\341\274\257\316\231", nullptr},
    {0x1fa0, "\341\275\250\316\231", nullptr},
    {0x1fa1, "\341\275\251\316\231", nullptr},
    {0x1fa2, "\341\275\252\316\231", nullptr},
    {0x1fa3, "\341\275\253\316\231", nullptr},
    {0x1fa4, "\341\275\254\316\231", nullptr},
    {0x1fa5, "\341\275\255\316\231", nullptr},
    {0x1fa6, "\341\275\256\316\231", nullptr},
    {0x1fa7, "\341\275\257\316\231", nullptr},
    {0x1fa8, "\341\275\250\316\231", nullptr},
    {0x1fa9, "\341\275\251\316\231", nullptr},
    {0x1faa, "\341\275\252\316\231", nullptr},
    {0x1fab, "\341\275\253\316\231", nullptr},
    {0x1fac, "\341\275\254\316\231", nullptr},
    {0x1fad, "\341\275\255\316\231", nullptr},
    {0x1fae, "\341\275\256\316\231", nullptr},
    {0x1faf, "\341\275\257\316\231", nullptr},
    {0x1fb2, "\341\276\272\316\231", "\341\276\272\315\205"},
    {0x1fb3, "\316\221\316\231", nullptr},
    {0x1fb4, "\316\206\316\231", "\316\206\315\205"},
    {0x1fb6, "\316\221\315\202", "\316\221\315\202"},
    {0x1fb7, "\316\221\315\202\316\231", "\316\221\315\202\315\205"},
    {0x1fbc, "\316\221\316\231", nullptr},
    {0x1fc2, "\341\277\212\316\231", "\341\277\212\315\205"},
    {0x1fc3, "\316\227\316\231", nullptr},
    {0x1fc4, "\316\211\316\231", "\316\211\315\205"},
    {0x1fc6, "\316\227\315\202", "\316\227\315\202"},
    {0x1fc7, "\316\227\315\202\316\231", "\316\227\315\202\315\205"},
    {0x1fcc, "\316\227\316\231", nullptr},
    {0x1fd2, "\316\231\314\210\314\200", "\316\231\314\210\314\200"},
    {0x1fd3, "\316\231\314\210\314\201", "\316\231\314\210\314\201"},
    {0x1fd6, "\316\231\315\202", "\316\231\315\202"},
    {0x1fd7, "\316\231\314\210\315\202", "\316\231\314\210\315\202"},
    {0x1fe2, "\316\245\314\210\314\200", "\316\245\314\210\314\200"},
    {0x1fe3, "\316\245\314\210\314\201", "\316\245\314\210\314\201"},
    {0x1fe4, "\316\241\314\223", "\316\241\314\223"},
    {0x1fe6, "\316\245\315\202", "\316\245\315\202"},
    {0x1fe7, "\316\245\314\210\315\202", "\316\245\314\210\315\202"},
    {0x1ff2, "\341\277\272\316\231", "\341\277\272\315\205"},
    {0x1ff3, "\316\251\316\231", nullptr},
    {0x1ff4, "\316\217\316\231", "\316\217\315\205"},
    {0x1ff6, "\316\251\315\202", "\316\251\315\202"},
    {0x1ff7, "\316\251\315\202\316\231", "\316\251\315\202\315\205"},
    {0x1ffc, "\316\251\316\231", nullptr},
    {0xfb00, "FF", "Ff"},
    {0xfb01, "FI", "Fi"},
    {0xfb02, "FL", "Fl"},
    {0xfb03, "FFI", "Ffi"},
    {0xfb04, "FFL", "Ffl"},
    {0xfb05, "ST", "St"},
    {0xfb06, "ST", "St"},
    {0xfb13, "\325\204\325\206", "\325\204\325\266"},
    {0xfb14, "\325\204\324\265", "\325\204\325\245"},
    {0xfb15, "\325\204\324\273", "\325\204\325\253"},
    {0xfb16, "\325\216\325\206", "\325\216\325\266"},
    {0xfb17, "\325\204\324\275", "\325\204\325\255"}};

bool contains(std::span<const Range> ranges, char32_t c) {
  const auto after = std::upper_bound(ranges.begin(), ranges.end(), c,
                                      [](char32_t x, const Range& r) { return x < r.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

const SpecialCase* find_special(char32_t c) {
  const auto* found =
      std::lower_bound(std::begin(kSpecialCases), std::end(kSpecialCases), c,
                       [](const SpecialCase& entry, char32_t x) { return entry.from < x; });
  return found != std::end(kSpecialCases) && found->from == c ? found : nullptr;
}

bool is_cased(char32_t c) { return is_lower(c) || is_upper(c) || is_title(c); }

// Marks, modifiers and punctuation inside words: a final sigma is looked for across them.
bool is_case_ignorable(char32_t c) {
  switch (category(c)) {
    case Category::kMn:
    case Category::kMe:
    case Category::kCf:
    case Category::kLm:
    case Category::kSk:
      return true;
    default:
      return c == '\'' || c == '.' || c == ':' || c == 0xb7 || c == 0x387 || c == 0x559 ||
             c == 0x55f || c == 0x5f4 || c == 0x2018 || c == 0x2019 || c == 0x2024 || c == 0x2027 ||
             c == 0xfe13 || c == 0xfe52 || c == 0xfe55 || c == 0xff07 || c == 0xff0e || c == 0xff1a;
  }
}

// Whether the sigma at `offset` ends a word: a cased character before it and none after.
bool is_final_sigma(std::string_view text, size_t offset) {
  size_t before = offset;
  bool cased_before = false;
  while (before > 0) {
    do --before;
    while (is_continuation(text[before]));
    const char* at = text.data() + before;
    const char32_t c = next_codepoint(at);
    if (is_case_ignorable(c)) continue;
    cased_before = is_cased(c);
    break;
  }
  if (!cased_before) return false;
  const char* at = text.data() + offset + 2;  // A sigma has two bytes.
  while (at < text.data() + text.size()) {
    const char32_t c = next_codepoint(at);
    if (is_case_ignorable(c)) continue;
    return !is_cased(c);
  }
  return true;
}

constexpr char32_t kSigma = 0x3a3, kFinalSigma = 0x3c2, kDottedI = 0x130;

void append_lower(std::string& out, std::string_view text, size_t offset, char32_t c) {
  if (c == kDottedI) {
    out += "i\xcc\x87";
  } else if (c == kSigma && is_final_sigma(text, offset)) {
    append_utf8(out, kFinalSigma);
  } else {
    append_utf8(out, lower_case(c));
  }
}

// Calls `map(out, offset, codepoint)` for every character.
template <class Map>
std::string map_codepoints(std::string_view text, Map map) {
  std::string out;
  out.reserve(text.size());
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const auto offset = static_cast<size_t>(at - text.data());
    map(out, offset, next_codepoint(at));
  }
  return out;
}

}  // namespace

size_t count_codepoints(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return !is_continuation(c); }));
}

size_t codepoint_offset(std::string_view text, size_t index) {
  size_t offset = 0;
  for (; index > 0 && offset < text.size(); --index) offset += sequence_bytes(text[offset]);
  return offset;
}

bool is_space(char32_t c) {
  if (c < 0x80) return (c >= 9 && c <= 13) || (c >= 0x1c && c <= 0x20);
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_alpha(char32_t c) { return is_letter(category(c)); }

bool is_decimal(char32_t c) { return category(c) == Category::kNd; }
bool is_digit(char32_t c) { return is_decimal(c) || contains(kOtherDigits, c); }

bool is_numeric(char32_t c) { return is_number(category(c)); }

bool is_printable(char32_t c) {
  if (c < 0x80) return c >= 0x20 && c < 0x7f;
  switch (category(c)) {
    case Category::kCc:
    case Category::kCf:
    case Category::kCs:
    case Category::kCo:
    case Category::kCn:
    case Category::kZl:
    case Category::kZp:
    case Category::kZs:
      return false;
    default:
      return true;
  }
}

bool is_lower(char32_t c) { return category(c) == Category::kLl || contains(kOtherLower, c); }
bool is_upper(char32_t c) { return category(c) == Category::kLu || contains(kOtherUpper, c); }
bool is_title(char32_t c) { return category(c) == Category::kLt; }
bool is_word(char32_t c) { return c == '_' || is_alpha(c) || is_numeric(c); }

void append_upper(std::string& out, char32_t c) {
  if (const SpecialCase* special = find_special(c)) {
    out += special->upper;
  } else {
    append_utf8(out, upper_case(c));
  }
}

void append_title(std::string& out, char32_t c) {
  const SpecialCase* special = find_special(c);
  if (special && special->title) {
    out += special->title;
  } else {
    append_utf8(out, title_case(c));
  }
}

std::string to_upper(std::string_view text) {
  return map_codepoints(text, [](std::string& out, size_t, char32_t c) { append_upper(out, c); });
}

std::string to_lower(std::string_view text) {
  return map_codepoints(
      text, [text](std::string& out, size_t i, char32_t c) { append_lower(out, text, i, c); });
}

std::string to_swapped_case(std::string_view text) {
  return map_codepoints(text, [text](std::string& out, size_t i, char32_t c) {
    if (is_upper(c)) {
      append_lower(out, text, i, c);
    } else if (is_lower(c)) {
      append_upper(out, c);
    } else {
      append_utf8(out, c);
    }
  });
}

std::string to_capitalized(std::string_view text) {
  return map_codepoints(text, [text](std::string& out, size_t i, char32_t c) {
    if (i == 0) {
      append_title(out, c);
    } else {
      append_lower(out, text, i, c);
    }
  });
}

std::string to_title(std::string_view text) {
  bool in_word = false;
  return map_codepoints(text, [&](std::string& out, size_t i, char32_t c) {
    if (in_word) {
      append_lower(out, text, i, c);
    } else {
      append_title(out, c);
    }
    in_word = is_cased(c);
  });
}

std::string_view strip_left(std::string_view text) {
  const char* at = text.data();
  const char* end = at + text.size();
  while (at < end) {
    const char* start = at;
    if (!is_space(next_codepoint(at))) return {start, static_cast<size_t>(end - start)};
  }
  return text.substr(text.size());
}

std::string_view strip_right(std::string_view text) {
  size_t end = text.size();
  while (end > 0) {
    size_t start = end - 1;
    while (is_continuation(text[start])) --start;
    const char* at = text.data() + start;
    if (!is_space(next_codepoint(at))) break;
    end = start;
  }
  return text.substr(0, end);
}

}  // namespace weir::jinja
