// ExpressionParser: what follows a value: attributes, subscripts, calls, filters and tests.
#include <vector>

#include "base/concat.h"
#include "jinja/expression_parser.h"
#include "jinja/number.h"

namespace weir::jinja {

using Kind = TokenKind;

Expr* ExpressionParser::postfix(Expr* expr) {
  while (expr) {
    if (in_.at(Kind::kDot)) {
      expr = attribute(expr);
    } else if (in_.at(Kind::kLeftBracket)) {
      expr = subscript(expr);
    } else if (in_.at(Kind::kLeftParen)) {
      expr = call(expr);
    } else {
      break;
    }
  }
  return expr;
}

Expr* ExpressionParser::filters_and_tests(Expr* expr) {
  while (expr) {
    if (in_.at(Kind::kPipe)) {
      in_.take();
      expr = filter(expr);
    } else if (in_.at_name("is")) {
      expr = test(expr);
    } else if (in_.at(Kind::kLeftParen)) {
      expr = call(expr);
    } else {
      break;
    }
  }
  return expr;
}

Expr* ExpressionParser::attribute(Expr* of) {
  const int32_t line = in_.take().line;
  const Token& token = in_.take();
  if (token.kind == Kind::kInteger) {
    int64_t index = 0;
    if (parse_int(token.text, 0, index) != IntParse::kOk) return in_.fail("index too large");
    return binary(ExprKind::kItem, of, constant(Value::of(index), token.line), line);
  }
  if (token.kind != Kind::kName) return in_.fail("expected name or number", token.line);
  Expr* expr = make(ExprKind::kAttribute, line);
  expr->a = of;
  expr->name = str(token.text);
  expr->str_method = find_method(Type::kStr, token.text);
  expr->dict_method = find_method(Type::kDict, token.text);
  return finish(expr);
}

Expr* ExpressionParser::subscript(Expr* of) {
  const int32_t line = in_.take().line;
  // Jinja takes x[] for x[()].
  Expr* item =
      in_.at(Kind::kRightBracket) ? make(ExprKind::kTuple, line) : slice_or_expression(of, line);
  if (!item) return nullptr;
  if (in_.at(Kind::kComma)) {
    if (item->kind == ExprKind::kSlice && item->a == of)
      return in_.fail("slices in tuples are not supported");
    std::vector<Expr*> items = {item};
    while (in_.take_if(Kind::kComma) && !in_.at(Kind::kRightBracket)) {
      items.push_back(expression());
      if (!items.back()) return nullptr;
    }
    item = make(ExprKind::kTuple, line);
    item->items = arena_.copy(items);
    item = finish(item);
  }
  if (!item || !in_.expect(Kind::kRightBracket, "']'")) return nullptr;
  return item->kind == ExprKind::kSlice && item->a == of ? item
                                                         : binary(ExprKind::kItem, of, item, line);
}

// Inside brackets: an expression, or a complete slice of `of`.
Expr* ExpressionParser::slice_or_expression(Expr* of, int32_t line) {
  const auto at_bound = [this] {
    return !in_.at(Kind::kColon) && !in_.at(Kind::kRightBracket) && !in_.at(Kind::kComma);
  };
  Expr* bounds[3] = {};
  if (!in_.at(Kind::kColon)) {
    bounds[0] = expression();
    if (!bounds[0] || !in_.at(Kind::kColon)) return bounds[0];
  }
  for (int i = 1; i < 3 && in_.take_if(Kind::kColon); ++i) {
    if (!at_bound()) continue;
    bounds[i] = expression();
    if (!bounds[i]) return nullptr;
  }
  Expr* expr = make(ExprKind::kSlice, line);
  expr->a = of;
  expr->b = bounds[0];
  expr->c = bounds[1];
  expr->d = bounds[2];
  return finish(expr);
}

bool ExpressionParser::call_arguments(Expr* expr) {
  const int32_t line = in_.take().line;
  std::vector<Expr*> items;
  std::vector<KeywordExpr> keywords;
  const auto ensure = [&](bool fine) {
    if (!fine) in_.fail("invalid syntax for function call expression", line);
    return fine;
  };
  for (bool first = true; !in_.at(Kind::kRightParen); first = false) {
    if (!first) {
      if (!in_.expect(Kind::kComma, "',' or ')'")) return false;
      if (in_.at(Kind::kRightParen)) break;
    }
    if (in_.take_if(Kind::kMul)) {
      if (!ensure(!expr->star && !expr->star_star)) return false;
      expr->star = expression();
      if (!expr->star) return false;
    } else if (in_.take_if(Kind::kPow)) {
      if (!ensure(!expr->star_star)) return false;
      expr->star_star = expression();
      if (!expr->star_star) return false;
    } else if (in_.at(Kind::kName) && in_.ahead().kind == Kind::kAssign) {
      if (!ensure(keywords.size() < kKeywordsMax)) return false;
      const std::string_view name = in_.take().text;
      in_.take();
      if (!ensure(!expr->star_star)) return false;
      for (const KeywordExpr& other : keywords)
        if (other.name == name)
          return in_.fail(concat({"keyword argument repeated: ", name}), line) != nullptr;
      keywords.push_back({name, expression()});
      if (!keywords.back().value) return false;
    } else {
      if (!ensure(!expr->star && !expr->star_star && keywords.empty())) return false;
      items.push_back(expression());
      if (!items.back()) return false;
    }
  }
  in_.take();
  expr->items = arena_.copy(items);
  expr->keywords = arena_.copy(keywords);
  return true;
}

Expr* ExpressionParser::call(Expr* of) {
  Expr* expr = make(ExprKind::kCall, in_.current().line);
  expr->a = of;
  return call_arguments(expr) ? finish(expr) : nullptr;
}

// A name with dots in it.
const Str* ExpressionParser::dotted_name() {
  if (!in_.at(Kind::kName))
    return in_.fail(concat({"expected a name, found ", describe(in_.current())}));
  std::string_view text = in_.take().text;
  if (!in_.at(Kind::kDot)) return str(text);
  std::string joined(text);
  while (in_.take_if(Kind::kDot)) {
    if (!in_.at(Kind::kName))
      return in_.fail(concat({"expected a name, found ", describe(in_.current())}));
    joined += concat({".", in_.take().text});
  }
  return str(arena_.copy(std::string_view(joined)));
}

// At the filter's name.
Expr* ExpressionParser::filter(Expr* of) {
  Expr* expr = make(ExprKind::kFilter, in_.current().line);
  expr->a = of;
  expr->name = dotted_name();
  if (!expr->name) return nullptr;
  expr->builtin = find_filter(expr->name->view());
  if (in_.at(Kind::kLeftParen) && !call_arguments(expr)) return nullptr;
  return finish(expr);
}

Expr* ExpressionParser::test(Expr* of) {
  const int32_t line = in_.take().line;
  const bool negated = in_.take_name("not");
  Expr* expr = make(ExprKind::kTest, line);
  expr->a = of;
  expr->name = dotted_name();
  if (!expr->name) return nullptr;
  expr->builtin = find_test(expr->name->view());
  const auto starts_argument = [this] {
    switch (in_.current().kind) {
      case Kind::kName:
        return !in_.at_name("else") && !in_.at_name("or") && !in_.at_name("and");
      case Kind::kString:
      case Kind::kInteger:
      case Kind::kFloat:
      case Kind::kLeftBracket:
      case Kind::kLeftBrace:
        return true;
      default:
        return false;
    }
  };
  if (in_.at(Kind::kLeftParen)) {
    if (!call_arguments(expr)) return nullptr;
  } else if (starts_argument()) {
    if (in_.at_name("is")) return in_.fail("You cannot chain multiple tests with is");
    Expr* argument = postfix(primary());
    if (!argument) return nullptr;
    expr->items = arena_.copy(std::vector<Expr*>{argument});
  }
  expr = finish(expr);
  return negated ? unary(ExprKind::kNot, expr, line) : expr;
}

}  // namespace weir::jinja
