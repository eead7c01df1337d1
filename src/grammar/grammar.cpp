#include "grammar/grammar.h"

#include <utility>

#include "base/check.h"

namespace weir::grammar {

Grammar::Grammar() {
  exprs_.push_back({.kind = Kind::kNothing});
  exprs_.push_back({.kind = Kind::kEmpty});
}

// Beyond its limit a grammar stays as it is; what is built then means nothing.
ExprId Grammar::add(Expr expr) {
  if (too_large()) return nothing();
  exprs_.push_back(expr);
  return static_cast<ExprId>(exprs_.size()) - 1;
}

ExprId Grammar::symbols(uint16_t first, uint16_t last) {
  return add({.kind = Kind::kSymbols, .a = first, .b = last});
}

ExprId Grammar::literal(std::string_view text) {
  if (text.empty()) return empty();
  if (too_large()) return nothing();
  const auto begin = static_cast<int32_t>(text_.size());
  text_ += text;
  return add({.kind = Kind::kLiteral, .a = begin, .b = static_cast<int32_t>(text.size())});
}

ExprId Grammar::characters(const CharSet& set) {
  if (set.empty()) return nothing();
  sets_.push_back(set);
  return add({.kind = Kind::kCharacters, .a = static_cast<int32_t>(sets_.size()) - 1});
}

ExprId Grammar::add_children(Kind kind, std::span<const ExprId> parts) {
  if (too_large()) return nothing();
  const auto begin = static_cast<int32_t>(children_.size());
  children_.insert(children_.end(), parts.begin(), parts.end());
  return add({.kind = kind, .a = begin, .b = static_cast<int32_t>(parts.size())});
}

ExprId Grammar::concat(std::span<const ExprId> parts) {
  std::vector<ExprId> kept;
  for (const ExprId part : parts) {
    if (part == nothing()) return nothing();
    if (part != empty()) kept.push_back(part);
  }
  if (kept.empty()) return empty();
  return kept.size() == 1 ? kept.front() : add_children(Kind::kConcat, kept);
}

ExprId Grammar::any(std::span<const ExprId> parts) {
  std::vector<ExprId> kept;
  for (const ExprId part : parts)
    if (part != nothing()) kept.push_back(part);
  if (kept.empty()) return nothing();
  return kept.size() == 1 ? kept.front() : add_children(Kind::kAny, kept);
}

ExprId Grammar::repeat(ExprId expr, int32_t min, int32_t max) {
  CHECK(0 <= min && min <= max);
  if (max == 0 || expr == empty()) return empty();
  if (expr == nothing()) return min == 0 ? empty() : nothing();
  if (min == 1 && max == 1) return expr;
  return add({.kind = Kind::kRepeat, .a = expr, .min = min, .max = max});
}

ExprId Grammar::list(List list) {
  CHECK(0 <= list.min && list.min <= list.max);
  lists_.push_back(std::move(list));
  return add({.kind = Kind::kList, .a = static_cast<int32_t>(lists_.size()) - 1});
}

ExprId Grammar::machine(Dfa dfa) {
  if (dfa.empty()) return nothing();
  machines_.push_back(std::move(dfa));
  return add({.kind = Kind::kMachine, .a = static_cast<int32_t>(machines_.size()) - 1});
}

ExprId Grammar::rule(RuleId rule) { return add({.kind = Kind::kRule, .a = rule}); }

RuleId Grammar::add_rule(std::string_view name, bool keep) {
  rules_.push_back({.name = std::string(name.substr(0, 64)), .body = kNoExpr, .keep = keep});
  return static_cast<RuleId>(rules_.size()) - 1;
}

}  // namespace weir::grammar
