// Interpreter: calls of functions, methods, macros and recursive loops.
#include <algorithm>
#include <array>

#include "base/concat.h"
#include "jinja/interpreter.h"
#include "jinja/repr.h"

namespace weir::jinja {

struct Interpreter::EvaluatedArguments {
  static constexpr size_t kInline = 4;
  std::array<Value, kInline> few;
  std::vector<Value> many;  // In use instead when there are more, or a *argument.
  std::vector<Keyword> keywords;
  size_t count = 0;

  void add(const Value& value) {
    if (count < kInline && many.empty()) {
      few[count++] = value;
      return;
    }
    if (many.empty()) many.assign(few.begin(), few.end());
    many.push_back(value);
    ++count;
  }

  Arguments view() const {
    return {many.empty() ? std::span<const Value>(few.data(), count) : std::span<const Value>(many),
            keywords};
  }
};

bool Interpreter::evaluate_arguments(const Expr& expr, EvaluatedArguments& out) {
  for (const Expr* item : expr.items) {
    const Value value = evaluate(*item);
    if (value.is_error()) return false;
    out.add(value);
  }
  for (const KeywordExpr& keyword : expr.keywords) {
    const Value value = evaluate(*keyword.value);
    if (value.is_error()) return false;
    out.keywords.push_back({keyword.name, value});
  }
  if (expr.star) {
    const Value star = evaluate(*expr.star);
    std::vector<Value> items;
    if (star.is_error() || !collect(rt_, star, items)) return false;
    for (const Value& item : items) out.add(item);
  }
  if (!expr.star_star) return true;
  const Value mapping = evaluate(*expr.star_star);
  if (mapping.is_error()) return false;
  if (!mapping.is(Type::kDict)) {
    rt_.fail("argument after ** must be a mapping, not ", type_name(mapping.type));
    return false;
  }
  for (const Entry& entry : mapping.dict->entries()) {
    if (!rt_.charge(1 + expr.keywords.size())) return false;
    if (!entry.key.is(Type::kStr)) {
      rt_.fail("keywords must be strings");
      return false;
    }
    if (!hashable(rt_, entry.key))
      return false;  // A string is; kwargs will have it as a key again.
    // Only those written out can be the same as another: a mapping's are all different.
    for (const KeywordExpr& keyword : expr.keywords) {
      if (keyword.name != entry.key.text()) continue;
      rt_.fail("got multiple values for keyword argument '", keyword.name, "'");
      return false;
    }
    out.keywords.push_back({entry.key.text(), entry.value});
  }
  return true;
}

Value Interpreter::call_builtin(const Expr& expr, const Value& self) {
  if (expr.items.empty() && expr.keywords.empty() && !expr.star && !expr.star_star)
    return invoke(rt_, *expr.builtin, self, {});
  EvaluatedArguments arguments;
  if (!evaluate_arguments(expr, arguments)) return Value::error();
  return invoke(rt_, *expr.builtin, self, arguments.view());
}

Value Interpreter::call(const Expr& expr, const Value* caller) {
  const Expr& callee_expr = *expr.a;
  const Builtin* method = nullptr;
  Value callee;
  if (callee_expr.kind == ExprKind::kAttribute) {
    // A method called at once needs no bound method in between.
    callee = evaluate(*callee_expr.a);
    if (callee.is(Type::kStr)) method = callee_expr.str_method;
    if (callee.is(Type::kDict)) method = callee_expr.dict_method;
    if (!method && !callee.is_error()) callee = attribute(callee_expr, callee);
  } else {
    callee = evaluate(callee_expr);
  }
  if (callee.is_error()) return callee;
  EvaluatedArguments arguments;
  if (!evaluate_arguments(expr, arguments)) return Value::error();
  if (caller) arguments.keywords.push_back({"caller", *caller});
  return method ? invoke(rt_, *method, callee, arguments.view())
                : call_value(callee, arguments.view());
}

Value Interpreter::call_value(const Value& callee, const Arguments& arguments) {
  switch (callee.type) {
    case Type::kFunction:
      return invoke(rt_, *callee.function, Value::none(), arguments);
    case Type::kMethod:
      return invoke(rt_, *callee.method->builtin, callee.method->self, arguments);
    case Type::kMacro:
      return call_macro(*callee.macro, arguments);
    case Type::kLoop:
      return call_loop(*callee.loop, arguments);
    case Type::kJoiner:
      if (!arguments.positional.empty() || !arguments.keywords.empty())
        return rt_.fail("a joiner takes no arguments");
      if (callee.joiner->used) return callee.joiner->separator;
      callee.joiner->used = true;
      return rt_.borrow("");
    case Type::kUndefined:
      return rt_.fail_undefined(callee);
    default:
      return rt_.fail("'", type_name(callee.type), "' object is not callable");
  }
}

Value Interpreter::make_macro(const Statement& statement, std::string_view name) {
  return Value::of(Type::kMacro, rt_.arena().make<Macro>(&statement, scope_, name));
}

// Puts the arguments into the macro's scope; those not given stay missing.
bool Interpreter::bind_macro(const Macro& macro, const Arguments& arguments, Scope& scope) {
  const MacroParts& parts = *macro.definition->macro;
  std::vector<bool> used(arguments.keywords.size());
  for (size_t i = 0; i < parts.slots.size(); ++i) {
    Value& to = scope.slots[parts.slots[i]];
    if (i < arguments.positional.size()) {
      to = arguments.positional[i];
      continue;
    }
    if (!rt_.charge(used.size())) return false;
    for (size_t k = 0; k < used.size(); ++k) {
      if (arguments.keywords[k].name != parts.names[i]) continue;
      to = arguments.keywords[k].value;
      used[k] = true;
    }
  }
  return bind_rest(macro, arguments, used, scope);
}

// caller, kwargs, varargs, or complaints about what there is no parameter for.
bool Interpreter::bind_rest(const Macro& macro, const Arguments& arguments, std::vector<bool>& used,
                            Scope& scope) {
  const MacroParts& parts = *macro.definition->macro;
  if (parts.caller != MacroParts::kNoSlot) {
    Value& caller = scope.slots[parts.caller];
    caller = rt_.undefined("No caller defined");
    for (size_t k = 0; k < used.size(); ++k) {
      if (used[k] || arguments.keywords[k].name != "caller") continue;
      if (!arguments.keywords[k].value.is(Type::kNone)) caller = arguments.keywords[k].value;
      used[k] = true;
    }
  }
  Dict* kwargs = rt_.arena().make<Dict>();
  for (size_t k = 0; k < used.size(); ++k) {
    if (used[k]) continue;
    const Keyword& keyword = arguments.keywords[k];
    if (parts.kwargs == MacroParts::kNoSlot) {
      rt_.fail("macro '", macro.name, "' takes no keyword argument '", keyword.name, "'");
      return false;
    }
    kwargs->set(rt_.arena(), rt_.borrow(keyword.name), keyword.value);
  }
  if (parts.kwargs != MacroParts::kNoSlot)
    scope.slots[parts.kwargs] = Value::of(Type::kDict, kwargs);
  const size_t bound = std::min(parts.slots.size(), arguments.positional.size());
  const auto rest = arguments.positional.subspan(bound);
  if (parts.varargs != MacroParts::kNoSlot) {
    scope.slots[parts.varargs] = rt_.tuple(rest);
  } else if (!rest.empty()) {
    rt_.fail("macro '", macro.name, "' takes not more than ", std::to_string(parts.slots.size()),
             " argument(s)");
    return false;
  }
  return true;
}

// Defaults are evaluated inside the macro, where they see the parameters before them.
bool Interpreter::fill_defaults(const Macro& macro, Scope& scope) {
  const MacroParts& parts = *macro.definition->macro;
  const size_t required = parts.slots.size() - parts.defaults.size();
  for (size_t i = 0; i < parts.slots.size(); ++i) {
    Value& to = scope.slots[parts.slots[i]];
    if (!to.is_missing()) continue;
    if (i >= required) {
      const Value value = evaluate(*parts.defaults[i - required]);
      if (value.is_error()) return false;
      to = value;
    } else {
      const std::string hint = weir::concat({"parameter '", parts.names[i], "' was not provided"});
      to = rt_.undefined(rt_.arena().copy(std::string_view(hint)));
    }
  }
  return true;
}

Value Interpreter::call_macro(const Macro& macro, const Arguments& arguments) {
  const Statement& definition = *macro.definition;
  Scope* scope = make_scope(macro.scope, definition.macro->slot_count);
  if (!scope || !bind_macro(macro, arguments, *scope)) return Value::error();
  Scope* const outer = std::exchange(scope_, scope);
  const size_t start = out_->size();
  const bool fine = deeper() && enter(definition.frame) && fill_defaults(macro, *scope) &&
                    run(definition.body) == Flow::kNext;
  --depth_;
  scope_ = outer;
  return fine ? captured(start) : Value::error();
}

Value Interpreter::call_loop(Loop& loop_state, const Arguments& arguments) {
  if (!loop_state.recursive)
    return rt_.fail("The loop must have the 'recursive' marker to be called recursively.");
  if (arguments.positional.size() != 1 || !arguments.keywords.empty())
    return rt_.fail("loop() takes one argument, the items of the inner loop");
  const Statement& statement = *loop_state.recursive;
  Loop* inner = rt_.arena().make<Loop>();
  inner->recursive = &statement;
  inner->scope = loop_state.scope;
  inner->depth0 = loop_state.depth0 + 1;
  Scope* scope = make_scope(loop_state.scope, statement.slot_count);
  if (!scope) return Value::error();
  Scope* const outer = std::exchange(scope_, scope);
  const size_t start = out_->size();
  const bool fine = deeper() && loop(statement, arguments.positional[0], inner) != Flow::kError;
  --depth_;
  scope_ = outer;
  return fine ? captured(start) : Value::error();
}

}  // namespace weir::jinja
