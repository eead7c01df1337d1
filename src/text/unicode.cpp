#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/check.h"
#include "base/utf8.h"

namespace weir::text {

namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

bool is_letter(utf8proc_category_t c) {
  return c >= UTF8PROC_CATEGORY_LU && c <= UTF8PROC_CATEGORY_LO;
}

// The Alphabetic characters that are symbols: circled and squared Latin letters (Other_Alphabetic
// of category So; all other Other_Alphabetic characters are marks).
bool is_alphabetic_symbol(char32_t c) {
  return (c >= 0x24b6 && c <= 0x24e9) || (c >= 0x1f130 && c <= 0x1f149) ||
         (c >= 0x1f150 && c <= 0x1f169) || (c >= 0x1f170 && c <= 0x1f189);
}

bool is_ascii_punctuation(char32_t c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

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

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_word(char32_t c) {
  if (c < 0x80)
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  const utf8proc_category_t kind = category(c);
  return is_letter(kind) || is_mark(c) || kind == UTF8PROC_CATEGORY_ND ||
         kind == UTF8PROC_CATEGORY_NL || kind == UTF8PROC_CATEGORY_PC || c == 0x200c ||
         c == 0x200d || is_alphabetic_symbol(c);
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return is_ascii_punctuation(c);
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

bool is_mark(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_MN && kind <= UTF8PROC_CATEGORY_ME;
}

bool is_nonspacing_mark(char32_t c) { return category(c) == UTF8PROC_CATEGORY_MN; }

bool is_control_or_other(char32_t c) {
  const utf8proc_category_t kind = category(c);
  return kind >= UTF8PROC_CATEGORY_CC && kind <= UTF8PROC_CATEGORY_CO;
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  } else if (c == 0x130) {  // The only character whose lower case is two characters.
    out += "i\xcc\x87";
  } else {
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
  }
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

}  // namespace weir::text
