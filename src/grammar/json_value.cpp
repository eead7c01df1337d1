#include "grammar/json_value.h"

#include <algorithm>

#include "grammar/decimal.h"
#include "grammar/json_text.h"
#include "grammar/machine.h"

namespace weir::grammar {

namespace {

// Of an indentation: see the header. 8 are two levels of four, or one as wide as it comes.
constexpr int32_t kColumnsPerLevel = 4;
constexpr int32_t kColumnsMin = 8;
constexpr int32_t kColumnsMax = 64;

}  // namespace

JsonParts::JsonParts(Grammar& g, int levels) : grammar_(g) {
  const int32_t columns = std::clamp(levels * kColumnsPerLevel, kColumnsMin, kColumnsMax);
  // A rule of its own: written out everywhere it would be most of the automaton.
  const RuleId indent = g.add_rule("indentation", /*keep=*/true);
  g.define(indent, g.repeat(g.any({g.literal(" "), g.literal("\t")}), 0, columns));
  space_ = g.any({g.empty(), g.literal(" "),
                  g.concat({g.optional(g.literal("\r")), g.literal("\n"), g.rule(indent)})});
  comma_ = g.concat({g.literal(","), space_});
  colon_ = g.concat({g.literal(":"), g.optional(g.literal(" "))});
  quote_ = g.literal("\"");
  // Repeated often: with as few states as possible.
  Result<Dfa> character = machine_of(g, any_json_character(g));
  // An error: the budget was exhausted before, and so is the grammar.
  character_ = character ? g.machine(std::move(*character)) : g.nothing();
  text_ = quoted(g.repeat(character_, 0, kUnbounded));
}

ExprId JsonParts::bracketed(char open, ExprId content, char close, bool or_empty) {
  Grammar& g = grammar_;
  const ExprId begin = g.literal({&open, 1}), end = g.literal({&close, 1});
  const ExprId none = g.concat({begin, space_, end});
  if (content == g.empty()) return none;
  return g.any({g.concat({begin, space_, content, space_, end}), or_empty ? none : g.nothing()});
}

ExprId JsonParts::items(ExprId item, int32_t min, int32_t max) {
  Grammar& g = grammar_;
  if (max == 0) return g.empty();
  const int32_t more = max == kUnbounded ? kUnbounded : max - 1;
  const ExprId some =
      g.concat({item, g.repeat(g.concat({comma_, item}), min > 0 ? min - 1 : 0, more)});
  return min == 0 ? g.optional(some) : some;
}

// Strings and numbers are written out where a value may stand, so that the automaton need not call
// and return for them; only objects and arrays are called.
void JsonParts::define_any() {
  Grammar& g = grammar_;
  object_ = g.add_rule("object", /*keep=*/true);
  array_ = g.add_rule("array", /*keep=*/true);
  const ExprId any_number = number(g, {}).value_or(g.nothing());  // No bounds, no other error.
  value_ = g.any({text_, any_number, g.literal("true"), g.literal("false"), g.literal("null"),
                  g.rule(object_), g.rule(array_)});
  g.define(object_, bracketed('{', items(member(text_, value_), 1, kUnbounded), '}', true));
  g.define(array_, bracketed('[', items(value_, 1, kUnbounded), ']', true));
}

ExprId JsonParts::value() {
  if (value_ == kNoExpr) define_any();
  return value_;
}

ExprId JsonParts::object() {
  if (value_ == kNoExpr) define_any();
  return grammar_.rule(object_);
}

ExprId JsonParts::array() {
  if (value_ == kNoExpr) define_any();
  return grammar_.rule(array_);
}

}  // namespace weir::grammar
