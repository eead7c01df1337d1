#include "base/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace weir {

namespace {

int combining_class(utf8proc_int32_t c) {
  return c < 0x300 ? 0 : utf8proc_get_property(c)->combining_class;
}

// Sorts each run of characters with a combining class by it, stably. utf8proc's own ordering is
// quadratic in the length of a run, and a prompt may be one long run.
void order_canonically(std::vector<utf8proc_int32_t>& characters) {
  for (size_t i = 0; i < characters.size();) {
    if (combining_class(characters[i]) == 0) {
      ++i;
      continue;
    }
    size_t end = i + 1;
    while (end < characters.size() && combining_class(characters[end]) != 0) ++end;
    std::stable_sort(characters.begin() + static_cast<ptrdiff_t>(i),
                     characters.begin() + static_cast<ptrdiff_t>(end),
                     [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    i = end;
  }
}

// One stretch in which characters may act on each other. One of more than `bytes_max` characters is
// cut after so many, and not composed: the caller throws it away.
void append_stretch(std::string& out, std::string_view text, NormalForm form, size_t bytes_max,
                    std::vector<utf8proc_int32_t>& characters) {
  const bool compatible = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const bool composed = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const auto decompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_DECOMPOSE |
                                                        (compatible ? UTF8PROC_COMPAT : 0));
  characters.clear();
  for (size_t i = 0; i < text.size() && characters.size() <= bytes_max;) {
    const auto c = static_cast<utf8proc_int32_t>(decode_utf8(text, i));
    utf8proc_int32_t expansion[32];  // The longest, of U+FDFA, has 18.
    int boundary = 0;
    const utf8proc_ssize_t count =
        utf8proc_decompose_char(c, expansion, std::size(expansion), decompose, &boundary);
    CHECK(count >= 0 && count <= static_cast<utf8proc_ssize_t>(std::size(expansion)));
    characters.insert(characters.end(), expansion, expansion + count);
  }
  order_canonically(characters);
  if (composed && characters.size() <= bytes_max) {
    const utf8proc_ssize_t count = utf8proc_normalize_utf32(
        characters.data(), static_cast<utf8proc_ssize_t>(characters.size()),
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
    CHECK(count >= 0);
    characters.resize(static_cast<size_t>(count));
  }
  for (const utf8proc_int32_t c : characters) append_utf8(out, static_cast<char32_t>(c));
}

}  // namespace

// Category's order is utf8proc's.
static_assert(static_cast<int>(Category::kLu) == UTF8PROC_CATEGORY_LU &&
              static_cast<int>(Category::kLo) == UTF8PROC_CATEGORY_LO &&
              static_cast<int>(Category::kMn) == UTF8PROC_CATEGORY_MN &&
              static_cast<int>(Category::kMe) == UTF8PROC_CATEGORY_ME &&
              static_cast<int>(Category::kNd) == UTF8PROC_CATEGORY_ND &&
              static_cast<int>(Category::kNo) == UTF8PROC_CATEGORY_NO &&
              static_cast<int>(Category::kPc) == UTF8PROC_CATEGORY_PC &&
              static_cast<int>(Category::kPo) == UTF8PROC_CATEGORY_PO &&
              static_cast<int>(Category::kSk) == UTF8PROC_CATEGORY_SK &&
              static_cast<int>(Category::kZs) == UTF8PROC_CATEGORY_ZS &&
              static_cast<int>(Category::kZp) == UTF8PROC_CATEGORY_ZP &&
              static_cast<int>(Category::kCc) == UTF8PROC_CATEGORY_CC &&
              static_cast<int>(Category::kCo) == UTF8PROC_CATEGORY_CO);

Category category(char32_t c) {
  return static_cast<Category>(utf8proc_category(static_cast<utf8proc_int32_t>(c)));
}

char32_t lower_case(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t upper_case(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t title_case(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

void append_normalised(std::string& out, std::string_view text, NormalForm form, size_t bytes_max) {
  // ASCII is in every normal form, and two ASCII characters side by side never act on each other:
  // only the stretches around other characters, with the ASCII character before, need work.
  std::vector<utf8proc_int32_t> characters;
  const auto ascii = [&](size_t i) { return static_cast<uint8_t>(text[i]) < 0x80; };
  size_t plain = 0;  // Everything before is in `out`.
  for (size_t i = 0; i < text.size() && out.size() <= bytes_max;) {
    if (ascii(i)) {
      ++i;
      continue;
    }
    const size_t begin = i > plain ? i - 1 : i;
    size_t end = i + 1;
    while (end < text.size() && !(ascii(end) && (end + 1 == text.size() || ascii(end + 1)))) ++end;
    out.append(text.substr(plain, begin - plain));
    append_stretch(out, text.substr(begin, end - begin), form, bytes_max, characters);
    plain = i = end;
  }
  if (out.size() <= bytes_max) out.append(text.substr(plain));
}

void grapheme_ends(std::string_view text, std::vector<size_t>& ends) {
  ends.clear();
  if (text.empty()) return;
  utf8proc_int32_t state = 0;
  size_t index = 0;
  auto before = static_cast<utf8proc_int32_t>(decode_utf8(text, index));
  while (index < text.size()) {
    const size_t border = index;
    const auto c = static_cast<utf8proc_int32_t>(decode_utf8(text, index));
    if (utf8proc_grapheme_break_stateful(before, c, &state)) ends.push_back(border);
    before = c;
  }
  ends.push_back(text.size());
}

}  // namespace weir
