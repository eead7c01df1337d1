// Parser: statements, as jinja2.parser does them; expressions are the ExpressionParser's.
#include "jinja/parser.h"
#include "base/concat.h"

#include <algorithm>
#include <initializer_list>

#include "jinja/expression_parser.h"
#include "jinja/token_reader.h"

namespace weir::jinja {

namespace {

using Kind = TokenKind;
using Names = std::initializer_list<std::string_view>;
using Body = std::span<Statement*>;

class Parser {
 public:
  Parser(std::span<const Token> tokens, Arena& arena, SyntaxError& error)
      : in_(tokens, error), exprs_(in_, arena), arena_(arena) {}

  bool run(Tree& tree) { return statements({}, tree.body); }

 private:
  Statement* make(StatementKind kind, int32_t line) {
    Statement* statement = arena_.make<Statement>();
    statement->kind = kind;
    statement->line = line;
    return statement;
  }

  bool at_any(Names names) const {
    return in_.at(Kind::kName) &&
           std::find(names.begin(), names.end(), in_.current().text) != names.end();
  }

  // Statements up to one of the end tags, which is left current; with no names to the template's
  // end.
  bool statements(Names ends, Body& body) {
    const TokenReader::Deeper deeper(in_);
    if (deeper.too_deep()) return false;
    std::vector<Statement*> list;
    while (!in_.at(Kind::kEnd)) {
      const Token& token = in_.take();
      Statement* made = nullptr;
      if (token.kind == Kind::kData) {
        made = make(StatementKind::kText, token.line);
        made->text = token.text;
      } else if (token.kind == Kind::kVariableBegin) {
        made = make(StatementKind::kPrint, token.line);
        Expr* expr = exprs_.tuple({});
        if (!expr || !in_.expect(Kind::kVariableEnd, "'}}'")) return false;
        made->exprs = arena_.copy(std::vector<Expr*>{expr});
      } else {
        if (at_any(ends)) {
          body = arena_.copy(list);
          return true;
        }
        made = statement(ends);
        if (!made || !in_.expect(Kind::kBlockEnd, "'%}'")) return false;
      }
      list.push_back(made);
    }
    if (ends.size() > 0) {
      std::string names;
      for (const std::string_view name : ends)
        names += (names.empty() ? "" : " or ") + std::string(name);
      in_.fail(concat({"the template ends where ", names, " is missing"}));
      return false;
    }
    body = arena_.copy(list);
    return true;
  }

  // The rest of an opening tag, then statements up to one of the end tags.
  bool body_until(Names ends, Body& body) {
    in_.take_if(Kind::kColon);
    return in_.expect(Kind::kBlockEnd, "'%}'") && statements(ends, body);
  }

  bool body_to(std::string_view end, Body& body) {
    if (!body_until({end}, body)) return false;
    in_.take();
    return true;
  }

  Statement* statement(Names ends) {
    if (!in_.at(Kind::kName))
      return in_.fail(concat({"tag name expected, found ", describe(in_.current())}));
    const Token& tag = in_.current();
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
      in_.take();
      if (loop_depth_ == 0) return in_.fail(concat({name, " outside of a loop"}), tag.line);
      return make(name == "break" ? StatementKind::kBreak : StatementKind::kContinue, tag.line);
    }
    if (name == "include" || name == "import" || name == "from" || name == "extends") {
      while (!in_.at(Kind::kBlockEnd) && !in_.at(Kind::kEnd)) in_.take();
      Statement* made = make(StatementKind::kNeedsLoader, tag.line);
      made->name = exprs_.str(name);
      return made;
    }
    if (name == "block" || name == "autoescape")
      return in_.fail(concat({"{% ", name, " %} is not supported"}));
    std::string complaint = concat({"Encountered unknown tag '", name, "'"});
    for (const std::string_view end : ends)
      complaint += concat({end == *ends.begin() ? "; looking for " : " or ", end});
    return in_.fail(std::move(complaint));
  }

  Statement* for_loop() {
    Statement* made = make(StatementKind::kFor, in_.take().line);
    made->target = exprs_.target("in");
    if (!made->target || !in_.expect_name("in")) return nullptr;
    made->value = exprs_.tuple({.with_condition = false, .end_name = "recursive"});
    if (!made->value) return nullptr;
    if (in_.take_name("if")) {
      made->test = exprs_.expression();
      if (!made->test) return nullptr;
    }
    made->recursive = in_.take_name("recursive");
    ++loop_depth_;
    const bool fine = body_until({"endfor", "else"}, made->body);
    --loop_depth_;
    if (!fine) return nullptr;
    if (in_.take().text == "else") {
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
    while (made && in_.at_name("elif")) {
      elifs.push_back(if_part());
      if (!elifs.back()) return nullptr;
    }
    if (!made) return nullptr;
    made->elifs = arena_.copy(elifs);
    if (in_.take().text == "else" && !body_to("endif", made->otherwise)) return nullptr;
    return made;
  }

  // `if` or `elif`, its condition and its body.
  Statement* if_part() {
    Statement* made = make(StatementKind::kIf, in_.take().line);
    made->value = exprs_.tuple({.with_condition = false});
    if (!made->value || !body_until({"elif", "else", "endif"}, made->body)) return nullptr;
    return made;
  }

  Statement* set() {
    const int32_t line = in_.take().line;
    Expr* to = exprs_.set_target();
    if (!to) return nullptr;
    if (in_.take_if(Kind::kAssign)) {
      Statement* made = make(StatementKind::kSet, line);
      made->target = to;
      made->value = exprs_.tuple({});
      return made->value ? made : nullptr;
    }
    Statement* made = make(StatementKind::kSetBlock, line);
    made->target = to;
    while (in_.take_if(Kind::kPipe)) {
      made->value = exprs_.filter(made->value);
      if (!made->value) return nullptr;
    }
    return body_to("endset", made->body) ? made : nullptr;
  }

  bool signature(MacroParts& parts) {
    if (!in_.expect(Kind::kLeftParen, "'('")) return false;
    std::vector<std::string_view> names;
    std::vector<Expr*> defaults;
    while (!in_.at(Kind::kRightParen)) {
      if (!names.empty() && !in_.expect(Kind::kComma, "',' or ')'")) return false;
      const Token* name = exprs_.plain_name();
      if (!name) return false;
      if (std::find(names.begin(), names.end(), name->text) != names.end())
        return in_.fail(concat({"duplicate argument '", name->text, "'"})) != nullptr;
      if (names.size() == kKeywordsMax) return in_.fail("too many parameters") != nullptr;
      names.push_back(name->text);
      if (in_.take_if(Kind::kAssign)) {
        defaults.push_back(exprs_.expression());
        if (!defaults.back()) return false;
      } else if (!defaults.empty()) {
        return in_.fail("non-default argument follows default argument") != nullptr;
      }
    }
    in_.take();
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
    Statement* made = make(StatementKind::kMacro, in_.take().line);
    const Token* name = exprs_.plain_name();
    if (!name) return nullptr;
    made->name = exprs_.str(name->text);
    made->macro = arena_.make<MacroParts>();
    if (!signature(*made->macro)) return nullptr;
    return function_body("endmacro", made->body) ? made : nullptr;
  }

  Statement* call_block() {
    Statement* made = make(StatementKind::kCallBlock, in_.take().line);
    made->macro = arena_.make<MacroParts>();
    if (in_.at(Kind::kLeftParen) && !signature(*made->macro)) return nullptr;
    made->value = exprs_.expression();
    if (!made->value) return nullptr;
    if (made->value->kind != ExprKind::kCall) return in_.fail("expected call", made->line);
    for (const KeywordExpr& keyword : made->value->keywords)
      if (keyword.name == "caller")
        return in_.fail("keyword argument repeated: caller", made->line);
    return function_body("endcall", made->body) ? made : nullptr;
  }

  Statement* filter_block() {
    Statement* made = make(StatementKind::kFilterBlock, in_.take().line);
    made->value = exprs_.filter(nullptr);
    while (made->value && in_.take_if(Kind::kPipe)) made->value = exprs_.filter(made->value);
    if (!made->value) return nullptr;
    return body_to("endfilter", made->body) ? made : nullptr;
  }

  Statement* with() {
    Statement* made = make(StatementKind::kWith, in_.take().line);
    std::vector<Expr*> targets, values;
    while (!in_.at(Kind::kBlockEnd)) {
      if (!targets.empty() && !in_.expect(Kind::kComma, "','")) return nullptr;
      targets.push_back(exprs_.target({}));
      if (!targets.back() || !in_.expect(Kind::kAssign, "'='")) return nullptr;
      values.push_back(exprs_.expression());
      if (!values.back()) return nullptr;
    }
    made->targets = arena_.copy(targets);
    made->exprs = arena_.copy(values);
    return body_to("endwith", made->body) ? made : nullptr;
  }

  Statement* print() {
    Statement* made = make(StatementKind::kPrint, in_.take().line);
    std::vector<Expr*> exprs;
    while (!in_.at(Kind::kBlockEnd)) {
      if (!exprs.empty() && !in_.expect(Kind::kComma, "','")) return nullptr;
      exprs.push_back(exprs_.expression());
      if (!exprs.back()) return nullptr;
    }
    made->exprs = arena_.copy(exprs);
    return made;
  }

  // transformers marks the assistant's tokens with this tag; what it renders is its body.
  Statement* generation() {
    Statement* made = make(StatementKind::kGeneration, in_.take().line);
    made->macro = arena_.make<MacroParts>();
    return function_body("endgeneration", made->body) ? made : nullptr;
  }

  TokenReader in_;
  ExpressionParser exprs_;
  Arena& arena_;
  int loop_depth_ = 0;  // Loops that break and continue could leave here.
};

}  // namespace

bool parse(std::span<const Token> tokens, Arena& arena, Tree& tree, SyntaxError& error) {
  return Parser(tokens, arena, error).run(tree);
}

}  // namespace weir::jinja
