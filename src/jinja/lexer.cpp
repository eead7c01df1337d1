// Lexer. Between tags everything is data; inside, tokens. Jinja's is made of regular expressions;
// this one scans, and follows them to the letter.
#include "jinja/lexer.h"

#include <algorithm>
#include <cstdio>

#include "base/concat.h"
#include "base/utf8.h"
#include "jinja/codepoint.h"

namespace weir::jinja {

namespace {

constexpr size_t kNotFound = std::string_view::npos;

bool is_digit_in(char c, int base) {
  if (base == 16) return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  return c >= '0' && c < '0' + base;
}

// Python's string escapes. Non-ASCII text is escaped itself first, as Jinja does it: then a
// backslash before such a character comes out as Jinja's does.
class Unescaper {
 public:
  // False, with `error` set, for an escape that is cut short.
  bool run(std::string_view text, std::string& out, std::string& error) {
    const std::string ascii = escape_non_ascii(text);
    text_ = ascii;
    for (at_ = 0; at_ < text_.size();) {
      if (text_[at_] != '\\') {
        out += text_[at_++];
      } else if (!escape(out, error)) {
        return false;
      }
    }
    return true;
  }

 private:
  static std::string escape_non_ascii(std::string_view text) {
    std::string out;
    const char* at = text.data();
    const char* end = at + text.size();
    while (at < end) {
      const char32_t c = next_codepoint(at);
      if (c < 0x80) {
        out += static_cast<char>(c);
        continue;
      }
      char buffer[16];
      std::snprintf(buffer, sizeof buffer,
                    c < 0x100     ? "\\x%02x"
                    : c < 0x10000 ? "\\u%04x"
                                  : "\\U%08x",
                    static_cast<unsigned>(c));
      out += buffer;
    }
    return out;
  }

  bool escape(std::string& out, std::string& error) {
    static constexpr std::string_view kLetters = "abfnrtv\\'\"";
    static constexpr std::string_view kMeanings = "\a\b\f\n\r\t\v\\'\"";
    if (++at_ == text_.size()) {
      error = "\\ at end of string";
      return false;
    }
    const char c = text_[at_++];
    if (const size_t letter = kLetters.find(c); letter != kNotFound) {
      out += kMeanings[letter];
    } else if (c == '\n') {
      // A line end after a backslash is no part of the string.
    } else if (c >= '0' && c <= '7') {
      char32_t value = static_cast<char32_t>(c - '0');
      for (int i = 0; i < 2 && at_ < text_.size() && is_digit_in(text_[at_], 8); ++i)
        value = value * 8 + static_cast<char32_t>(text_[at_++] - '0');
      append_utf8(out, value);
    } else if (c == 'x' || c == 'u' || c == 'U') {
      return hexadecimal(c == 'x' ? 2 : c == 'u' ? 4 : 8, out, error);
    } else if (c == 'N') {
      error = "\\N{...} in strings is not supported";
      return false;
    } else {
      out += '\\';
      out += c;
    }
    return true;
  }

  bool hexadecimal(size_t digits, std::string& out, std::string& error) {
    char32_t value = 0;
    for (size_t i = 0; i < digits; ++i, ++at_) {
      if (at_ >= text_.size() || !is_digit_in(text_[at_], 16)) {
        error = "truncated escape in a string";
        return false;
      }
      const char c = static_cast<char>(text_[at_] | 0x20);
      value = value * 16 + static_cast<char32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    }
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
      error = "illegal Unicode character in a string";
      return false;
    }
    append_utf8(out, value);
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
};

struct Operator {
  std::string_view text;
  TokenKind kind;
};
// Longer ones first.
constexpr Operator kOperators[] = {
    {"//", TokenKind::kFloorDiv},   {"**", TokenKind::kPow},          {"==", TokenKind::kEqual},
    {"!=", TokenKind::kNotEqual},   {">=", TokenKind::kGreaterEqual}, {"<=", TokenKind::kLessEqual},
    {"+", TokenKind::kAdd},         {"-", TokenKind::kSub},           {"/", TokenKind::kDiv},
    {"*", TokenKind::kMul},         {"%", TokenKind::kMod},           {"~", TokenKind::kTilde},
    {"[", TokenKind::kLeftBracket}, {"]", TokenKind::kRightBracket},  {"(", TokenKind::kLeftParen},
    {")", TokenKind::kRightParen},  {"{", TokenKind::kLeftBrace},     {"}", TokenKind::kRightBrace},
    {">", TokenKind::kGreater},     {"<", TokenKind::kLess},          {"=", TokenKind::kAssign},
    {".", TokenKind::kDot},         {":", TokenKind::kColon},         {"|", TokenKind::kPipe},
    {",", TokenKind::kComma},       {";", TokenKind::kSemicolon},
};

class Lexer {
 public:
  Lexer(std::string_view source, Arena& arena, std::vector<Token>& tokens, SyntaxError& error)
      : source_(source), arena_(arena), tokens_(tokens), error_(error) {}

  bool run() {
    while (at_ < source_.size())
      if (!root()) return false;
    add(TokenKind::kEnd, {}, source_.size());
    return true;
  }

 private:
  std::string_view rest() const { return source_.substr(at_); }
  bool looking_at(std::string_view text) const { return rest().starts_with(text); }

  bool fail(std::string message, size_t at) {
    error_ = {std::move(message), line_at(at)};
    return false;
  }

  // Asked for growing offsets, but for a tag's own start.
  int32_t line_at(size_t offset) {
    if (offset < counted_)
      return 1 + static_cast<int32_t>(std::count(
                     source_.begin(), source_.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
    line_ += static_cast<int32_t>(
        std::count(source_.begin() + static_cast<std::ptrdiff_t>(counted_),
                   source_.begin() + static_cast<std::ptrdiff_t>(offset), '\n'));
    counted_ = offset;
    return line_;
  }

  void add(TokenKind kind, std::string_view text, size_t at) {
    tokens_.push_back({kind, line_at(at), text});
  }

  static size_t skip_spaces(std::string_view text, size_t at) {
    return text.size() - strip_left(text.substr(at)).size();
  }

  // Data up to a tag at `tag`, whose whitespace sign is `sign`.
  void add_data(size_t tag, char sign, bool is_variable) {
    std::string_view text = source_.substr(at_, tag - at_);
    if (sign == '-') {
      text = strip_right(text);
    } else if (sign != '+' && !is_variable) {
      // lstrip_blocks: what is left of the tag on its line goes if it is all white space.
      const size_t newline = text.rfind('\n');
      const size_t line_start = newline == kNotFound ? 0 : newline + 1;
      if ((line_start > 0 || line_starting_) && strip_left(text.substr(line_start)).empty())
        text = text.substr(0, line_start);
    }
    if (!text.empty()) add(TokenKind::kData, text, at_);
  }

  void advance(size_t to) {
    line_starting_ = to > at_ && source_[to - 1] == '\n';
    at_ = to;
  }

  // Data, then a tag; or data to the end.
  bool root() {
    size_t tag = at_;
    for (;; ++tag) {
      tag = source_.find('{', tag);
      if (tag == kNotFound || tag + 1 >= source_.size()) {
        add(TokenKind::kData, rest(), at_);
        at_ = source_.size();
        return true;
      }
      if (const char c = source_[tag + 1]; c == '%' || c == '{' || c == '#') break;
    }
    size_t inside = tag + 2;
    const char sign = inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+')
                          ? source_[inside++]
                          : '\0';
    const char kind = source_[tag + 1];
    add_data(tag, sign, kind == '{');
    if (kind == '#') return comment(tag, inside);
    if (kind == '%') {
      if (const size_t body = raw_tag(inside, "raw", false); body != kNotFound)
        return raw(tag, body);
    }
    add(kind == '{' ? TokenKind::kVariableBegin : TokenKind::kBlockBegin,
        source_.substr(tag, inside - tag), tag);
    advance(inside);
    return inside_tag(kind == '{');
  }

  // Where a block's or comment's end mark (of two characters) at `at` leads to; kNotFound if there
  // is none.
  size_t end_mark(size_t at, std::string_view mark, bool is_variable) const {
    const std::string_view text = source_.substr(at);
    if (text.starts_with('-') && text.substr(1).starts_with(mark))
      return skip_spaces(source_, at + 3);
    if (!is_variable && text.starts_with('+') && text.substr(1).starts_with(mark)) return at + 3;
    if (!text.starts_with(mark)) return kNotFound;
    const bool newline = !is_variable && text.substr(2).starts_with('\n');  // trim_blocks
    return at + (newline ? 3 : 2);
  }

  bool comment(size_t tag, size_t inside) {
    const size_t mark = source_.find("#}", inside);
    if (mark == kNotFound) return fail("Missing end of comment tag", tag);
    const bool sign = mark > inside && (source_[mark - 1] == '-' || source_[mark - 1] == '+');
    advance(end_mark(sign ? mark - 1 : mark, "#}", false));
    return true;
  }

  // After `{%` and its sign: the end of a `raw` or `endraw` tag, or kNotFound.
  size_t raw_tag(size_t inside, std::string_view name, bool is_end) const {
    size_t at = skip_spaces(source_, inside);
    if (!source_.substr(at).starts_with(name)) return kNotFound;
    at = skip_spaces(source_, at + name.size());
    if (is_end) return end_mark(at, "%}", false);
    if (source_.substr(at).starts_with("%}")) return at + 2;
    return source_.substr(at).starts_with("-%}") ? skip_spaces(source_, at + 3) : kNotFound;
  }

  bool raw(size_t tag, size_t body) {
    advance(body);
    for (size_t mark = source_.find("{%", at_); mark != kNotFound;
         mark = source_.find("{%", mark + 1)) {
      size_t inside = mark + 2;
      char sign = '\0';
      if (inside < source_.size() && (source_[inside] == '-' || source_[inside] == '+'))
        sign = source_[inside++];
      const size_t end = raw_tag(inside, "endraw", true);
      if (end == kNotFound) continue;
      add_data(mark, sign, false);
      advance(end);
      return true;
    }
    return fail("Missing end of raw directive", tag);
  }

  // Tokens up to the tag's end.
  bool inside_tag(bool is_variable) {
    open_.clear();
    while (at_ < source_.size()) {
      if (open_.empty()) {
        const size_t end = end_mark(at_, is_variable ? "}}" : "%}", is_variable);
        if (end != kNotFound) {
          add(is_variable ? TokenKind::kVariableEnd : TokenKind::kBlockEnd, {}, at_);
          advance(end);
          return true;
        }
      }
      const size_t behind_spaces = skip_spaces(source_, at_);
      if (behind_spaces > at_) {
        at_ = behind_spaces;
      } else if (!token()) {
        return false;
      }
    }
    return true;  // The parser misses the end.
  }

  bool token() {
    const char c = source_[at_];
    if (c >= '0' && c <= '9') return number();
    if (c == '"' || c == '\'') return string(c);
    if (c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        static_cast<uint8_t>(c) >= 0x80)
      return name();
    for (const Operator& op : kOperators)
      if (looking_at(op.text)) return operation(op);
    return fail(concat({"unexpected char '", std::string_view(&c, 1), "'"}), at_);
  }

  bool operation(const Operator& op) {
    const char c = op.text[0];
    if (c == '{' || c == '(' || c == '[') {
      open_ += c == '{' ? '}' : c == '(' ? ')' : ']';
    } else if (c == '}' || c == ')' || c == ']') {
      if (open_.empty()) return fail(concat({"unexpected '", std::string_view(&c, 1), "'"}), at_);
      if (open_.back() != c)
        return fail(concat({"unexpected '", std::string_view(&c, 1), "', expected '",
                            std::string_view(&open_.back(), 1), "'"}),
                    at_);
      open_.pop_back();
    }
    add(op.kind, op.text, at_);
    at_ += op.text.size();
    return true;
  }

  bool name() {
    const char* end = source_.data() + at_;
    const char* limit = source_.data() + source_.size();
    while (end < limit) {
      const char* next = end;
      if (!is_word(next_codepoint(next))) break;
      end = next;
    }
    const std::string_view text = rest().substr(0, static_cast<size_t>(end - source_.data()) - at_);
    if (text.empty()) return fail("unexpected character", at_);
    const char* first = text.data();
    if (static_cast<uint8_t>(text[0]) >= 0x80 && is_numeric(next_codepoint(first)))
      return fail("Invalid character in identifier", at_);
    add(TokenKind::kName, text, at_);
    at_ += text.size();
    return true;
  }

  // Digits with single underscores between them; returns their end.
  size_t digits(size_t at, int base) const {
    while (at < source_.size()) {
      if (is_digit_in(source_[at], base)) {
        ++at;
      } else if (source_[at] == '_' && at + 1 < source_.size() &&
                 is_digit_in(source_[at + 1], base)) {
        at += 2;
      } else {
        break;
      }
    }
    return at;
  }

  bool number() {
    const auto at = [this](size_t i) { return i < source_.size() ? source_[i] : '\0'; };
    const auto digit_at = [&](size_t i) { return is_digit_in(at(i), 10); };
    const bool behind_dot = at_ > 0 && source_[at_ - 1] == '.';
    size_t end = digits(at_, 10);
    bool is_float = false;
    if (!behind_dot) {
      if (at(end) == '.' && digit_at(end + 1)) {
        end = digits(end + 1, 10);
        is_float = true;
      }
      if (at(end) == 'e' || at(end) == 'E') {
        const size_t power = end + (at(end + 1) == '+' || at(end + 1) == '-' ? 2 : 1);
        if (digit_at(power)) {
          end = digits(power, 10);
          is_float = true;
        }
      }
    }
    if (!is_float && at(at_) == '0') {
      const char prefix = static_cast<char>(at(at_ + 1) | 0x20);
      const int base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
      const size_t first = at_ + (at(at_ + 2) == '_' ? 3 : 2);
      if (base != 0 && is_digit_in(at(first), base)) {
        end = digits(first, base);
      } else {
        end = digits(at_, 1);  // A leading zero stands for itself.
      }
    }
    add(is_float ? TokenKind::kFloat : TokenKind::kInteger, source_.substr(at_, end - at_), at_);
    at_ = end;
    return true;
  }

  bool string(char quote) {
    size_t end = at_ + 1;
    bool escapes = false;
    for (; end < source_.size() && source_[end] != quote; ++end) {
      if (source_[end] != '\\') continue;
      escapes = true;
      ++end;
    }
    if (end >= source_.size())
      return fail(concat({"unexpected char '", std::string_view(&quote, 1), "'"}), at_);
    std::string_view text = source_.substr(at_ + 1, end - at_ - 1);
    if (escapes) {
      std::string plain, message;
      if (!Unescaper().run(text, plain, message)) return fail(std::move(message), at_);
      text = arena_.copy(std::string_view(plain));
    }
    add(TokenKind::kString, text, at_);
    at_ = end + 1;
    return true;
  }

  std::string_view source_;
  Arena& arena_;
  std::vector<Token>& tokens_;
  SyntaxError& error_;
  size_t at_ = 0;
  bool line_starting_ = true;  // What was read last ended a line.
  std::string open_;           // Closing brackets that are due.
  size_t counted_ = 0;         // line_ is the line of this offset.
  int32_t line_ = 1;
};

}  // namespace

std::string normalise_newlines(std::string_view source) {
  std::string out;
  out.reserve(source.size());
  for (size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (out.ends_with('\n')) out.pop_back();
  return out;
}

bool tokenise(std::string_view source, Arena& arena, std::vector<Token>& tokens,
              SyntaxError& error) {
  return Lexer(source, arena, tokens, error).run();
}

}  // namespace weir::jinja
