#include "text/unicode.h"

#include "base/unicode.h"
#include "base/utf8.h"
#include "text/unicode_age.h"

namespace weir::text {

namespace {

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

}  // namespace

bool is_space(char32_t c) {
  if (c < 0x80) return c == ' ' || (c >= '\t' && c <= '\r');
  return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028 ||
         c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

bool is_word(char32_t c) {
  if (c < 0x80)
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  const Category kind = category(c);
  return is_letter(kind) || weir::is_mark(kind) || kind == Category::kNd || kind == Category::kNl ||
         kind == Category::kPc || c == 0x200c || c == 0x200d || is_alphabetic_symbol(c);
}

bool is_numeric(char32_t c) {
  if (c < 0x80) return c >= '0' && c <= '9';
  return is_number(category(c));
}

bool is_punctuation(char32_t c) {
  if (c < 0x80) return is_ascii_punctuation(c);
  return weir::is_punctuation(category(c));
}

// The exceptions have another category since.
bool is_mark(char32_t c) {
  if (c == 0x1cf2 || c == 0x1cf3) return true;
  return c != 0x111c9 && weir::is_mark(category(c)) && assigned_by(c, 9);
}

bool is_nonspacing_mark(char32_t c) {
  if (c == 0x1734) return true;
  if (c == 0x1885 || c == 0x1886 || c == 0xa9bd || c == 0x111c9) return false;
  return category(c) == Category::kMn && assigned_by(c, 8);
}

bool is_control_or_other(char32_t c) {
  const Category kind = category(c);
  return kind >= Category::kCc && kind <= Category::kCo;
}

void append_lower(std::string& out, char32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c);
  } else if (c == 0x130) {  // The only character whose lower case is two characters.
    out += "i\xcc\x87";
  } else {
    append_utf8(out, lower_case(c));
  }
}

}  // namespace weir::text
