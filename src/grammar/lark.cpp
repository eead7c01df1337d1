#include "grammar/lark.h"

#include <string>
#include <vector>

#include "base/concat.h"
#include "grammar/named_rules.h"
#include "grammar/regex.h"
#include "grammar/text_reader.h"

namespace weir::grammar {

namespace {

struct CommonTerminal {
  std::string_view name, pattern;
};
// What `%import common` offers, as Lark documents it.
constexpr CommonTerminal kCommon[] = {
    {"DIGIT", "[0-9]"},
    {"HEXDIGIT", "[0-9A-Fa-f]"},
    {"INT", "[0-9]+"},
    {"SIGNED_INT", "[+-]?[0-9]+"},
    {"DECIMAL", "[0-9]+\\.[0-9]*|\\.[0-9]+"},
    {"FLOAT", "[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
    {"SIGNED_FLOAT",
     "[+-]?(?:[0-9]+[eE][+-]?[0-9]+|(?:[0-9]+\\.[0-9]*|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"},
    {"NUMBER", "(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
    {"SIGNED_NUMBER", "[+-]?(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:[eE][+-]?[0-9]+)?"},
    {"ESCAPED_STRING", "\"(?:[^\"\\\\\\n]|\\\\.)*\""},
    {"LCASE_LETTER", "[a-z]"},
    {"UCASE_LETTER", "[A-Z]"},
    {"LETTER", "[A-Za-z]"},
    {"WORD", "[A-Za-z]+"},
    {"CNAME", "[A-Za-z_][A-Za-z0-9_]*"},
    {"WS_INLINE", "[ \\t]+"},
    {"WS", "[ \\t\\f\\r\\n]+"},
    {"CR", "\\r"},
    {"LF", "\\n"},
    {"NEWLINE", "(?:\\r?\\n)+"},
    {"SH_COMMENT", "#[^\\n]*"},
    {"CPP_COMMENT", "//[^\\n]*"},
};

class LarkParser {
 public:
  LarkParser(Grammar& grammar, std::string_view text, Spelling spelling)
      : grammar_(grammar),
        in_(text),
        spelling_(spelling),
        ignored_(grammar.add_rule("ignored", /*keep=*/true)),
        rules_(grammar) {}

  Result<void> parse() {
    skip_lines();
    while (!in_.done()) {
      if (in_.take("%")) {
        WEIR_TRY(directive());
      } else {
        WEIR_TRY(definition());
      }
      skip_lines();
    }
    const auto start = rules_.find("start");
    if (!start)
      return fail(ErrorCode::kInvalid,
                  "The grammar has no rule 'start' (Lark) and no 'root ::=' (GBNF); expected one.");
    grammar_.define(ignored_, grammar_.repeat(grammar_.any(ignores_), 0, kUnbounded));
    grammar_.root = grammar_.add_rule("output");
    grammar_.define(grammar_.root,
                    grammar_.concat({grammar_.rule(ignored_), grammar_.rule(*start)}));
    return {};
  }

 private:
  void skip_blanks() {
    while (in_.peek() == ' ' || in_.peek() == '\t' || in_.peek() == '\r') step();
    if (in_.next_is("//") || in_.peek() == '#')
      while (!in_.done() && in_.peek() != '\n') step();
  }
  void step() { in_.move_to(in_.at() + 1); }
  void skip_lines() {
    for (skip_blanks(); in_.peek() == '\n'; skip_blanks()) step();
  }
  // Inside brackets lines do not count; elsewhere a line that begins with '|' goes on.
  void skip_within() {
    if (depth_ > 1) {
      skip_lines();
      return;
    }
    skip_blanks();
    const size_t here = in_.at();
    skip_lines();
    if (in_.peek() != '|') in_.move_to(here);
  }

  static bool is_terminal(std::string_view name) {
    const size_t letter = name.find_first_not_of('_');
    return letter != std::string_view::npos && name[letter] >= 'A' && name[letter] <= 'Z';
  }

  Result<void> define(std::string_view name, ExprId body) {
    const RuleId id = rules_.of(name);
    if (rules_.is_defined(id))
      return in_.error(concat({"'", name.substr(0, 64), "' is defined twice"}));
    grammar_.define(id, body);
    return {};
  }

  Result<void> directive() {
    const std::string_view word = in_.name();
    skip_blanks();
    if (word == "ignore") {
      in_terminal_ = true;
      WEIR_ASSIGN(const ExprId what, alternatives());
      ignores_.push_back(what);
    } else if (word == "import") {
      if (!in_.take("common.")) return in_.error("expected %import common.NAME");
      const std::string_view name = in_.name();
      const auto found = std::ranges::find(kCommon, name, &CommonTerminal::name);
      if (found == std::end(kCommon))
        return in_.error(concat({"'common.", name.substr(0, 64), "' is not supported"}));
      WEIR_ASSIGN(const ExprId body,
                  regex(grammar_, found->pattern, spelling_, RegexMatch::kWhole));
      skip_blanks();
      std::string_view as = name;
      if (in_.take("->")) {
        skip_blanks();
        as = in_.name();
      }
      WEIR_TRY(define(as, body));
    } else {
      return in_.error(concat({"'%", word.substr(0, 64), "' is not supported"}));
    }
    skip_blanks();
    if (!in_.done() && in_.peek() != '\n') return in_.error("expected the end of the line");
    return {};
  }

  Result<void> definition() {
    while (in_.peek() == '?' || in_.peek() == '!') step();  // Shape the tree, not the language.
    const std::string_view name = in_.name();
    if (name.empty()) return in_.error("expected the name of a rule or terminal");
    if (in_.take(".")) in_.number();  // A priority.
    if (in_.peek() == '{') return in_.error("templates are not supported");
    skip_blanks();
    if (!in_.take(":")) return in_.error(concat({"expected ':' after '", name.substr(0, 64), "'"}));
    in_terminal_ = is_terminal(name);
    WEIR_ASSIGN(const ExprId body, alternatives());
    if (!in_.done() && in_.peek() != '\n') return in_.error("expected the end of the line");
    return define(name, body);
  }

  Result<ExprId> alternatives() {
    if (++depth_ > kGroupDepthMax) return in_.error("groups are nested too deeply");
    std::vector<ExprId> ways;
    do {
      skip_within();
      WEIR_ASSIGN(const ExprId way, sequence());
      ways.push_back(way);
    } while (in_.take("|"));
    --depth_;
    return grammar_.any(ways);
  }

  Result<ExprId> sequence() {
    std::vector<ExprId> parts;
    while (!in_.done() && std::string_view("|)]\n").find(in_.peek()) == std::string_view::npos) {
      if (in_.take("->")) {  // An alias names a node of the tree.
        skip_blanks();
        in_.name();
      } else {
        WEIR_ASSIGN(ExprId part, item());
        WEIR_ASSIGN(part, repeated(part));
        parts.push_back(part);
      }
      skip_within();
    }
    return grammar_.concat(parts);
  }

  // A terminal within a rule: what is ignored may follow it.
  ExprId terminal(ExprId expr) {
    return in_terminal_ ? expr : grammar_.concat({expr, grammar_.rule(ignored_)});
  }

  Result<ExprId> item() {
    if (in_.peek() == '"') {
      WEIR_ASSIGN(const ExprId expr, text_or_range());
      return terminal(expr);
    }
    if (in_.take("/")) {
      WEIR_ASSIGN(const ExprId expr, pattern());
      return terminal(expr);
    }
    for (const auto& [open, close] : {std::pair{"(", ")"}, std::pair{"[", "]"}}) {
      if (!in_.take(open)) continue;
      WEIR_ASSIGN(const ExprId group, alternatives());
      if (!in_.take(close)) return in_.error(std::string("expected '") + close + "'");
      return *open == '[' ? grammar_.optional(group) : group;
    }
    const std::string_view name = in_.name();
    if (name.empty()) return in_.error("expected a string, a regex, a group or a name");
    if (in_.peek() == '{') return in_.error("templates are not supported");
    const ExprId rule = grammar_.rule(rules_.of(name));
    return is_terminal(name) ? terminal(rule) : rule;
  }

  Result<std::vector<char32_t>> text() {
    if (!in_.take("\"")) return in_.error("expected a string");
    std::vector<char32_t> characters;
    while (!in_.take("\"")) {
      if (in_.done() || in_.peek() == '\n') return in_.error("expected '\"'");
      if (in_.take("\\")) {
        WEIR_ASSIGN(const char32_t c, in_.escape());
        characters.push_back(c);
      } else {
        characters.push_back(in_.character());
      }
    }
    return characters;
  }

  Result<ExprId> text_or_range() {
    WEIR_ASSIGN(const std::vector<char32_t> characters, text());
    if (in_.take("..")) {
      WEIR_ASSIGN(const std::vector<char32_t> last, text());
      if (characters.size() != 1 || last.size() != 1 || characters[0] > last[0])
        return in_.error("expected a range of two single characters in order");
      return spell(grammar_, CharSet{{characters[0], last[0]}}, spelling_);
    }
    const bool any_case = in_.take("i");
    std::vector<ExprId> parts;
    for (const char32_t c : characters) {
      CharSet set{{c, c}};
      const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (any_case && letter) set.add(c ^ 0x20, c ^ 0x20);
      parts.push_back(spell(grammar_, set, spelling_));
    }
    return grammar_.concat(parts);
  }

  // After the first slash.
  Result<ExprId> pattern() {
    const size_t begin = in_.at();
    while (!in_.done() && in_.peek() != '/' && in_.peek() != '\n') {
      if (in_.peek() == '\\') step();
      if (!in_.done()) step();
    }
    const std::string_view text = in_.from(begin);
    if (!in_.take("/")) return in_.error("expected '/' at the end of the regex");
    if (TextReader::name_character(in_.peek())) return in_.error("regex flags are not supported");
    return regex(grammar_, text, spelling_, RegexMatch::kWhole);
  }

  Result<ExprId> repeated(ExprId part) {
    if (in_.take("*")) return grammar_.repeat(part, 0, kUnbounded);
    if (in_.take("+")) return grammar_.repeat(part, 1, kUnbounded);
    if (in_.take("?")) return grammar_.optional(part);
    skip_blanks();
    if (!in_.take("~")) return part;
    skip_blanks();
    const std::optional<int32_t> min = in_.number();
    std::optional<int32_t> max = min;
    if (in_.take("..")) max = in_.number();
    if (!min || !max || *min > *max || *max > kRepeatMax)
      return in_.error("expected ~n or ~n..m of at most " + std::to_string(kRepeatMax));
    return grammar_.repeat(part, *min, *max);
  }

  Grammar& grammar_;
  TextReader in_;
  const Spelling spelling_;
  const RuleId ignored_;
  std::vector<ExprId> ignores_;
  NamedRules rules_;
  bool in_terminal_ = false;
  int depth_ = 0;
};

}  // namespace

Result<void> lark(Grammar& grammar, std::string_view text, Spelling spelling) {
  WEIR_TRY(TextReader::check(text));
  return LarkParser(grammar, text, spelling).parse();
}

}  // namespace weir::grammar
