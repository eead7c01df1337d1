// TextReader: what the parsers of grammar notations share: a position, look-ahead, names, escapes,
// messages with a line number.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/utf8.h"

namespace weir::grammar {

// Limits of every notation.
inline constexpr size_t kGrammarBytesMax = 256 << 10;
inline constexpr int kGroupDepthMax = 100;
inline constexpr int32_t kRepeatMax = 1'000'000;

class TextReader {
 public:
  static Result<void> check(std::string_view text) {
    if (text.size() <= kGrammarBytesMax && valid_utf8(text)) return {};
    return fail(ErrorCode::kInvalid, "The grammar cannot be read: expected at most " +
                                         std::to_string(kGrammarBytesMax) +
                                         " bytes of valid UTF-8.");
  }

  // REQUIRES: `text` has passed check().
  explicit TextReader(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what) {
    if (!next_is(what)) return false;
    at_ += what.size();
    return true;
  }
  size_t at() const { return at_; }
  void move_to(size_t at) { at_ = at; }
  std::string_view from(size_t begin) const { return text_.substr(begin, at_ - begin); }
  // REQUIRES: not done.
  char32_t character() { return decode_utf8(text_, at_); }

  static bool name_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-';
  }
  std::string_view name() {
    const size_t begin = at_;
    while (!done() && name_character(peek())) ++at_;
    return from(begin);
  }
  // Digits; far too large ones become INT32_MAX.
  std::optional<int32_t> number() {
    if (peek() < '0' || peek() > '9') return std::nullopt;
    int64_t value = 0;
    for (; peek() >= '0' && peek() <= '9'; ++at_)
      value = std::min<int64_t>(value * 10 + (peek() - '0'), INT32_MAX);
    return static_cast<int32_t>(value);
  }

  tl::unexpected<Error> error(const std::string& what) const {
    const auto line =
        1 + std::count(text_.begin(), text_.begin() + static_cast<ptrdiff_t>(at_), '\n');
    return fail(ErrorCode::kInvalid,
                "The grammar cannot be read: " + what + " (line " + std::to_string(line) + ").");
  }

  // After a backslash: \n \r \t \\ \" \' \/ \[ \] \xHH \uHHHH \UHHHHHHHH.
  Result<char32_t> escape() {
    if (done()) return error("expected a character after the backslash");
    const char c = text_[at_++];
    switch (c) {
      case 'n':
        return U'\n';
      case 'r':
        return U'\r';
      case 't':
        return U'\t';
      case 'f':
        return U'\f';
      case 'b':
        return U'\b';
      case 'v':
        return U'\v';
      case 'x':
        return hex(2);
      case 'u':
        return hex(4);
      case 'U':
        return hex(8);
      default:
        break;
    }
    if (std::string_view("\\\"'/[]-^.").find(c) != std::string_view::npos)
      return static_cast<char32_t>(c);
    std::string escape = "\\";
    escape += c;
    return error("the escape " + escape + " is not known");
  }

 private:
  Result<char32_t> hex(size_t digits) {
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      const char c = peek();
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return error("expected a hexadecimal digit");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
      return error("expected a Unicode character");
    return value;
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace weir::grammar
