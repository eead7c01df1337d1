#include "grammar/left_recursion.h"

#include <vector>

namespace weir::grammar {

namespace {

using Kind = Grammar::Kind;

// The alternatives of a body, those of nested choices too.
void flatten(const Grammar& grammar, ExprId id, std::vector<ExprId>& out) {
  std::vector<ExprId> stack{id};
  while (!stack.empty()) {
    const ExprId top = stack.back();
    stack.pop_back();
    const Grammar::Expr& expr = grammar.expr(top);
    if (expr.kind != Kind::kAny) {
      out.push_back(top);
      continue;
    }
    const auto children = grammar.children(expr);
    for (size_t i = children.size(); i-- > 0;) stack.push_back(children[i]);
  }
}

bool is_rule(const Grammar& grammar, ExprId id, RuleId rule) {
  const Grammar::Expr& expr = grammar.expr(id);
  return expr.kind == Kind::kRule && expr.a == rule;
}

void rewrite(Grammar& grammar, RuleId rule) {
  std::vector<ExprId> alternatives, bases, tails;
  flatten(grammar, grammar.rules()[static_cast<size_t>(rule)].body, alternatives);
  bool found = false;
  for (const ExprId alternative : alternatives) {
    if (is_rule(grammar, alternative, rule)) {
      found = true;  // A rule that is itself says nothing.
      continue;
    }
    const Grammar::Expr expr = grammar.expr(alternative);
    if (expr.kind != Kind::kConcat || !is_rule(grammar, grammar.children(expr)[0], rule)) {
      bases.push_back(alternative);
      continue;
    }
    found = true;
    const auto rest = grammar.children(expr).subspan(1);
    tails.push_back(grammar.concat(std::vector<ExprId>(rest.begin(), rest.end())));
  }
  if (!found) return;
  const ExprId tail = grammar.repeat(grammar.any(tails), 0, kUnbounded);
  grammar.define(rule, grammar.concat({grammar.any(bases), tail}));
}

}  // namespace

void remove_left_recursion(Grammar& grammar) {
  for (RuleId rule = 0; rule < static_cast<RuleId>(grammar.rules().size()); ++rule)
    if (grammar.rules()[static_cast<size_t>(rule)].body != kNoExpr) rewrite(grammar, rule);
}

}  // namespace weir::grammar
