#include "grammar/gbnf.h"

#include <string>
#include <vector>

#include "base/concat.h"
#include "grammar/named_rules.h"
#include "grammar/text_reader.h"

namespace weir::grammar {

namespace {

class GbnfParser {
 public:
  GbnfParser(Grammar& grammar, std::string_view text)
      : grammar_(grammar), in_(text), rules_(grammar) {}

  Result<void> parse() {
    skip_space();
    while (!in_.done()) WEIR_TRY(rule());
    const auto root = rules_.find("root");
    if (!root)
      return fail(ErrorCode::kInvalid, "The grammar has no rule 'root'; expected 'root ::= ...'.");
    grammar_.root = *root;
    return {};
  }

 private:
  void skip_space() {
    for (;;) {
      while (!in_.done() && std::string_view(" \t\r\n").find(in_.peek()) != std::string_view::npos)
        in_.move_to(in_.at() + 1);
      if (in_.peek() != '#') return;
      while (!in_.done() && in_.peek() != '\n') in_.move_to(in_.at() + 1);
    }
  }

  // `name ::=` stands here: the rule before is at its end.
  bool at_rule() {
    const size_t here = in_.at();
    const bool found = !in_.name().empty() && (skip_space(), in_.next_is("::="));
    in_.move_to(here);
    return found;
  }

  Result<void> rule() {
    const std::string_view name = in_.name();
    if (name.empty()) return in_.error("expected the name of a rule");
    skip_space();
    if (!in_.take("::="))
      return in_.error(concat({"expected '::=' after '", name.substr(0, 64), "'"}));
    skip_space();
    const RuleId id = rules_.of(name);
    if (rules_.is_defined(id))
      return in_.error(concat({"the rule '", name.substr(0, 64), "' is defined twice"}));
    WEIR_ASSIGN(const ExprId body, alternatives());
    if (!in_.done() && !at_rule()) return in_.error("expected the end of the rule");
    grammar_.define(id, body);
    return {};
  }

  Result<ExprId> alternatives() {
    if (++depth_ > kGroupDepthMax) return in_.error("groups are nested too deeply");
    std::vector<ExprId> ways;
    do {
      skip_space();
      WEIR_ASSIGN(const ExprId way, sequence());
      ways.push_back(way);
    } while (in_.take("|"));
    --depth_;
    return grammar_.any(ways);
  }

  Result<ExprId> sequence() {
    std::vector<ExprId> parts;
    while (!in_.done() && in_.peek() != '|' && in_.peek() != ')' && !at_rule()) {
      WEIR_ASSIGN(ExprId part, item());
      WEIR_ASSIGN(part, repeated(part));
      parts.push_back(part);
      skip_space();
    }
    return grammar_.concat(parts);
  }

  Result<ExprId> item() {
    if (in_.take("\"")) return literal();
    if (in_.take("[")) return char_class();
    if (in_.take(".")) return grammar_.characters(CharSet::all());
    if (in_.take("(")) {
      if (in_.next_is("?")) return in_.error("lookahead is not supported");
      WEIR_ASSIGN(const ExprId group, alternatives());
      if (!in_.take(")")) return in_.error("expected ')'");
      return group;
    }
    if (in_.peek() == '<' || in_.peek() == '!')
      return in_.error("tokens by name are not supported");
    const std::string_view name = in_.name();
    if (name.empty()) return in_.error("expected a literal, a class, a group or a rule's name");
    return grammar_.rule(rules_.of(name));
  }

  // Characters from here on, one UTF-8 literal.
  Result<ExprId> literal() {
    std::string text;
    while (!in_.take("\"")) {
      if (in_.done()) return in_.error("expected '\"' at the end of the literal");
      WEIR_ASSIGN(const char32_t c, character());
      append_utf8(text, c);
    }
    return grammar_.literal(text);
  }

  Result<char32_t> character() {
    if (in_.take("\\")) return in_.escape();
    return in_.character();
  }

  Result<ExprId> char_class() {
    const bool negated = in_.take("^");
    CharSet set;
    while (!in_.take("]")) {
      if (in_.done()) return in_.error("expected ']'");
      WEIR_ASSIGN(const char32_t first, character());
      char32_t last = first;
      if (in_.next_is("-") && !in_.next_is("-]")) {
        in_.take("-");
        if (in_.done()) return in_.error("expected ']'");
        WEIR_ASSIGN(last, character());
      }
      if (first > last) return in_.error("a range of characters is the wrong way round");
      set.add(first, last);
    }
    return grammar_.characters(negated ? set.negated() : set);
  }

  Result<ExprId> repeated(ExprId part) {
    for (;;) {
      skip_space();
      if (in_.take("*")) {
        part = grammar_.repeat(part, 0, kUnbounded);
      } else if (in_.take("+")) {
        part = grammar_.repeat(part, 1, kUnbounded);
      } else if (in_.take("?")) {
        part = grammar_.optional(part);
      } else if (in_.take("{")) {
        WEIR_ASSIGN(part, bounded(part));
      } else {
        return part;
      }
    }
  }

  // After '{': m}, m,} or m,n}.
  Result<ExprId> bounded(ExprId part) {
    skip_space();
    const std::optional<int32_t> min = in_.number();
    skip_space();
    std::optional<int32_t> max = min;
    if (in_.take(",")) {
      skip_space();
      max = in_.number();
      if (!max) max = kUnbounded;
      skip_space();
    }
    if ((!min && max == min) || !in_.take("}")) return in_.error("expected {m}, {m,} or {m,n}");
    const int32_t low = min.value_or(0);
    if (low > *max || low > kRepeatMax || (*max != kUnbounded && *max > kRepeatMax))
      return in_.error("expected bounds in order, of at most " + std::to_string(kRepeatMax));
    return grammar_.repeat(part, low, *max);
  }

  Grammar& grammar_;
  TextReader in_;
  NamedRules rules_;
  int depth_ = 0;
};

}  // namespace

Result<void> gbnf(Grammar& grammar, std::string_view text) {
  WEIR_TRY(TextReader::check(text));
  return GbnfParser(grammar, text).parse();
}

}  // namespace weir::grammar
