// ExpressionParser: operators, literals and targets, by recursive descent as jinja2.parser does it;
// what follows a value is in postfix.cpp.
#include "jinja/expression_parser.h"
#include "base/concat.h"

#include <algorithm>
#include <vector>

#include "jinja/number.h"

namespace weir::jinja {

using Kind = TokenKind;

const Str* ExpressionParser::str(std::string_view text) {
  Str* made = arena_.make<Str>(text.data(), text.size(), kUncounted, false);
  made->length();  // Counted now: later, several threads read it.
  return made;
}

Expr* ExpressionParser::make(ExprKind kind, int32_t line) {
  Expr* expr = arena_.make<Expr>();
  expr->kind = kind;
  expr->line = line;
  return expr;
}

// Sets a new node's height from the children it has got.
Expr* ExpressionParser::finish(Expr* expr) {
  int height = 0;
  const auto see = [&height](const Expr* child) {
    if (child) height = std::max<int>(height, child->height);
  };
  for (const Expr* child : {expr->a, expr->b, expr->c, expr->d, expr->star, expr->star_star})
    see(child);
  for (const Expr* child : expr->items) see(child);
  for (const KeywordExpr& keyword : expr->keywords) see(keyword.value);
  for (const ComparisonExpr& comparison : expr->comparisons) see(comparison.right);
  if (height >= kTreeHeightMax) return in_.fail("expression nested too deeply", expr->line);
  expr->height = static_cast<uint16_t>(height + 1);
  return expr;
}

Expr* ExpressionParser::binary(ExprKind kind, Expr* a, Expr* b, int32_t line) {
  if (!a || !b) return nullptr;
  Expr* expr = make(kind, line);
  expr->a = a;
  expr->b = b;
  return finish(expr);
}

Expr* ExpressionParser::unary(ExprKind kind, Expr* a, int32_t line) {
  if (!a) return nullptr;
  Expr* expr = make(kind, line);
  expr->a = a;
  return finish(expr);
}

Expr* ExpressionParser::constant(const Value& value, int32_t line) {
  Expr* expr = make(ExprKind::kConstant, line);
  expr->constant = value;
  return expr;
}

Expr* ExpressionParser::expression(bool with_condition) {
  const TokenReader::Deeper deeper(in_);
  if (deeper.too_deep()) return nullptr;
  return with_condition ? condition() : disjunction();
}

Expr* ExpressionParser::condition() {
  const TokenReader::Deeper deeper(in_);
  if (deeper.too_deep()) return nullptr;
  const int32_t line = in_.current().line;
  Expr* expr = disjunction();
  while (expr && in_.take_name("if")) {
    Expr* test = disjunction();
    Expr* otherwise = nullptr;
    if (in_.take_name("else")) {
      otherwise = condition();
      if (!otherwise) return nullptr;
    }
    expr = binary(ExprKind::kCondition, test, expr, line);
    if (!expr) return nullptr;
    expr->c = otherwise;
    expr = finish(expr);
  }
  return expr;
}

Expr* ExpressionParser::disjunction() {
  const int32_t line = in_.current().line;
  Expr* expr = conjunction();
  while (expr && in_.take_name("or")) expr = binary(ExprKind::kOr, expr, conjunction(), line);
  return expr;
}

Expr* ExpressionParser::conjunction() {
  const int32_t line = in_.current().line;
  Expr* expr = negation();
  while (expr && in_.take_name("and")) expr = binary(ExprKind::kAnd, expr, negation(), line);
  return expr;
}

Expr* ExpressionParser::negation() {
  const TokenReader::Deeper deeper(in_);
  if (deeper.too_deep()) return nullptr;
  const int32_t line = in_.current().line;
  if (in_.take_name("not")) return unary(ExprKind::kNot, negation(), line);
  return comparison();
}

bool ExpressionParser::take_comparison(CompareKind& kind) {
  static constexpr std::pair<Kind, CompareKind> kSigns[] = {
      {Kind::kEqual, CompareKind::kEqual},     {Kind::kNotEqual, CompareKind::kNotEqual},
      {Kind::kLess, CompareKind::kLess},       {Kind::kLessEqual, CompareKind::kLessEqual},
      {Kind::kGreater, CompareKind::kGreater}, {Kind::kGreaterEqual, CompareKind::kGreaterEqual}};
  for (const auto& [sign, meaning] : kSigns) {
    if (!in_.take_if(sign)) continue;
    kind = meaning;
    return true;
  }
  const bool negated = in_.at_name("not") && in_.is_name(in_.ahead(), "in");
  if (!negated && !in_.at_name("in")) return false;
  if (negated) in_.take();
  in_.take();
  kind = negated ? CompareKind::kNotIn : CompareKind::kIn;
  return true;
}

Expr* ExpressionParser::comparison() {
  const int32_t line = in_.current().line;
  Expr* left = sum();
  std::vector<ComparisonExpr> comparisons;
  ComparisonExpr next;
  while (left && take_comparison(next.kind)) {
    next.right = sum();
    if (!next.right) return nullptr;
    comparisons.push_back(next);
  }
  if (!left || comparisons.empty()) return left;
  Expr* expr = make(ExprKind::kCompare, line);
  expr->a = left;
  expr->comparisons = arena_.copy(comparisons);
  return finish(expr);
}

Expr* ExpressionParser::sum() {
  const int32_t line = in_.current().line;
  Expr* expr = concatenation();
  while (expr && (in_.at(Kind::kAdd) || in_.at(Kind::kSub))) {
    const ExprKind kind = in_.take().kind == Kind::kAdd ? ExprKind::kAdd : ExprKind::kSubtract;
    expr = binary(kind, expr, concatenation(), line);
  }
  return expr;
}

Expr* ExpressionParser::concatenation() {
  const int32_t line = in_.current().line;
  Expr* first = product();
  if (!first || !in_.at(Kind::kTilde)) return first;
  std::vector<Expr*> items = {first};
  while (in_.take_if(Kind::kTilde)) {
    items.push_back(product());
    if (!items.back()) return nullptr;
  }
  Expr* expr = make(ExprKind::kConcat, line);
  expr->items = arena_.copy(items);
  return finish(expr);
}

Expr* ExpressionParser::product() {
  const int32_t line = in_.current().line;
  Expr* expr = power();
  for (;;) {
    ExprKind kind;
    switch (in_.current().kind) {
      case Kind::kMul:
        kind = ExprKind::kMultiply;
        break;
      case Kind::kDiv:
        kind = ExprKind::kDivide;
        break;
      case Kind::kFloorDiv:
        kind = ExprKind::kFloorDivide;
        break;
      case Kind::kMod:
        kind = ExprKind::kModulo;
        break;
      default:
        return expr;
    }
    if (!expr) return nullptr;
    in_.take();
    expr = binary(kind, expr, power(), line);
  }
}

Expr* ExpressionParser::power() {
  const int32_t line = in_.current().line;
  Expr* expr = signed_value(true);
  while (expr && in_.take_if(Kind::kPow))
    expr = binary(ExprKind::kPower, expr, signed_value(true), line);
  return expr;
}

Expr* ExpressionParser::signed_value(bool with_filter) {
  const TokenReader::Deeper deeper(in_);
  if (deeper.too_deep()) return nullptr;
  const int32_t line = in_.current().line;
  Expr* expr;
  if (in_.take_if(Kind::kSub)) {
    expr = unary(ExprKind::kNegate, signed_value(false), line);
  } else if (in_.take_if(Kind::kAdd)) {
    expr = unary(ExprKind::kPlus, signed_value(false), line);
  } else {
    expr = primary();
  }
  expr = postfix(expr);
  return with_filter ? filters_and_tests(expr) : expr;
}

Expr* ExpressionParser::number() {
  const Token& token = in_.take();
  if (token.kind == Kind::kFloat) {
    const std::optional<double> value = parse_float(token.text);
    if (!value) return in_.fail("malformed number", token.line);
    return constant(Value::of(*value), token.line);
  }
  int64_t value = 0;
  if (parse_int(token.text, 0, value) != IntParse::kOk)
    return in_.fail(concat({"integer ", token.text.substr(0, 40), " is beyond 64 bits"}),
                    token.line);
  return constant(Value::of(value), token.line);
}

Expr* ExpressionParser::primary() {
  const Token& token = in_.current();
  switch (token.kind) {
    case Kind::kName:
      return name_or_literal();
    case Kind::kString: {
      // Literals beside one another are one.
      std::string_view text = in_.take().text;
      if (in_.at(Kind::kString)) {
        std::string joined(text);
        while (in_.at(Kind::kString)) joined += in_.take().text;
        text = arena_.copy(std::string_view(joined));
      }
      return constant(Value::of(str(text)), token.line);
    }
    case Kind::kInteger:
    case Kind::kFloat:
      return number();
    case Kind::kLeftParen: {
      in_.take();
      Expr* expr = tuple({.explicit_parentheses = true});
      return expr && in_.expect(Kind::kRightParen, "')'") ? expr : nullptr;
    }
    case Kind::kLeftBracket:
      return list();
    case Kind::kLeftBrace:
      return dict();
    default:
      return in_.fail(concat({"unexpected ", describe(token)}));
  }
}

Expr* ExpressionParser::name_or_literal() {
  const Token& token = in_.take();
  const std::string_view text = token.text;
  if (text == "true" || text == "True") return constant(Value::of(true), token.line);
  if (text == "false" || text == "False") return constant(Value::of(false), token.line);
  if (text == "none" || text == "None") return constant(Value::none(), token.line);
  Expr* expr = make(ExprKind::kName, token.line);
  expr->name = str(text);
  return expr;
}

// Expressions separated by commas; one without a comma is itself.
Expr* ExpressionParser::tuple(const TupleStyle& style) {
  const TokenReader::Deeper deeper(in_);
  if (deeper.too_deep()) return nullptr;
  const int32_t line = in_.current().line;
  std::vector<Expr*> items;
  bool is_tuple = false;
  const auto at_end = [&] {
    return in_.at(Kind::kVariableEnd) || in_.at(Kind::kBlockEnd) || in_.at(Kind::kRightParen) ||
           (!style.end_name.empty() && in_.at_name(style.end_name));
  };
  for (;;) {
    if (!items.empty() && !in_.expect(Kind::kComma, "','")) return nullptr;
    if (at_end()) break;
    items.push_back(style.simplified ? primary() : expression(style.with_condition));
    if (!items.back()) return nullptr;
    if (!in_.at(Kind::kComma)) break;
    is_tuple = true;
  }
  if (!is_tuple && !items.empty()) return items[0];
  if (!is_tuple && !style.explicit_parentheses)
    return in_.fail(concat({"expected an expression, found ", describe(in_.current())}));
  Expr* expr = make(ExprKind::kTuple, line);
  expr->items = arena_.copy(items);
  return finish(expr);
}

Expr* ExpressionParser::list() {
  const int32_t line = in_.take().line;
  std::vector<Expr*> items;
  while (!in_.at(Kind::kRightBracket)) {
    if (!items.empty() && !in_.expect(Kind::kComma, "',' or ']'")) return nullptr;
    if (in_.at(Kind::kRightBracket)) break;
    items.push_back(expression());
    if (!items.back()) return nullptr;
  }
  in_.take();
  Expr* expr = make(ExprKind::kList, line);
  expr->items = arena_.copy(items);
  return finish(expr);
}

Expr* ExpressionParser::dict() {
  const int32_t line = in_.take().line;
  std::vector<Expr*> items;
  while (!in_.at(Kind::kRightBrace)) {
    if (!items.empty() && !in_.expect(Kind::kComma, "',' or '}'")) return nullptr;
    if (in_.at(Kind::kRightBrace)) break;
    items.push_back(expression());
    if (!items.back() || !in_.expect(Kind::kColon, "':'")) return nullptr;
    items.push_back(expression());
    if (!items.back()) return nullptr;
  }
  in_.take();
  Expr* expr = make(ExprKind::kDict, line);
  expr->items = arena_.copy(items);
  return finish(expr);
}

bool ExpressionParser::can_assign(const Expr* target) {
  if (target->kind == ExprKind::kName) return true;
  bool fine = target->kind == ExprKind::kTuple;
  if (fine)
    for (const Expr* item : target->items) fine = fine && can_assign(item);
  return fine;
}

Expr* ExpressionParser::target(std::string_view end_name) {
  Expr* expr = tuple({.simplified = true, .end_name = end_name});
  if (!expr) return nullptr;
  if (!can_assign(expr)) return in_.fail("can't assign to this expression", expr->line);
  return expr;
}

Expr* ExpressionParser::set_target() {
  if (in_.ahead().kind != Kind::kDot) return target({});
  if (!in_.at(Kind::kName))
    return in_.fail(concat({"expected a name, found ", describe(in_.current())}));
  Expr* expr = make(ExprKind::kNamespaceRef, in_.current().line);
  expr->name = str(in_.take().text);
  in_.take();
  if (!in_.at(Kind::kName))
    return in_.fail(concat({"expected a name, found ", describe(in_.current())}));
  expr->attribute = str(in_.take().text);
  return expr;
}

const Token* ExpressionParser::plain_name() {
  if (!in_.at(Kind::kName))
    return in_.fail(concat({"expected a name, found ", describe(in_.current())}));
  const Token& token = in_.take();
  for (const char* literal : {"true", "false", "none", "True", "False", "None"})
    if (token.text == literal) return in_.fail(concat({"can't assign to ", token.text}));
  return &token;
}

}  // namespace weir::jinja
