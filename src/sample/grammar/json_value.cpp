#include "sample/grammar/json_value.h"

#include "sample/grammar/decimal.h"
#include "sample/grammar/json_text.h"
#include "sample/grammar/machine.h"

namespace weir::sample::grammar {

namespace {

// Sixteen levels of four columns.
constexpr int32_t kIndentMax = 64;

}  // namespace

JsonParts::JsonParts(Grammar& g) : grammar_(g) {
  // A rule of its own: written out everywhere it would be most of the automaton.
  const RuleId indent = g.add_rule("indentation", /*keep=*/true);
  g.define(indent, g.repeat(g.any({g.literal(" "), g.literal("\t")}), 0, kIndentMax));
  space_ = g.any({g.empty(), g.literal(" "),
                  g.concat({g.optional(g.literal("\r")), g.literal("\n"), g.rule(indent)})});
  comma_ = g.concat({g.literal(","), space_});
  colon_ = g.concat({g.literal(":"), space_});
  quote_ = g.literal("\"");
  // Repeated often: with as few states as possible.
  Result<Dfa> character = machine_of(g, any_json_character(g));  // Small: no error.
  character_ = g.machine(std::move(*character));
  text_ = quoted(g.repeat(character_, 0, kUnbounded));
}

ExprId JsonParts::bracketed(char open, ExprId content, char close) {
  Grammar& g = grammar_;
  return g.concat({g.literal({&open, 1}), space_, content, space_, g.literal({&close, 1})});
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
  Result<ExprId> any_number = number(g, {});  // No bounds, no error.
  value_ = g.any({text_, *any_number, g.literal("true"), g.literal("false"), g.literal("null"),
                  g.rule(object_), g.rule(array_)});
  g.define(object_, bracketed('{', items(member(text_, value_), 0, kUnbounded), '}'));
  g.define(array_, bracketed('[', items(value_, 0, kUnbounded), ']'));
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

}  // namespace weir::sample::grammar
