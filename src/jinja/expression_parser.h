// ExpressionParser: what stands between {{ and }}, and the targets of assignments.
//
// Threads: owned by one parse.
#pragma once

#include <string_view>

#include "jinja/ast.h"
#include "jinja/token_reader.h"

namespace weir::jinja {

// How tuple() reads.
struct TupleStyle {
  bool simplified = false;  // Only primary expressions: a target.
  bool with_condition = true;
  bool explicit_parentheses = false;  // () is a tuple then.
  std::string_view end_name = {};
};

// Every function returns null, with the reader's error set, for what is malformed.
class ExpressionParser {
 public:
  ExpressionParser(TokenReader& in, Arena& arena) : in_(in), arena_(arena) {}

  Expr* expression(bool with_condition = true);
  // Expressions separated by commas; one without a comma is itself.
  Expr* tuple(const TupleStyle& style);
  // At a filter's name, to be applied to `of`.
  Expr* filter(Expr* of);
  // What can be assigned to: names and tuples of them; with set_target also a namespace's
  // attribute.
  Expr* target(std::string_view end_name);
  Expr* set_target();
  // A name that is no literal.
  const Token* plain_name();
  // A string for the tree.
  const Str* str(std::string_view text);

 private:
  Expr* make(ExprKind kind, int32_t line);
  Expr* finish(Expr* expr);
  Expr* binary(ExprKind kind, Expr* a, Expr* b, int32_t line);
  Expr* unary(ExprKind kind, Expr* a, int32_t line);
  Expr* constant(const Value& value, int32_t line);

  // From the loosest operator to the tightest.
  Expr* condition();
  Expr* disjunction();
  Expr* conjunction();
  Expr* negation();
  bool take_comparison(CompareKind& kind);
  Expr* comparison();
  Expr* sum();
  Expr* concatenation();
  Expr* product();
  Expr* power();
  Expr* signed_value(bool with_filter);
  Expr* number();
  Expr* primary();
  Expr* name_or_literal();
  Expr* list();
  Expr* dict();
  Expr* postfix(Expr* expr);
  Expr* filters_and_tests(Expr* expr);
  Expr* attribute(Expr* of);
  Expr* subscript(Expr* of);
  Expr* slice_or_expression(Expr* of, int32_t line);
  bool call_arguments(Expr* expr);
  Expr* call(Expr* of);
  const Str* dotted_name();
  Expr* test(Expr* of);
  bool can_assign(const Expr* target);

  TokenReader& in_;
  Arena& arena_;
};

}  // namespace weir::jinja
