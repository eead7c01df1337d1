#include "grammar/regex.h"

#include <array>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "grammar/machine.h"

namespace weir::grammar {

namespace {

constexpr size_t kPatternBytesMax = 64 << 10;
constexpr int kDepthMax = 100;
constexpr int32_t kRepeatMax = 1'000'000;

const CharSet& digits() {
  static const CharSet set{{'0', '9'}};
  return set;
}
const CharSet& word_characters() {
  static const CharSet set{{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return set;
}
// White space in ECMA-262 and in Python alike.
const CharSet& common_space() {
  static const CharSet set{{'\t', '\r'},     {' ', ' '},       {0xa0, 0xa0},
                           {0x1680, 0x1680}, {0x2000, 0x200a}, {0x2028, 0x2029},
                           {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000}};
  return set;
}
// In one of them.
const CharSet& some_space() {
  static const CharSet set = [] {
    CharSet both = common_space();
    both.add(CharSet{{0x1c, 0x1f}, {0x85, 0x85}, {0xfeff, 0xfeff}});
    return both;
  }();
  return set;
}
const CharSet& no_line_end() {
  static const CharSet set = CharSet{{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}}.negated();
  return set;
}

// One alternative at the top, without the anchors at its ends.
struct Alternative {
  ExprId expr = kNoExpr;
  bool at_begin = false, at_end = false;
};

class RegexParser {
 public:
  RegexParser(Grammar& grammar, std::string_view pattern, Spelling spelling)
      : grammar_(grammar), text_(pattern), spelling_(spelling) {}

  Result<std::vector<Alternative>> parse() {
    if (text_.size() > kPatternBytesMax)
      return error("expected at most " + std::to_string(kPatternBytesMax) + " bytes");
    if (!valid_utf8(text_)) return error("expected valid UTF-8");
    std::vector<Alternative> alternatives;
    do {
      Alternative alternative;
      WEIR_ASSIGN(alternative.expr, sequence(&alternative));
      alternatives.push_back(alternative);
    } while (take('|'));
    if (at_ < text_.size()) return error("found ')' without '('");
    return alternatives;
  }

  bool inner_anchors() const { return inner_anchors_; }

 private:
  tl::unexpected<Error> error(const std::string& what) const {
    return fail(ErrorCode::kInvalid, "The regular expression cannot be used: " + what +
                                         " (at byte " + std::to_string(at_) + " of '" +
                                         std::string(text_.substr(0, 80)) + "').");
  }
  bool done() const { return at_ == text_.size(); }
  bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(char c) {
    if (done() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  ExprId one_of(const CharSet& set) { return spell(grammar_, set, spelling_); }

  // `top`: the alternative of the whole pattern that this is, or null within a group.
  Result<ExprId> sequence(Alternative* top) {
    std::vector<ExprId> parts;
    while (!done() && text_[at_] != '|' && text_[at_] != ')') {
      if (take('^') || take_escaped('A')) {
        if (top && parts.empty())
          top->at_begin = true;
        else
          parts.push_back(anchor(kBegin));
        WEIR_TRY(no_quantifier());
      } else if (take('$') || take_escaped('Z') || take_escaped('z')) {
        if (top && (done() || text_[at_] == '|'))
          top->at_end = true;
        else
          parts.push_back(anchor(kEnd));
        WEIR_TRY(no_quantifier());
      } else {
        WEIR_ASSIGN(const ExprId part, quantified());
        parts.push_back(part);
      }
    }
    return grammar_.concat(parts);
  }

  bool take_escaped(char c) {
    const char escaped[2] = {'\\', c};
    if (!next_is({escaped, 2})) return false;
    at_ += 2;
    return true;
  }

  ExprId anchor(uint16_t symbol) {
    inner_anchors_ = true;
    return grammar_.symbols(symbol, symbol);
  }

  Result<void> no_quantifier() const {
    if (done() || std::string_view("*+?{").find(text_[at_]) == std::string_view::npos) return {};
    return error("an anchor cannot be repeated");
  }

  Result<ExprId> quantified() {
    WEIR_ASSIGN(ExprId part, atom());
    while (!done()) {
      int32_t min = 0, max = kUnbounded;
      if (take('*')) {
      } else if (take('+')) {
        min = 1;
      } else if (take('?')) {
        max = 1;
      } else if (text_[at_] == '{') {
        WEIR_ASSIGN(const bool found, bounds(min, max));
        if (!found) return part;
      } else {
        return part;
      }
      if (take('+')) return error("possessive quantifiers are not supported");
      take('?');  // Which match is preferred does not change the language.
      part = grammar_.repeat(part, min, max);
      if (!done() && std::string_view("*+?").find(text_[at_]) != std::string_view::npos)
        return error("nothing to repeat");
    }
    return part;
  }

  std::optional<int32_t> number(size_t& at) const {
    int64_t value = -1;
    for (; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at)
      value = std::min<int64_t>(std::max<int64_t>(value, 0) * 10 + (text_[at] - '0'), INT32_MAX);
    if (value < 0) return std::nullopt;
    return static_cast<int32_t>(value);
  }

  // {m}, {m,}, {,n} or {m,n}; false, and nothing read, if the brace is a character like any other.
  Result<bool> bounds(int32_t& min, int32_t& max) {
    size_t at = at_ + 1;
    const std::optional<int32_t> low = number(at);
    std::optional<int32_t> high = low;
    if (at < text_.size() && text_[at] == ',') {
      ++at;
      high = number(at);
      if (!low && !high) return false;
    } else if (!low) {
      return false;
    }
    if (at == text_.size() || text_[at] != '}') return false;
    min = low.value_or(0);
    max = high.value_or(kUnbounded);
    if (min > max) return error("the bounds of a repetition are the wrong way round");
    if (min > kRepeatMax || (high && max > kRepeatMax))
      return error("expected at most " + std::to_string(kRepeatMax) + " repetitions");
    at_ = at + 1;
    return true;
  }

  Result<ExprId> atom() {
    if (take('(')) return group();
    if (take('[')) return char_class();
    if (take('.')) return one_of(no_line_end());
    if (take('\\')) {
      WEIR_ASSIGN(const CharSet set, escape(false));
      return one_of(set);
    }
    if (std::string_view("*+?").find(text_[at_]) != std::string_view::npos)
      return error("nothing to repeat");
    if (text_[at_] == '{') {
      int32_t min = 0, max = 0;
      WEIR_ASSIGN(const bool quantifier, bounds(min, max));
      if (quantifier) return error("nothing to repeat");
    }
    const char32_t c = decode_utf8(text_, at_);
    return one_of(CharSet{{c, c}});
  }

  Result<ExprId> group() {
    if (++depth_ > kDepthMax)
      return error("expected at most " + std::to_string(kDepthMax) + " nested groups");
    if (take('?')) {
      if (take(':')) {
      } else if (next_is("P<") || (next_is("<") && !next_is("<=") && !next_is("<!"))) {
        const size_t close = text_.find('>', at_);
        if (close == std::string_view::npos) return error("expected '>' after a group's name");
        at_ = close + 1;
      } else if (next_is("=") || next_is("!") || next_is("<")) {
        return error("lookahead and lookbehind are not supported");
      } else {
        return error("flags and other extensions in '(?' are not supported");
      }
    }
    std::vector<ExprId> alternatives;
    do {
      WEIR_ASSIGN(const ExprId alternative, sequence(nullptr));
      alternatives.push_back(alternative);
    } while (take('|'));
    if (!take(')')) return error("expected ')'");
    --depth_;
    return grammar_.any(alternatives);
  }

  // After '['.
  Result<ExprId> char_class() {
    const bool negated = take('^');
    CharSet set;
    for (bool first = true; done() || text_[at_] != ']' || first; first = false) {
      if (done()) return error("expected ']'");
      if (first && text_[at_] == ']') break;  // ECMA-262's empty class.
      WEIR_ASSIGN(const CharSet low, class_member());
      if (!next_is("-") || next_is("-]")) {
        set.add(low);
        continue;
      }
      ++at_;
      if (done()) return error("expected ']'");
      WEIR_ASSIGN(const CharSet high, class_member());
      const bool single = is_single(low) && is_single(high);
      if (!single) {  // As in [\w-.]: the minus stands for itself.
        set.add(low);
        set.add('-', '-');
        set.add(high);
        continue;
      }
      if (low.ranges()[0].first > high.ranges()[0].first)
        return error("a range of characters is the wrong way round");
      set.add(low.ranges()[0].first, high.ranges()[0].first);
    }
    ++at_;
    return one_of(negated ? set.negated() : set);
  }

  static bool is_single(const CharSet& set) {
    return set.ranges().size() == 1 && set.ranges()[0].first == set.ranges()[0].last;
  }

  Result<CharSet> class_member() {
    if (take('\\')) return escape(true);
    if (next_is("[:")) return error("POSIX classes are not supported");
    const char32_t c = decode_utf8(text_, at_);
    return CharSet{{c, c}};
  }

  // After a backslash.
  Result<CharSet> escape(bool in_class) {
    if (done()) return error("expected a character after the backslash");
    const char32_t c = decode_utf8(text_, at_);
    const auto single = [](char32_t x) { return CharSet{{x, x}}; };
    switch (c) {
      case 'd':
        return digits();
      case 'D':
        return digits().negated();
      case 'w':
        return word_characters();
      case 'W':
        return word_characters().negated();
      case 's':
        return common_space();
      case 'S':
        return some_space().negated();
      case 'n':
        return single('\n');
      case 'r':
        return single('\r');
      case 't':
        return single('\t');
      case 'f':
        return single('\f');
      case 'v':
        return single('\v');
      case 'a':
        return single('\a');
      case '0':
        return single(0);
      case 'x':
        return hex(2);
      case 'u':
        return unicode();
      case 'b':
        if (in_class) return single('\b');
        return error("word boundaries are not supported");
      case 'B':
        return error("word boundaries are not supported");
      case 'p':
      case 'P':
        return error("Unicode properties are not supported");
      case 'c': {
        if (done()) return error("expected a letter after \\c");
        return single(static_cast<char32_t>(text_[at_++]) % 32);
      }
      default:
        break;
    }
    if (c >= '1' && c <= '9') return error("backreferences are not supported");
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
      return error("this escape of a letter is not supported");
    return single(c);
  }

  Result<char32_t> hex_value(size_t count) {
    char32_t value = 0;
    for (size_t i = 0; i < count; ++i, ++at_) {
      const char c = done() ? '\0' : text_[at_];
      const int digit = c >= '0' && c <= '9'   ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) return error("expected a hexadecimal digit");
      value = value * 16 + static_cast<char32_t>(digit);
    }
    return value;
  }

  Result<CharSet> hex(size_t count) {
    WEIR_ASSIGN(const char32_t value, hex_value(count));
    return CharSet{{value, value}};
  }

  Result<CharSet> unicode() {
    char32_t value = 0;
    if (take('{')) {
      const size_t close = text_.find('}', at_);
      if (close == std::string_view::npos || close - at_ > 6 || close == at_)
        return error("expected one to six hexadecimal digits and '}'");
      WEIR_ASSIGN(value, hex_value(close - at_));
      ++at_;
    } else {
      WEIR_ASSIGN(value, hex_value(4));
      if (value >= 0xd800 && value < 0xdc00 && next_is("\\u")) {
        at_ += 2;
        WEIR_ASSIGN(const char32_t low, hex_value(4));
        if (low < 0xdc00 || low > 0xdfff) return error("expected the second half of a pair");
        value = 0x10000 + ((value - 0xd800) << 10) + (low - 0xdc00);
      }
    }
    if (value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
      return error("expected a Unicode character");
    return CharSet{{value, value}};
  }

  Grammar& grammar_;
  const std::string_view text_;
  const Spelling spelling_;
  size_t at_ = 0;
  int depth_ = 0;
  bool inner_anchors_ = false;
};

}  // namespace

Result<ExprId> regex(Grammar& grammar, std::string_view pattern, Spelling spelling,
                     RegexMatch match) {
  RegexParser parser(grammar, pattern, spelling);
  WEIR_ASSIGN(const std::vector<Alternative> alternatives, parser.parse());
  const ExprId anything = grammar.repeat(spell(grammar, CharSet::all(), spelling), 0, kUnbounded);
  const ExprId begin = grammar.symbols(kBegin, kBegin), end = grammar.symbols(kEnd, kEnd);
  const bool search = match == RegexMatch::kSearch;
  std::vector<ExprId> results;
  for (const Alternative& alternative : alternatives) {
    ExprId before = alternative.at_begin || !search ? grammar.empty() : anything;
    ExprId after = alternative.at_end || !search ? grammar.empty() : anything;
    if (parser.inner_anchors()) {
      // The text's ends are symbols, which an anchor reads.
      before = alternative.at_begin
                   ? begin
                   : grammar.any({grammar.concat({begin, before}), grammar.empty()});
      after =
          alternative.at_end ? end : grammar.any({grammar.concat({after, end}), grammar.empty()});
    }
    results.push_back(grammar.concat({before, alternative.expr, after}));
  }
  const ExprId whole = grammar.any(results);
  if (!parser.inner_anchors()) return whole;
  WEIR_ASSIGN(Dfa machine, machine_of(grammar, whole));
  return grammar.machine(without_ends(machine));
}

}  // namespace weir::grammar
