// Interpreter: renders a resolved template with some variables.
//
// Threads: one rendering, one thread; the tree is only read.
#pragma once

#include <string>

#include "jinja/ast.h"
#include "jinja/object.h"
#include "jinja/runtime.h"

namespace weir::jinja {

// The variables of one running function (the template, a macro, a recursive loop), and the scope
// its definition is in.
struct Scope {
  Scope* parent = nullptr;
  Value* slots = nullptr;
};

class Interpreter {
 public:
  Interpreter(Runtime& rt, const Dict& variables) : rt_(rt), variables_(variables) {}

  // False if the template fails: the Runtime has the message, error_line() the place.
  bool render(const Tree& tree, std::string& out);
  int32_t error_line() const { return error_line_; }

 private:
  enum class Flow : uint8_t { kNext, kBreak, kContinue, kError };
  using Body = std::span<Statement* const>;
  struct FilteredLoop;

  // ---- Statements (interpreter.cpp) ----
  Flow run(Body body);
  Flow run(const Statement& statement);
  Flow run_checked(const Statement& statement);
  Flow print(const Statement& statement);
  Flow run_if(const Statement& statement);
  Flow run_for(const Statement& statement);
  Flow loop(const Statement& statement, const Value& iterable, Loop* state);
  Flow iterate_body(const Statement& statement, Iterator* source, Loop* state, bool& ran);
  Flow run_set_block(const Statement& statement);
  Flow run_filter_block(const Statement& statement);
  Flow run_with(const Statement& statement);
  Flow run_call_block(const Statement& statement);
  bool assign(const Expr& target, const Value& value);
  bool unpack(const Expr& target, const Value& value);
  Iterator* filtered(const Statement& statement, Iterator* source);
  static Value next_filtered(Runtime& rt, void* state);
  // Both pay for what they go over: a frame has as many variables as its template names.
  bool enter(const Frame& frame);
  bool leave(const Frame& frame);
  Scope* make_scope(Scope* parent, uint32_t slot_count);
  Value& slot(Slot where);
  bool output(std::string_view text);
  // What has been printed since `start`, taken back from the output.
  Value captured(size_t start);

  // ---- Calls (call.cpp) ----
  Value call(const Expr& expr, const Value* caller);
  Value call_value(const Value& callee, const Arguments& arguments);
  Value call_macro(const Macro& macro, const Arguments& arguments);
  bool bind_macro(const Macro& macro, const Arguments& arguments, Scope& scope);
  bool bind_rest(const Macro& macro, const Arguments& arguments, std::vector<bool>& used,
                 Scope& scope);
  bool fill_defaults(const Macro& macro, Scope& scope);
  Value call_loop(Loop& loop, const Arguments& arguments);
  Value make_macro(const Statement& statement, std::string_view name);
  Value call_builtin(const Expr& expr, const Value& self);

  // Arguments being evaluated; few enough in most calls to need no allocation.
  struct EvaluatedArguments;
  bool evaluate_arguments(const Expr& expr, EvaluatedArguments& out);

  // ---- Expressions (expression.cpp) ----
  Value evaluate(const Expr& expr);
  Value evaluate_node(const Expr& expr);
  Value variable(const Expr& expr);
  Value attribute(const Expr& expr, const Value& of);
  Value sequence(const Expr& expr);
  Value dict(const Expr& expr);
  Value slice(const Expr& expr);
  Value concat(const Expr& expr);
  Value comparison(const Expr& expr);
  Value condition(const Expr& expr);
  Value binary(const Expr& expr);
  Value filter(const Expr& expr, const Value& self);
  Value test(const Expr& expr);

  // Counts a level of recursion. False, with the error set, at the limit.
  bool deeper() {
    if (++depth_ <= rt_.limits().depth) return rt_.charge();
    rt_.fail("maximum recursion depth exceeded");
    return false;
  }

  Runtime& rt_;
  const Dict& variables_;
  std::string* out_ = nullptr;
  Scope* scope_ = nullptr;
  // What a {% filter %} or {% set %} filter is applied to.
  Value filtered_text_;
  int depth_ = 0;
  int32_t error_line_ = 0;
};

}  // namespace weir::jinja
