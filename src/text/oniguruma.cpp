#include "text/oniguruma.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "base/concat.h"
#include "base/utf8.h"

namespace weir::text {

namespace {

// Brackets in brackets; each level is one level of our own recursion.
constexpr int kClassDepthMax = 16;

// Class contents: White_Space; word characters, to which Oniguruma counts Latin-1's superscripts
// and fractions, but no other ones.
constexpr std::string_view kSpace =
    R"(\x{9}-\x{d}\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000})";
constexpr std::string_view kWord =
    R"(\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\x{b2}\x{b3}\x{b9}\x{bc}-\x{be})";
constexpr std::string_view kHex = "0-9A-Fa-f";
constexpr std::string_view kAny = R"(\x{0}-\x{10ffff})";

struct Name {
  std::string_view name;
  std::string_view members;  // As the content of a PCRE2 class.
};

// Property names and POSIX brackets, lower case without spaces, hyphens and underscores. What is
// not here is a script.
constexpr auto kNames = std::to_array<Name>({
    {"alnum", R"(\p{Alphabetic}\p{Nd})"},
    {"alpha", R"(\p{Alphabetic})"},
    {"alphabetic", R"(\p{Alphabetic})"},
    {"any", kAny},
    {"ascii", R"(\x{0}-\x{7f})"},
    {"blank", R"(\p{Zs}\x{9})"},
    {"c", R"(\p{C})"},
    {"cased", R"(\p{Cased})"},
    {"casedletter", R"(\p{L&})"},
    {"cc", R"(\p{Cc})"},
    {"cf", R"(\p{Cf})"},
    {"closepunctuation", R"(\p{Pe})"},
    {"cn", R"(\p{Cn})"},
    {"cntrl", R"(\p{Cc})"},
    {"co", R"(\p{Co})"},
    {"connectorpunctuation", R"(\p{Pc})"},
    {"control", R"(\p{Cc})"},
    {"cs", R"(\p{Cs})"},
    {"currencysymbol", R"(\p{Sc})"},
    {"dashpunctuation", R"(\p{Pd})"},
    {"decimalnumber", R"(\p{Nd})"},
    {"digit", R"(\p{Nd})"},
    {"emoji", R"(\p{Emoji})"},
    {"emojipresentation", R"(\p{Emoji_Presentation})"},
    {"enclosingmark", R"(\p{Me})"},
    {"extendedpictographic", R"(\p{Extended_Pictographic})"},
    {"finalpunctuation", R"(\p{Pf})"},
    {"format", R"(\p{Cf})"},
    {"ideographic", R"(\p{Ideographic})"},
    {"initialpunctuation", R"(\p{Pi})"},
    {"l", R"(\p{L})"},
    {"lc", R"(\p{L&})"},
    {"letter", R"(\p{L})"},
    {"letternumber", R"(\p{Nl})"},
    {"lineseparator", R"(\p{Zl})"},
    {"ll", R"(\p{Ll})"},
    {"lm", R"(\p{Lm})"},
    {"lo", R"(\p{Lo})"},
    {"lower", R"(\p{Lowercase})"},
    {"lowercase", R"(\p{Lowercase})"},
    {"lowercaseletter", R"(\p{Ll})"},
    {"lt", R"(\p{Lt})"},
    {"lu", R"(\p{Lu})"},
    {"m", R"(\p{M})"},
    {"mark", R"(\p{M})"},
    {"math", R"(\p{Math})"},
    {"mathsymbol", R"(\p{Sm})"},
    {"mc", R"(\p{Mc})"},
    {"me", R"(\p{Me})"},
    {"mn", R"(\p{Mn})"},
    {"modifierletter", R"(\p{Lm})"},
    {"modifiersymbol", R"(\p{Sk})"},
    {"n", R"(\p{N})"},
    {"nd", R"(\p{Nd})"},
    {"nl", R"(\p{Nl})"},
    {"no", R"(\p{No})"},
    {"nonspacingmark", R"(\p{Mn})"},
    {"number", R"(\p{N})"},
    {"openpunctuation", R"(\p{Ps})"},
    {"other", R"(\p{C})"},
    {"otherletter", R"(\p{Lo})"},
    {"othernumber", R"(\p{No})"},
    {"otherpunctuation", R"(\p{Po})"},
    {"othersymbol", R"(\p{So})"},
    {"p", R"(\p{P})"},
    {"paragraphseparator", R"(\p{Zp})"},
    {"pc", R"(\p{Pc})"},
    {"pd", R"(\p{Pd})"},
    {"pe", R"(\p{Pe})"},
    {"pf", R"(\p{Pf})"},
    {"pi", R"(\p{Pi})"},
    {"po", R"(\p{Po})"},
    {"privateuse", R"(\p{Co})"},
    {"ps", R"(\p{Ps})"},
    {"punct", R"(\p{P})"},
    {"punctorsymbol", R"(\p{P}\p{S})"},
    {"punctuation", R"(\p{P})"},
    {"s", R"(\p{S})"},
    {"sc", R"(\p{Sc})"},
    {"separator", R"(\p{Z})"},
    {"sk", R"(\p{Sk})"},
    {"sm", R"(\p{Sm})"},
    {"so", R"(\p{So})"},
    {"space", kSpace},
    {"spaceseparator", R"(\p{Zs})"},
    {"spacingmark", R"(\p{Mc})"},
    {"surrogate", R"(\p{Cs})"},
    {"symbol", R"(\p{S})"},
    {"titlecaseletter", R"(\p{Lt})"},
    {"unassigned", R"(\p{Cn})"},
    {"upper", R"(\p{Uppercase})"},
    {"uppercase", R"(\p{Uppercase})"},
    {"uppercaseletter", R"(\p{Lu})"},
    {"whitespace", kSpace},
    {"word", kWord},
    {"xdigit", kHex},
    {"z", R"(\p{Z})"},
    {"zl", R"(\p{Zl})"},
    {"zp", R"(\p{Zp})"},
    {"zs", R"(\p{Zs})"},
});

// A set of characters under construction: the content of a PCRE2 class where it can be one, and
// alternatives (each matching one character) where it cannot.
struct CharacterSet {
  std::string members;
  std::string alternatives;  // "|A|B".

  void add(std::string_view content) { members += content; }
  void add_alternative(std::string_view fragment) { alternatives.append("|").append(fragment); }

  // A fragment that matches exactly one character of the set.
  std::string fragment() const {
    if (alternatives.empty()) return members.empty() ? "(?!)" : concat({"[", members, "]"});
    const std::string all =
        members.empty() ? alternatives.substr(1) : concat({"[", members, "]", alternatives});
    return concat({"(?:", all, ")"});
  }
  std::string negated_fragment() const {
    if (alternatives.empty() && !members.empty()) return concat({"[^", members, "]"});
    return concat({"(?:(?!", fragment(), ")(?s:.))"});
  }
};

class Translator {
 public:
  explicit Translator(std::string_view pattern) : in_(pattern) {}

  Result<std::string> translate() {
    while (at_ < in_.size() && error_.empty()) element();
    if (!error_.empty())
      return fail(ErrorCode::kConfig,
                  error_ + " in the regular expression " + std::string(in_.substr(0, 200)));
    return std::move(out_);
  }

 private:
  bool more() const { return at_ < in_.size(); }
  char peek(size_t ahead = 0) const { return at_ + ahead < in_.size() ? in_[at_ + ahead] : '\0'; }
  bool take(std::string_view text) {
    if (in_.substr(at_).substr(0, text.size()) != text) return false;
    at_ += text.size();
    return true;
  }
  void refuse(std::string what) {
    if (error_.empty()) error_ = std::move(what);
    at_ = in_.size();
  }

  // What a quantifier after it repeats.
  void atom(std::string_view fragment) {
    atom_start_ = out_.size();
    out_ += fragment;
  }

  // One character, escape, class, group bracket or quantifier.
  void element() {
    const char c = peek();
    if (c == '\\') {
      escape();
    } else if (c == '[') {
      ++at_;
      atom(bracket(0));
    } else if (c == '(') {
      group();
    } else if (c == ')') {
      ++at_;
      if (groups_.empty()) return refuse("unmatched )");
      out_ += ')';
      atom_start_ = groups_.back();
      groups_.pop_back();
    } else if (c == '{' && interval()) {
      return;
    } else if (c == '{' || c == '}') {
      ++at_;
      atom(c == '{' ? "\\{" : "\\}");
    } else if (c == '*' || c == '+' || c == '?') {
      ++at_;
      out_ += c;
      if (peek() == '?' || peek() == '+') out_ += in_[at_++];
    } else {
      const size_t begin = at_;
      decode_utf8(in_, at_);
      atom(in_.substr(begin, at_ - begin));
    }
  }

  void group() {
    groups_.push_back(out_.size());
    ++at_;
    out_ += '(';
    if (!take("?")) return;
    if (take("#")) {  // A comment.
      out_.pop_back();
      groups_.pop_back();
      const size_t end = in_.find(')', at_);
      at_ = end == std::string_view::npos ? in_.size() : end + 1;
      return;
    }
    out_ += '?';
    const char kind = peek();
    if (kind == '=' || kind == '!' || kind == '>' || kind == ':' || kind == '<' || kind == '\'') {
      out_ += in_[at_++];
      return;
    }
    options();
  }

  // (?i), (?m-i:...): Ruby's m is PCRE2's s.
  void options() {
    bool off = false;
    while (more() && peek() != ')' && peek() != ':') {
      const char option = in_[at_++];
      if (option == 'i' || option == '-') {
        off = off || option == '-';
        out_ += option;
      } else if (option == 'm') {
        out_ += 's';
      } else if (option != 'u' && !(option == 'x' && off)) {  // Unicode is always on.
        return refuse(std::string("option (?") + option + "...) is not supported");
      }
    }
    if (take(")")) {
      // Oniguruma takes everything up to the end of the group as one operand: a(?i)b|c is
      // a(?i:b|c). At a beginning that makes no difference.
      const size_t begin = groups_.back();
      if (begin > 0 && out_[begin - 1] != '(' && out_[begin - 1] != ':' && out_[begin - 1] != '|')
        return refuse("an option in the middle of an alternative is not supported");
      out_ += ')';
      groups_.pop_back();
    } else if (take(":")) {
      out_ += ':';
    }
  }

  // {n}, {n,}, {,m}, {n,m} with a following ? or +. False if it is no interval but plain text.
  bool interval() {
    size_t i = at_ + 1;
    const auto digits = [&] {
      const size_t begin = i;
      while (i < in_.size() && in_[i] >= '0' && in_[i] <= '9') ++i;
      return in_.substr(begin, i - begin);
    };
    const std::string_view low = digits();
    const bool comma = i < in_.size() && in_[i] == ',';
    if (comma) ++i;
    const std::string_view high = comma ? digits() : std::string_view{};
    if (i >= in_.size() || in_[i] != '}' || (low.empty() && high.empty())) return false;
    at_ = i + 1;
    out_ += '{';
    out_ += low.empty() ? "0" : low;
    if (comma) out_.append(",").append(high);
    out_ += '}';
    if (comma && peek() == '?') {
      out_ += in_[at_++];
    } else if (peek() == '+' || (!comma && peek() == '?')) {
      // After an interval + is a quantifier of its own, and so is ? after {n}; in PCRE2 they would
      // make it possessive or lazy.
      out_.insert(std::min(atom_start_, out_.size()), "(?:");
      out_ += ')';
      out_ += in_[at_++];
    }
    return true;
  }

  void escape() {
    const char c = peek(1);
    at_ += 2;
    if (at_ > in_.size()) return refuse("nothing after the last \\");
    if (const std::optional<std::string> shorthand = shorthand_class(c)) return atom(*shorthand);
    switch (c) {
      case 'p':
      case 'P': {
        CharacterSet set;
        property(c == 'P', set);
        return atom(set.fragment());
      }
      case 'b':
        return atom(boundary(false));
      case 'B':
        return atom(boundary(true));
      case 'R':
      case 'X':
      case 'K':
      case 'A':
      case 'z':
      case 'Z':
      case 'G':
      case 'N':
        return atom(std::string("\\") + c);
      case 'O':
        return atom("(?s:.)");
      case 'k':
      case 'g':
        return reference(c);
      default:
        break;
    }
    if (c >= '1' && c <= '9') return atom(std::string("\\") + c);
    at_ -= 2;
    const std::optional<char32_t> literal = literal_escape();
    if (literal) atom(escaped(*literal));
  }

  // \k<name> and \g<name>: the same in both.
  void reference(char kind) {
    const size_t end = in_.find('>', at_);
    if (peek() != '<' || end == std::string_view::npos)
      return refuse(std::string("expected <name> after \\") + kind);
    atom(concat({"\\", {&kind, 1}, in_.substr(at_, end + 1 - at_)}));
    at_ = end + 1;
  }

  static std::string boundary(bool negated) {
    const std::string word = concat({"[", kWord, "]"});
    // After a word character exactly if (border: unless) before one.
    return concat({"(?:(?<=", word, ")(?", negated ? "=" : "!", word, ")|(?<!", word, ")(?",
                   negated ? "!" : "=", word, "))"});
  }

  // \s and its like as a class content, or nothing.
  static std::string_view shorthand_members(char lower) {
    switch (lower) {
      case 's':
        return kSpace;
      case 'w':
        return kWord;
      case 'd':
        return R"(\p{Nd})";
      case 'h':
        return kHex;
      default:
        return {};
    }
  }
  static std::optional<std::string> shorthand_class(char c) {
    const char lower = static_cast<char>(c | 0x20);
    const std::string_view members = shorthand_members(lower);
    if (members.empty()) return std::nullopt;
    return (c == lower ? "[" : "[^") + std::string(members) + "]";
  }

  static std::string escaped(char32_t c) {
    static constexpr char kDigits[] = "0123456789abcdef";
    std::string text = "\\x{";
    for (int shift = 20; shift >= 0; shift -= 4) text += kDigits[c >> shift & 15];
    text += '}';
    return text;
  }

  // At a backslash that stands for one character: \n, \x41, \x{41}, \u0041, \., ...
  std::optional<char32_t> literal_escape() {
    at_ += 1;
    if (!more()) {
      refuse("nothing after the last \\");
      return std::nullopt;
    }
    const char c = peek();
    static constexpr std::string_view kLetters = "tvnrbfae", kMeans = "\t\v\n\r\b\f\a\x1b";
    if (const size_t known = kLetters.find(c); known != std::string_view::npos) {
      ++at_;
      return static_cast<char32_t>(kMeans[known]);
    }
    if (c == 'x' && peek(1) == '{') {
      at_ += 2;
      const std::optional<char32_t> value = hex(8);
      if (!take("}")) refuse("expected \\x{...}");
      return value;
    }
    if (c == 'x' || c == 'u') {
      ++at_;
      const size_t begin = at_;
      const std::optional<char32_t> value = hex(c == 'x' ? 2 : 4);
      if (c == 'u' && at_ - begin != 4) refuse("expected four digits after \\u");
      // \x80 and above are bytes in Oniguruma, not characters.
      if (c == 'x' && value && *value >= 0x80) refuse("a byte above \\x7F is not supported");
      return value;
    }
    if (c == '0') {
      ++at_;
      char32_t value = 0;
      for (int i = 0; i < 2 && peek() >= '0' && peek() <= '7'; ++i)
        value = value * 8 + static_cast<char32_t>(in_[at_++] - '0');
      return value;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '1' && c <= '9')) {
      refuse(std::string("\\") + c + " is not supported");
      return std::nullopt;
    }
    return decode_utf8(in_, at_);
  }

  std::optional<char32_t> hex(size_t digits_max) {
    char32_t value = 0;
    size_t digits = 0;
    for (; digits < digits_max; ++digits, ++at_) {
      const char c = peek();
      const char lower = static_cast<char>(c | 0x20);
      if (c >= '0' && c <= '9') {
        value = value * 16 + static_cast<char32_t>(c - '0');
      } else if (lower >= 'a' && lower <= 'f') {
        value = value * 16 + static_cast<char32_t>(lower - 'a' + 10);
      } else {
        break;
      }
    }
    if (digits == 0 || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) {
      refuse("expected the number of a character in hexadecimal");
      return std::nullopt;
    }
    return value;
  }

  // After \p or \P.
  void property(bool negated, CharacterSet& set) {
    if (!take("{")) return refuse("expected { after \\p");
    if (take("^")) negated = !negated;
    const size_t end = in_.find('}', at_);
    if (end == std::string_view::npos) return refuse("\\p{ without }");
    const std::string_view name = in_.substr(at_, end - at_);
    at_ = end + 1;
    named(name, negated, set);
  }

  void named(std::string_view name, bool negated, CharacterSet& set) {
    std::string key;
    for (const char c : name) {
      if (c != ' ' && c != '-' && c != '_')
        key += static_cast<char>(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
    }
    const auto* known =
        std::find_if(kNames.begin(), kNames.end(), [&](const Name& n) { return n.name == key; });
    std::string members;
    if (known != kNames.end()) {
      members = known->members;
    } else if (key == "graph" || key == "print") {
      // Everything but spaces, controls, unassigned; print has the blanks too.
      const std::string graph = concat({"[^", kSpace, R"(\p{Cc}\p{Cn}\p{Cs}])"});
      const std::string set_of = concat({"(?:", graph, key == "print" ? R"(|\p{Zs})" : "", ")"});
      return set.add_alternative(negated ? concat({"(?:(?!", set_of, ")(?s:.))"}) : set_of);
    } else if (!key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
                 return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
               })) {
      members = concat({"\\p{sc:", key, "}"});  // PCRE2 refuses names it does not know.
    } else {
      return refuse(concat({"property ", name, " is not supported"}));
    }
    if (negated) {
      set.add_alternative(concat({"[^", members, "]"}));
    } else {
      set.add(members);
    }
  }

  // After [: a class with ranges, nested classes and intersections, as one fragment.
  std::string bracket(int depth) {
    if (depth >= kClassDepthMax) {
      refuse("brackets in brackets are too deep");
      return {};
    }
    const bool negated = take("^");
    CharacterSet set;          // Since [ or the last &&.
    std::string intersection;  // Lookaheads of the sets before each &&.
    bool first = true;
    while (error_.empty()) {
      if (!more()) {
        refuse("[ without ]");
        return {};
      }
      if (peek() == ']' && !first) break;
      first = false;
      if (take("&&")) {
        intersection += concat({"(?=", set.fragment(), ")"});
        set = {};
      } else {
        bracket_item(depth, set);
      }
    }
    ++at_;
    if (intersection.empty()) return negated ? set.negated_fragment() : set.fragment();
    const std::string all = concat({"(?:", intersection, set.fragment(), ")"});
    return negated ? concat({"(?:(?!", all, ")(?s:.))"}) : all;
  }

  // One item of a class: nested class, POSIX bracket, shorthand, property, character or range.
  void bracket_item(int depth, CharacterSet& set) {
    if (peek() == '[' && peek(1) == ':') {
      const size_t end = in_.find(":]", at_ + 2);
      const std::string_view inside =
          end == std::string_view::npos ? std::string_view{} : in_.substr(at_ + 2, end - at_ - 2);
      const bool negated = !inside.empty() && inside[0] == '^';
      const std::string_view name = inside.substr(negated ? 1 : 0);
      if (!name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyz") == name.npos) {
        at_ = end + 2;
        // The one name that means something else in brackets: symbols are in it as well.
        return named(name == "punct" ? "punctorsymbol" : name, negated, set);
      }
    }
    if (take("[")) return set.add_alternative(bracket(depth + 1));
    if (peek() == '\\') {
      const char c = peek(1);
      const char lower = static_cast<char>(c | 0x20);
      if (const std::string_view members = shorthand_members(lower); !members.empty()) {
        at_ += 2;
        if (c == lower) {
          set.add(members);
        } else {
          set.add_alternative(concat({"[^", members, "]"}));
        }
        return;
      }
      if (c == 'p' || c == 'P') {
        at_ += 2;
        return property(c == 'P', set);
      }
    }
    const std::optional<char32_t> low = bracket_character();
    if (!low) return;
    if (peek() != '-' || peek(1) == ']' || at_ + 1 >= in_.size() ||
        (peek(1) == '&' && peek(2) == '&') || peek(1) == '[' || ends_range_as_class()) {
      return set.add(escaped(*low));
    }
    ++at_;
    const std::optional<char32_t> high = bracket_character();
    if (!high) return;
    if (*high < *low) return refuse("a range of characters ends before it begins");
    set.add(concat({escaped(*low), "-", escaped(*high)}));
  }

  // At a hyphen: a shorthand or property follows, so that the hyphen is a character.
  bool ends_range_as_class() const {
    return peek(1) == '\\' && (!shorthand_members(static_cast<char>(peek(2) | 0x20)).empty() ||
                               peek(2) == 'p' || peek(2) == 'P');
  }

  std::optional<char32_t> bracket_character() {
    if (peek() == '\\') return literal_escape();
    return decode_utf8(in_, at_);
  }

  std::string_view in_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_start_ = 0;
  std::vector<size_t> groups_;  // Where in out_ the open groups begin.
  std::string error_;
};

}  // namespace

Result<std::string> translate_oniguruma(std::string_view pattern) {
  if (!valid_utf8(pattern))
    return fail(ErrorCode::kConfig, "expected UTF-8 in a regular expression");
  return Translator(pattern).translate();
}

}  // namespace weir::text
