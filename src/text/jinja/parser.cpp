// Parser: recursive descent, as jinja2.parser. A failed parse sets the error once; the functions
// then return null or false without a further message.
#include "text/jinja/parser.h"

#include <algorithm>
#include <initializer_list>

#include "text/jinja/message.h"
#include "text/jinja/number.h"

namespace weir::text::jinja {

namespace {

using Kind = TokenKind;

// Recursion of this parser: a pair of brackets takes five levels and some 3 KB of stack. CPython
// runs out at about 80 pairs.
constexpr int kDepthMax = 500;

std::string describe(const Token& token) {
  switch (token.kind) {
    case Kind::kData:
      return "template data / text";
    case Kind::kVariableBegin:
      return "begin of print statement";
    case Kind::kVariableEnd:
      return "end of print statement";
    case Kind::kBlockBegin:
      return "begin of statement block";
    case Kind::kBlockEnd:
      return "end of statement block";
    case Kind::kEnd:
      return "end of template";
    case Kind::kString:
      return "string";
    case Kind::kInteger:
      return "integer";
    case Kind::kFloat:
      return "float";
    default:
      return std::string(token.text);
  }
}

using Names = std::initializer_list<std::string_view>;
using Body = std::span<Statement*>;

class Parser {
 public:
  Parser(std::span<const Token> tokens, Arena& arena, SyntaxError& error)
      : tokens_(tokens), arena_(arena), error_(error) {}

  bool run(Tree& tree) { return statements({}, tree.body); }

 private:
  // ---- Tokens ----------------------------------------------------------------------------------

  const Token& current() const { return tokens_[at_]; }
  const Token& ahead() const { return tokens_[std::min(at_ + 1, tokens_.size() - 1)]; }
  const Token& take() {
    const Token& token = tokens_[at_];
    if (at_ + 1 < tokens_.size()) ++at_;
    return token;
  }
  bool at(Kind kind) const { return current().kind == kind; }
  bool at_name(std::string_view name) const { return is_name(current(), name); }
  static bool is_name(const Token& token, std::string_view name) {
    return token.kind == Kind::kName && token.text == name;
  }
  bool take_if(Kind kind) {
    if (!at(kind)) return false;
    take();
    return true;
  }
  bool take_name(std::string_view name) {
    if (!at_name(name)) return false;
    take();
    return true;
  }

  std::nullptr_t fail(std::string message, int32_t line) {
    if (error_.line == 0) error_ = {std::move(message), line};
    return nullptr;
  }
  std::nullptr_t fail(std::string message) { return fail(std::move(message), current().line); }
  bool failed() const { return error_.line != 0; }

  bool expect(Kind kind, const char* what) {
    if (take_if(kind)) return true;
    fail(message("expected ", what, ", found ", describe(current())));
    return false;
  }
  bool expect_name(std::string_view name) {
    if (take_name(name)) return true;
    fail(message("expected ", name, ", found ", describe(current())));
    return false;
  }

  const Str* str(std::string_view text) {
    Str* made = arena_.make<Str>(text.data(), text.size(), kUncounted, false);
    made->length();  // Counted now: later, several threads read it.
    return made;
  }

  // ---- Building expressions --------------------------------------------------------------------

  Expr* make(ExprKind kind, int32_t line) {
    Expr* expr = arena_.make<Expr>();
    expr->kind = kind;
    expr->line = line;
    return expr;
  }

  // Sets a new node's height from the children it has got.
  Expr* finish(Expr* expr) {
    int height = 0;
    const auto see = [&height](const Expr* child) {
      if (child) height = std::max<int>(height, child->height);
    };
    for (const Expr* child : {expr->a, expr->b, expr->c, expr->d, expr->star, expr->star_star})
      see(child);
    for (const Expr* child : expr->items) see(child);
    for (const KeywordExpr& keyword : expr->keywords) see(keyword.value);
    for (const ComparisonExpr& comparison : expr->comparisons) see(comparison.right);
    if (height >= kTreeHeightMax) return fail("expression nested too deeply", expr->line);
    expr->height = static_cast<uint16_t>(height + 1);
    return expr;
  }

  Expr* binary(ExprKind kind, Expr* a, Expr* b, int32_t line) {
    if (!a || !b) return nullptr;
    Expr* expr = make(kind, line);
    expr->a = a;
    expr->b = b;
    return finish(expr);
  }

  Expr* unary(ExprKind kind, Expr* a, int32_t line) {
    if (!a) return nullptr;
    Expr* expr = make(kind, line);
    expr->a = a;
    return finish(expr);
  }

  Expr* constant(const Value& value, int32_t line) {
    Expr* expr = make(ExprKind::kConstant, line);
    expr->constant = value;
    return expr;
  }

  // Counts a level of recursion for as long as it lives.
  struct Deeper {
    explicit Deeper(Parser& parser) : parser_(parser) { ++parser_.depth_; }
    ~Deeper() { --parser_.depth_; }
    bool too_deep() const {
      if (parser_.depth_ <= kDepthMax) return false;
      parser_.fail("nested too deeply");
      return true;
    }
    Parser& parser_;
  };

  // ---- Expressions, loosest first --------------------------------------------------------------

  Expr* expression(bool with_condition = true) {
    const Deeper deeper(*this);
    if (deeper.too_deep()) return nullptr;
    return with_condition ? condition() : disjunction();
  }

  Expr* condition() {
    const Deeper deeper(*this);
    if (deeper.too_deep()) return nullptr;
    const int32_t line = current().line;
    Expr* expr = disjunction();
    while (expr && take_name("if")) {
      Expr* test = disjunction();
      Expr* otherwise = nullptr;
      if (take_name("else")) {
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

  Expr* disjunction() {
    const int32_t line = current().line;
    Expr* expr = conjunction();
    while (expr && take_name("or")) expr = binary(ExprKind::kOr, expr, conjunction(), line);
    return expr;
  }

  Expr* conjunction() {
    const int32_t line = current().line;
    Expr* expr = negation();
    while (expr && take_name("and")) expr = binary(ExprKind::kAnd, expr, negation(), line);
    return expr;
  }

  Expr* negation() {
    const Deeper deeper(*this);
    if (deeper.too_deep()) return nullptr;
    const int32_t line = current().line;
    if (take_name("not")) return unary(ExprKind::kNot, negation(), line);
    return comparison();
  }

  bool take_comparison(CompareKind& kind) {
    static constexpr std::pair<Kind, CompareKind> kSigns[] = {
        {Kind::kEqual, CompareKind::kEqual},     {Kind::kNotEqual, CompareKind::kNotEqual},
        {Kind::kLess, CompareKind::kLess},       {Kind::kLessEqual, CompareKind::kLessEqual},
        {Kind::kGreater, CompareKind::kGreater}, {Kind::kGreaterEqual, CompareKind::kGreaterEqual}};
    for (const auto& [sign, meaning] : kSigns) {
      if (!take_if(sign)) continue;
      kind = meaning;
      return true;
    }
    const bool negated = at_name("not") && is_name(ahead(), "in");
    if (!negated && !at_name("in")) return false;
    if (negated) take();
    take();
    kind = negated ? CompareKind::kNotIn : CompareKind::kIn;
    return true;
  }

  Expr* comparison() {
    const int32_t line = current().line;
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

  Expr* sum() {
    const int32_t line = current().line;
    Expr* expr = concatenation();
    while (expr && (at(Kind::kAdd) || at(Kind::kSub))) {
      const ExprKind kind = take().kind == Kind::kAdd ? ExprKind::kAdd : ExprKind::kSubtract;
      expr = binary(kind, expr, concatenation(), line);
    }
    return expr;
  }

  Expr* concatenation() {
    const int32_t line = current().line;
    Expr* first = product();
    if (!first || !at(Kind::kTilde)) return first;
    std::vector<Expr*> items = {first};
    while (take_if(Kind::kTilde)) {
      items.push_back(product());
      if (!items.back()) return nullptr;
    }
    Expr* expr = make(ExprKind::kConcat, line);
    expr->items = arena_.copy(items);
    return finish(expr);
  }

  Expr* product() {
    const int32_t line = current().line;
    Expr* expr = power();
    for (;;) {
      ExprKind kind;
      switch (current().kind) {
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
      take();
      expr = binary(kind, expr, power(), line);
    }
  }

  Expr* power() {
    const int32_t line = current().line;
    Expr* expr = signed_value(true);
    while (expr && take_if(Kind::kPow))
      expr = binary(ExprKind::kPower, expr, signed_value(true), line);
    return expr;
  }

  Expr* signed_value(bool with_filter) {
    const Deeper deeper(*this);
    if (deeper.too_deep()) return nullptr;
    const int32_t line = current().line;
    Expr* expr;
    if (take_if(Kind::kSub)) {
      expr = unary(ExprKind::kNegate, signed_value(false), line);
    } else if (take_if(Kind::kAdd)) {
      expr = unary(ExprKind::kPlus, signed_value(false), line);
    } else {
      expr = primary();
    }
    expr = postfix(expr);
    return with_filter ? filters_and_tests(expr) : expr;
  }

  Expr* number() {
    const Token& token = take();
    if (token.kind == Kind::kFloat) {
      const std::optional<double> value = parse_float(token.text);
      if (!value) return fail("malformed number", token.line);
      return constant(Value::of(*value), token.line);
    }
    int64_t value = 0;
    if (parse_int(token.text, 0, value) != IntParse::kOk)
      return fail(message("integer ", token.text.substr(0, 40), " is beyond 64 bits"), token.line);
    return constant(Value::of(value), token.line);
  }

  Expr* primary() {
    const Token& token = current();
    switch (token.kind) {
      case Kind::kName:
        return name_or_literal();
      case Kind::kString: {
        // Literals beside one another are one.
        std::string_view text = take().text;
        if (at(Kind::kString)) {
          std::string joined(text);
          while (at(Kind::kString)) joined += take().text;
          text = arena_.copy(std::string_view(joined));
        }
        return constant(Value::of(str(text)), token.line);
      }
      case Kind::kInteger:
      case Kind::kFloat:
        return number();
      case Kind::kLeftParen: {
        take();
        Expr* expr = tuple({.explicit_parentheses = true});
        return expr && expect(Kind::kRightParen, "')'") ? expr : nullptr;
      }
      case Kind::kLeftBracket:
        return list();
      case Kind::kLeftBrace:
        return dict();
      default:
        return fail(message("unexpected ", describe(token)));
    }
  }

  Expr* name_or_literal() {
    const Token& token = take();
    const std::string_view text = token.text;
    if (text == "true" || text == "True") return constant(Value::of(true), token.line);
    if (text == "false" || text == "False") return constant(Value::of(false), token.line);
    if (text == "none" || text == "None") return constant(Value::none(), token.line);
    Expr* expr = make(ExprKind::kName, token.line);
    expr->name = str(text);
    return expr;
  }

  struct TupleStyle {
    bool simplified = false;  // Only primary expressions: a target.
    bool with_condition = true;
    bool explicit_parentheses = false;
    std::string_view end_name = {};
  };

  // Expressions separated by commas; one without a comma is itself.
  Expr* tuple(const TupleStyle& style) {
    const Deeper deeper(*this);
    if (deeper.too_deep()) return nullptr;
    const int32_t line = current().line;
    std::vector<Expr*> items;
    bool is_tuple = false;
    const auto at_end = [&] {
      return at(Kind::kVariableEnd) || at(Kind::kBlockEnd) || at(Kind::kRightParen) ||
             (!style.end_name.empty() && at_name(style.end_name));
    };
    for (;;) {
      if (!items.empty() && !expect(Kind::kComma, "','")) return nullptr;
      if (at_end()) break;
      items.push_back(style.simplified ? primary() : expression(style.with_condition));
      if (!items.back()) return nullptr;
      if (!at(Kind::kComma)) break;
      is_tuple = true;
    }
    if (!is_tuple && !items.empty()) return items[0];
    if (!is_tuple && !style.explicit_parentheses)
      return fail(message("expected an expression, found ", describe(current())));
    Expr* expr = make(ExprKind::kTuple, line);
    expr->items = arena_.copy(items);
    return finish(expr);
  }

  Expr* list() {
    const int32_t line = take().line;
    std::vector<Expr*> items;
    while (!at(Kind::kRightBracket)) {
      if (!items.empty() && !expect(Kind::kComma, "',' or ']'")) return nullptr;
      if (at(Kind::kRightBracket)) break;
      items.push_back(expression());
      if (!items.back()) return nullptr;
    }
    take();
    Expr* expr = make(ExprKind::kList, line);
    expr->items = arena_.copy(items);
    return finish(expr);
  }

  Expr* dict() {
    const int32_t line = take().line;
    std::vector<Expr*> items;
    while (!at(Kind::kRightBrace)) {
      if (!items.empty() && !expect(Kind::kComma, "',' or '}'")) return nullptr;
      if (at(Kind::kRightBrace)) break;
      items.push_back(expression());
      if (!items.back() || !expect(Kind::kColon, "':'")) return nullptr;
      items.push_back(expression());
      if (!items.back()) return nullptr;
    }
    take();
    Expr* expr = make(ExprKind::kDict, line);
    expr->items = arena_.copy(items);
    return finish(expr);
  }

  Expr* postfix(Expr* expr) {
    while (expr) {
      if (at(Kind::kDot)) {
        expr = attribute(expr);
      } else if (at(Kind::kLeftBracket)) {
        expr = subscript(expr);
      } else if (at(Kind::kLeftParen)) {
        expr = call(expr);
      } else {
        break;
      }
    }
    return expr;
  }

  Expr* filters_and_tests(Expr* expr) {
    while (expr) {
      if (at(Kind::kPipe)) {
        take();
        expr = filter(expr);
      } else if (at_name("is")) {
        expr = test(expr);
      } else if (at(Kind::kLeftParen)) {
        expr = call(expr);
      } else {
        break;
      }
    }
    return expr;
  }

  Expr* attribute(Expr* of) {
    const int32_t line = take().line;
    const Token& token = take();
    if (token.kind == Kind::kInteger) {
      int64_t index = 0;
      if (parse_int(token.text, 0, index) != IntParse::kOk) return fail("index too large");
      return binary(ExprKind::kItem, of, constant(Value::of(index), token.line), line);
    }
    if (token.kind != Kind::kName) return fail("expected name or number", token.line);
    Expr* expr = make(ExprKind::kAttribute, line);
    expr->a = of;
    expr->name = str(token.text);
    expr->str_method = find_method(Type::kStr, token.text);
    expr->dict_method = find_method(Type::kDict, token.text);
    return finish(expr);
  }

  Expr* subscript(Expr* of) {
    const int32_t line = take().line;
    if (at(Kind::kRightBracket)) return fail("expected a subscript, found ]");
    Expr* item = slice_or_expression(of, line);
    if (!item) return nullptr;
    if (at(Kind::kComma)) {
      if (item->kind == ExprKind::kSlice) return fail("slices in tuples are not supported");
      std::vector<Expr*> items = {item};
      while (take_if(Kind::kComma) && !at(Kind::kRightBracket)) {
        items.push_back(expression());
        if (!items.back()) return nullptr;
      }
      item = make(ExprKind::kTuple, line);
      item->items = arena_.copy(items);
      item = finish(item);
    }
    if (!item || !expect(Kind::kRightBracket, "']'")) return nullptr;
    return item->kind == ExprKind::kSlice && item->a == of
               ? item
               : binary(ExprKind::kItem, of, item, line);
  }

  // Inside brackets: an expression, or a complete slice of `of`.
  Expr* slice_or_expression(Expr* of, int32_t line) {
    const auto at_bound = [this] {
      return !at(Kind::kColon) && !at(Kind::kRightBracket) && !at(Kind::kComma);
    };
    Expr* bounds[3] = {};
    if (!at(Kind::kColon)) {
      bounds[0] = expression();
      if (!bounds[0] || !at(Kind::kColon)) return bounds[0];
    }
    for (int i = 1; i < 3 && take_if(Kind::kColon); ++i) {
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

  bool call_arguments(Expr* expr) {
    const int32_t line = take().line;
    std::vector<Expr*> items;
    std::vector<KeywordExpr> keywords;
    const auto ensure = [&](bool fine) {
      if (!fine) fail("invalid syntax for function call expression", line);
      return fine;
    };
    for (bool first = true; !at(Kind::kRightParen); first = false) {
      if (!first) {
        if (!expect(Kind::kComma, "',' or ')'")) return false;
        if (at(Kind::kRightParen)) break;
      }
      if (take_if(Kind::kMul)) {
        if (!ensure(!expr->star && !expr->star_star)) return false;
        expr->star = expression();
        if (!expr->star) return false;
      } else if (take_if(Kind::kPow)) {
        if (!ensure(!expr->star_star)) return false;
        expr->star_star = expression();
        if (!expr->star_star) return false;
      } else if (at(Kind::kName) && ahead().kind == Kind::kAssign) {
        const std::string_view name = take().text;
        take();
        if (!ensure(!expr->star_star)) return false;
        for (const KeywordExpr& other : keywords)
          if (other.name == name)
            return fail(message("keyword argument repeated: ", name), line) != nullptr;
        keywords.push_back({name, expression()});
        if (!keywords.back().value) return false;
      } else {
        if (!ensure(!expr->star && !expr->star_star && keywords.empty())) return false;
        items.push_back(expression());
        if (!items.back()) return false;
      }
    }
    take();
    expr->items = arena_.copy(items);
    expr->keywords = arena_.copy(keywords);
    return true;
  }

  Expr* call(Expr* of) {
    Expr* expr = make(ExprKind::kCall, current().line);
    expr->a = of;
    return call_arguments(expr) ? finish(expr) : nullptr;
  }

  // A name with dots in it.
  const Str* dotted_name() {
    if (!at(Kind::kName)) return fail(message("expected a name, found ", describe(current())));
    std::string_view text = take().text;
    if (!at(Kind::kDot)) return str(text);
    std::string joined(text);
    while (take_if(Kind::kDot)) {
      if (!at(Kind::kName)) return fail(message("expected a name, found ", describe(current())));
      joined += message(".", take().text);
    }
    return str(arena_.copy(std::string_view(joined)));
  }

  // At the filter's name.
  Expr* filter(Expr* of) {
    Expr* expr = make(ExprKind::kFilter, current().line);
    expr->a = of;
    expr->name = dotted_name();
    if (!expr->name) return nullptr;
    expr->builtin = find_filter(expr->name->view());
    if (at(Kind::kLeftParen) && !call_arguments(expr)) return nullptr;
    return finish(expr);
  }

  Expr* test(Expr* of) {
    const int32_t line = take().line;
    const bool negated = take_name("not");
    Expr* expr = make(ExprKind::kTest, line);
    expr->a = of;
    expr->name = dotted_name();
    if (!expr->name) return nullptr;
    expr->builtin = find_test(expr->name->view());
    const auto starts_argument = [this] {
      switch (current().kind) {
        case Kind::kName:
          return !at_name("else") && !at_name("or") && !at_name("and");
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
    if (at(Kind::kLeftParen)) {
      if (!call_arguments(expr)) return nullptr;
    } else if (starts_argument()) {
      if (at_name("is")) return fail("You cannot chain multiple tests with is");
      Expr* argument = postfix(primary());
      if (!argument) return nullptr;
      expr->items = arena_.copy(std::vector<Expr*>{argument});
    }
    expr = finish(expr);
    return negated ? unary(ExprKind::kNot, expr, line) : expr;
  }

  // ---- Targets ---------------------------------------------------------------------------------

  bool can_assign(const Expr* target) {
    if (target->kind == ExprKind::kName) return true;
    bool fine = target->kind == ExprKind::kTuple;
    if (fine)
      for (const Expr* item : target->items) fine = fine && can_assign(item);
    return fine;
  }

  Expr* target(std::string_view end_name) {
    Expr* expr = tuple({.simplified = true, .end_name = end_name});
    if (!expr) return nullptr;
    if (!can_assign(expr)) return fail("can't assign to this expression", expr->line);
    return expr;
  }

  Expr* set_target() {
    if (ahead().kind != Kind::kDot) return target({});
    if (!at(Kind::kName)) return fail(message("expected a name, found ", describe(current())));
    Expr* expr = make(ExprKind::kNamespaceRef, current().line);
    expr->name = str(take().text);
    take();
    if (!at(Kind::kName)) return fail(message("expected a name, found ", describe(current())));
    expr->attribute = str(take().text);
    return expr;
  }

  const Token* plain_name() {
    if (!at(Kind::kName)) return fail(message("expected a name, found ", describe(current())));
    const Token& token = take();
    for (const char* literal : {"true", "false", "none", "True", "False", "None"})
      if (token.text == literal) return fail(message("can't assign to ", token.text));
    return &token;
  }

  // ---- Statements ------------------------------------------------------------------------------

  Statement* make(StatementKind kind, int32_t line) {
    Statement* statement = arena_.make<Statement>();
    statement->kind = kind;
    statement->line = line;
    return statement;
  }

  bool at_any(Names names) const {
    return at(Kind::kName) && std::find(names.begin(), names.end(), current().text) != names.end();
  }

  // Statements up to one of the end tags, which is left current; with no names to the template's
  // end.
  bool statements(Names ends, Body& body) {
    const Deeper deeper(*this);
    if (deeper.too_deep()) return false;
    std::vector<Statement*> list;
    while (!at(Kind::kEnd)) {
      const Token& token = take();
      Statement* made = nullptr;
      if (token.kind == Kind::kData) {
        made = make(StatementKind::kText, token.line);
        made->text = token.text;
      } else if (token.kind == Kind::kVariableBegin) {
        made = make(StatementKind::kPrint, token.line);
        Expr* expr = tuple({});
        if (!expr || !expect(Kind::kVariableEnd, "'}}'")) return false;
        made->exprs = arena_.copy(std::vector<Expr*>{expr});
      } else {
        if (at_any(ends)) {
          body = arena_.copy(list);
          return true;
        }
        made = statement(ends);
        if (!made || !expect(Kind::kBlockEnd, "'%}'")) return false;
      }
      list.push_back(made);
    }
    if (ends.size() > 0) {
      std::string names;
      for (const std::string_view name : ends)
        names += (names.empty() ? "" : " or ") + std::string(name);
      fail(message("the template ends where ", names, " is missing"));
      return false;
    }
    body = arena_.copy(list);
    return true;
  }

  // The rest of an opening tag, then statements up to one of the end tags.
  bool body_until(Names ends, Body& body) {
    take_if(Kind::kColon);
    return expect(Kind::kBlockEnd, "'%}'") && statements(ends, body);
  }

  bool body_to(std::string_view end, Body& body) {
    if (!body_until({end}, body)) return false;
    take();
    return true;
  }

  Statement* statement(Names ends) {
    if (!at(Kind::kName)) return fail(message("tag name expected, found ", describe(current())));
    const Token& tag = current();
    const std::string_view name = tag.text;
    if (name == "for") return for_loop();
    if (name == "if") return if_chain();
    if (name == "set") return set();
    if (name == "macro") return macro();
    if (name == "call") return call_block();
    if (name == "filter") return filter_block();
    if (name == "with") return with();
    if (name == "print") return print();
    if (name == "generation") return generation();
    if (name == "break" || name == "continue") {
      take();
      if (loop_depth_ == 0) return fail(message(name, " outside of a loop"), tag.line);
      return make(name == "break" ? StatementKind::kBreak : StatementKind::kContinue, tag.line);
    }
    if (name == "include" || name == "import" || name == "from" || name == "extends") {
      while (!at(Kind::kBlockEnd) && !at(Kind::kEnd)) take();
      Statement* made = make(StatementKind::kNeedsLoader, tag.line);
      made->name = str(name);
      return made;
    }
    if (name == "block" || name == "autoescape")
      return fail(message("{% ", name, " %} is not supported"));
    std::string complaint = message("Encountered unknown tag '", name, "'");
    for (const std::string_view end : ends)
      complaint += message(end == *ends.begin() ? "; looking for " : " or ", end);
    return fail(std::move(complaint));
  }

  Statement* for_loop() {
    Statement* made = make(StatementKind::kFor, take().line);
    made->target = target("in");
    if (!made->target || !expect_name("in")) return nullptr;
    made->value = tuple({.with_condition = false, .end_name = "recursive"});
    if (!made->value) return nullptr;
    if (take_name("if")) {
      made->test = expression();
      if (!made->test) return nullptr;
    }
    made->recursive = take_name("recursive");
    ++loop_depth_;
    const bool fine = body_until({"endfor", "else"}, made->body);
    --loop_depth_;
    if (!fine) return nullptr;
    if (take().text == "else") {
      // In Python, a recursive loop is a function of its own: nothing outside can be left from it.
      const int outer = loop_depth_;
      if (made->recursive) loop_depth_ = 0;
      const bool complete = body_to("endfor", made->otherwise);
      loop_depth_ = outer;
      if (!complete) return nullptr;
    }
    return made;
  }

  Statement* if_chain() {
    Statement* made = if_part();
    std::vector<Statement*> elifs;
    while (made && at_name("elif")) {
      elifs.push_back(if_part());
      if (!elifs.back()) return nullptr;
    }
    if (!made) return nullptr;
    made->elifs = arena_.copy(elifs);
    if (take().text == "else" && !body_to("endif", made->otherwise)) return nullptr;
    return made;
  }

  // `if` or `elif`, its condition and its body.
  Statement* if_part() {
    Statement* made = make(StatementKind::kIf, take().line);
    made->value = tuple({.with_condition = false});
    if (!made->value || !body_until({"elif", "else", "endif"}, made->body)) return nullptr;
    return made;
  }

  Statement* set() {
    const int32_t line = take().line;
    Expr* to = set_target();
    if (!to) return nullptr;
    if (take_if(Kind::kAssign)) {
      Statement* made = make(StatementKind::kSet, line);
      made->target = to;
      made->value = tuple({});
      return made->value ? made : nullptr;
    }
    Statement* made = make(StatementKind::kSetBlock, line);
    made->target = to;
    while (take_if(Kind::kPipe)) {
      made->value = filter(made->value);
      if (!made->value) return nullptr;
    }
    return body_to("endset", made->body) ? made : nullptr;
  }

  bool signature(MacroParts& parts) {
    if (!expect(Kind::kLeftParen, "'('")) return false;
    std::vector<std::string_view> names;
    std::vector<Expr*> defaults;
    while (!at(Kind::kRightParen)) {
      if (!names.empty() && !expect(Kind::kComma, "',' or ')'")) return false;
      const Token* name = plain_name();
      if (!name) return false;
      if (std::find(names.begin(), names.end(), name->text) != names.end())
        return fail(message("duplicate argument '", name->text, "'")) != nullptr;
      names.push_back(name->text);
      if (take_if(Kind::kAssign)) {
        defaults.push_back(expression());
        if (!defaults.back()) return false;
      } else if (!defaults.empty()) {
        return fail("non-default argument follows default argument") != nullptr;
      }
    }
    take();
    parts.names = arena_.copy(names);
    parts.defaults = arena_.copy(defaults);
    return true;
  }

  // A body that is a function in Python: loops around it cannot be left from inside.
  bool function_body(std::string_view end, Body& body) {
    const int outer = loop_depth_;
    loop_depth_ = 0;
    const bool fine = body_to(end, body);
    loop_depth_ = outer;
    return fine;
  }

  Statement* macro() {
    Statement* made = make(StatementKind::kMacro, take().line);
    const Token* name = plain_name();
    if (!name) return nullptr;
    made->name = str(name->text);
    made->macro = arena_.make<MacroParts>();
    if (!signature(*made->macro)) return nullptr;
    return function_body("endmacro", made->body) ? made : nullptr;
  }

  Statement* call_block() {
    Statement* made = make(StatementKind::kCallBlock, take().line);
    made->macro = arena_.make<MacroParts>();
    if (at(Kind::kLeftParen) && !signature(*made->macro)) return nullptr;
    made->value = expression();
    if (!made->value) return nullptr;
    if (made->value->kind != ExprKind::kCall) return fail("expected call", made->line);
    for (const KeywordExpr& keyword : made->value->keywords)
      if (keyword.name == "caller") return fail("keyword argument repeated: caller", made->line);
    return function_body("endcall", made->body) ? made : nullptr;
  }

  Statement* filter_block() {
    Statement* made = make(StatementKind::kFilterBlock, take().line);
    made->value = filter(nullptr);
    while (made->value && take_if(Kind::kPipe)) made->value = filter(made->value);
    if (!made->value) return nullptr;
    return body_to("endfilter", made->body) ? made : nullptr;
  }

  Statement* with() {
    Statement* made = make(StatementKind::kWith, take().line);
    std::vector<Expr*> targets, values;
    while (!at(Kind::kBlockEnd)) {
      if (!targets.empty() && !expect(Kind::kComma, "','")) return nullptr;
      targets.push_back(target({}));
      if (!targets.back() || !expect(Kind::kAssign, "'='")) return nullptr;
      values.push_back(expression());
      if (!values.back()) return nullptr;
    }
    made->targets = arena_.copy(targets);
    made->exprs = arena_.copy(values);
    return body_to("endwith", made->body) ? made : nullptr;
  }

  Statement* print() {
    Statement* made = make(StatementKind::kPrint, take().line);
    std::vector<Expr*> exprs;
    while (!at(Kind::kBlockEnd)) {
      if (!exprs.empty() && !expect(Kind::kComma, "','")) return nullptr;
      exprs.push_back(expression());
      if (!exprs.back()) return nullptr;
    }
    made->exprs = arena_.copy(exprs);
    return made;
  }

  // transformers marks the assistant's tokens with this tag; what it renders is its body.
  Statement* generation() {
    Statement* made = make(StatementKind::kGeneration, take().line);
    made->macro = arena_.make<MacroParts>();
    return function_body("endgeneration", made->body) ? made : nullptr;
  }

  std::span<const Token> tokens_;
  Arena& arena_;
  SyntaxError& error_;
  size_t at_ = 0;
  int depth_ = 0;
  int loop_depth_ = 0;  // Loops that break and continue could leave here.
};

}  // namespace

bool parse(std::span<const Token> tokens, Arena& arena, Tree& tree, SyntaxError& error) {
  return Parser(tokens, arena, error).run(tree);
}

}  // namespace weir::text::jinja
