// Interpreter: statements. What is printed goes to one buffer; macros and blocks that want their
// text for themselves cut it off again.
#include "jinja/interpreter.h"

#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

bool Interpreter::render(const Tree& tree, std::string& out) {
  out_ = &out;
  scope_ = make_scope(nullptr, tree.slot_count);
  if (!scope_) return false;
  return enter(tree.frame) && run(tree.body) != Flow::kError;
}

Scope* Interpreter::make_scope(Scope* parent, uint32_t slot_count) {
  if (!rt_.reserve(slot_count * sizeof(Value))) return nullptr;
  Value* slots = rt_.arena().make_array<Value>(slot_count);
  std::uninitialized_fill_n(slots, slot_count, Value::missing());
  return rt_.arena().make<Scope>(parent, slots);
}

Value& Interpreter::slot(Slot where) {
  Scope* scope = scope_;
  for (uint32_t hops = where.hops; hops > 0; --hops) scope = scope->parent;
  return scope->slots[where.index];
}

bool Interpreter::enter(const Frame& frame) {
  if (!rt_.charge(frame.loads.size())) return false;
  for (const Load& load : frame.loads) {
    Value& to = scope_->slots[load.slot];
    switch (load.kind) {
      case Load::Kind::kUndefined:
        to = Value::missing();
        break;
      case Load::Kind::kAlias:
        to = slot(load.from);
        break;
      case Load::Kind::kResolve: {
        if (!rt_.charge(load.name.size() >> 5)) return false;
        const Value* found = variables_.find(load.name);
        to = found         ? *found
             : load.global ? Value::of(Type::kFunction, load.global)
                           : Value::missing();
        break;
      }
    }
  }
  return true;
}

bool Interpreter::leave(const Frame& frame) {
  for (const uint32_t index : frame.slots) scope_->slots[index] = Value::missing();
  return rt_.charge(frame.slots.size());
}

bool Interpreter::output(std::string_view text) {
  if (text.size() > rt_.limits().output_bytes - std::min(out_->size(), rt_.limits().output_bytes)) {
    rt_.fail("the template's output is larger than ", std::to_string(rt_.limits().output_bytes),
             " bytes");
    return false;
  }
  *out_ += text;
  return rt_.charge_bytes(text.size());
}

Value Interpreter::captured(size_t start) {
  const std::string_view text = std::string_view(*out_).substr(start);
  if (!rt_.reserve(text.size())) return Value::error();
  const Value value = rt_.string(text);
  out_->resize(start);
  return value;
}

Interpreter::Flow Interpreter::run(Body body) {
  for (const Statement* statement : body)
    if (const Flow flow = run_checked(*statement); flow != Flow::kNext) return flow;
  return Flow::kNext;
}

// Keeps the line of the innermost statement or expression that failed.
Interpreter::Flow Interpreter::run_checked(const Statement& statement) {
  const Flow flow = deeper() ? run(statement) : Flow::kError;
  --depth_;
  if (flow == Flow::kError && error_line_ == 0) error_line_ = statement.line;
  return flow;
}

Interpreter::Flow Interpreter::run(const Statement& statement) {
  switch (statement.kind) {
    case StatementKind::kText:
      return output(statement.text) ? Flow::kNext : Flow::kError;
    case StatementKind::kPrint:
      return print(statement);
    case StatementKind::kIf:
      return run_if(statement);
    case StatementKind::kFor:
      return run_for(statement);
    case StatementKind::kSet: {
      const Value value = evaluate(*statement.value);
      return !value.is_error() && assign(*statement.target, value) ? Flow::kNext : Flow::kError;
    }
    case StatementKind::kSetBlock:
      return run_set_block(statement);
    case StatementKind::kMacro:
      slot(statement.slot) = make_macro(statement, statement.name->view());
      return Flow::kNext;
    case StatementKind::kCallBlock:
      return run_call_block(statement);
    case StatementKind::kFilterBlock:
      return run_filter_block(statement);
    case StatementKind::kWith:
      return run_with(statement);
    case StatementKind::kGeneration: {
      const Value text = call_value(make_macro(statement, {}), {});
      return !text.is_error() && output(text.text()) ? Flow::kNext : Flow::kError;
    }
    case StatementKind::kBreak:
      return Flow::kBreak;
    case StatementKind::kContinue:
      return Flow::kContinue;
    case StatementKind::kNeedsLoader:
      rt_.fail("{% ", statement.name->view(), " %}: no loader for this environment specified");
      return Flow::kError;
  }
  return Flow::kError;
}

Interpreter::Flow Interpreter::print(const Statement& statement) {
  for (const Expr* expr : statement.exprs) {
    Value value = evaluate(*expr);
    if (!value.is_error()) value = to_str(rt_, value);
    if (value.is_error() || !output(value.text())) return Flow::kError;
  }
  return Flow::kNext;
}

Interpreter::Flow Interpreter::run_if(const Statement& statement) {
  Value verdict = evaluate(*statement.value);
  if (verdict.is_error()) return Flow::kError;
  if (truthy(verdict)) return run(statement.body);
  for (const Statement* elif : statement.elifs) {
    verdict = evaluate(*elif->value);
    if (verdict.is_error()) return Flow::kError;
    if (truthy(verdict)) return run(elif->body);
  }
  return run(statement.otherwise);
}

Interpreter::Flow Interpreter::run_for(const Statement& statement) {
  const Value iterable = evaluate(*statement.value);
  if (iterable.is_error()) return Flow::kError;
  Loop* state = statement.has_loop_variable ? rt_.arena().make<Loop>() : nullptr;
  if (!statement.recursive) return loop(statement, iterable, state);
  // As a function of its own, which `loop(...)` calls again.
  state->recursive = &statement;
  state->scope = scope_;
  state->depth0 = -1;
  const Value text = call_loop(*state, {std::span(&iterable, 1), {}});
  return !text.is_error() && output(text.text()) ? Flow::kNext : Flow::kError;
}

Interpreter::Flow Interpreter::loop(const Statement& statement, const Value& iterable,
                                    Loop* state) {
  Iterator* source = iterate(rt_, iterable);
  if (!source) return Flow::kError;
  if (statement.test) source = filtered(statement, source);
  if (state) {
    state->source = source;
    state->iterable = statement.test ? Value::of(Type::kIterator, source) : iterable;
  }
  bool ran = false;
  Flow flow = iterate_body(statement, source, state, ran);
  if (flow != Flow::kNext) return flow;
  if (!leave(statement.frame)) return Flow::kError;
  if (ran || statement.otherwise.empty()) return Flow::kNext;
  if (!enter(statement.otherwise_frame)) return Flow::kError;
  flow = run(statement.otherwise);
  return leave(statement.otherwise_frame) ? flow : Flow::kError;
}

// `ran`: some iteration came to its end, or to a break; Jinja's else looks at the former only.
Interpreter::Flow Interpreter::iterate_body(const Statement& statement, Iterator* source,
                                            Loop* state, bool& ran) {
  for (;;) {
    const Value item = state ? state->next(rt_) : source->next(rt_);
    if (item.is_error()) return Flow::kError;
    if (item.is_missing()) return Flow::kNext;
    if (!assign(*statement.target, item)) return Flow::kError;
    if (state) scope_->slots[statement.loop_slot] = Value::of(Type::kLoop, state);
    if (!enter(statement.frame)) return Flow::kError;
    const Flow flow = run(statement.body);
    if (flow == Flow::kError) return flow;
    if (flow == Flow::kBreak) return Flow::kNext;
    if (flow == Flow::kNext) ran = true;
  }
}

// The generator around the iterable of `for ... if`: it tests as the loop asks for items.
struct Interpreter::FilteredLoop {
  Interpreter* interpreter;
  const Statement* statement;
  Iterator* source;
  Scope* scope;
  bool started;
};

Iterator* Interpreter::filtered(const Statement& statement, Iterator* source) {
  Scope* scope = statement.recursive ? scope_->parent : scope_;
  auto* state = rt_.arena().make<FilteredLoop>(this, &statement, source, scope, false);
  return make_generator(rt_, next_filtered, state).iterator;
}

Value Interpreter::next_filtered(Runtime& rt, void* opaque) {
  auto& state = *static_cast<FilteredLoop*>(opaque);
  Interpreter& self = *state.interpreter;
  const Statement& statement = *state.statement;
  Scope* const outer = self.scope_;
  self.scope_ = state.scope;
  Value item = Value::error();
  const bool ready = state.started || self.enter(statement.test_frame);
  state.started = true;
  while (ready) {
    item = state.source->next(rt);
    if (item.is_missing() || item.is_error()) break;
    Value verdict = Value::error();
    if (self.assign(*statement.test_target, item)) verdict = self.evaluate(*statement.test);
    if (verdict.is_error()) item = verdict;
    if (verdict.is_error() || truthy(verdict)) break;
  }
  self.scope_ = outer;
  return item;
}

Interpreter::Flow Interpreter::run_set_block(const Statement& statement) {
  const size_t start = out_->size();
  if (!enter(statement.frame)) return Flow::kError;
  const Flow flow = run(statement.body);
  if (flow != Flow::kNext) {
    out_->resize(std::min(start, out_->size()));
    return flow;
  }
  Value text = captured(start);
  if (!text.is_error() && statement.value) {
    const Value outer = std::exchange(filtered_text_, text);
    text = evaluate(*statement.value);
    filtered_text_ = outer;
  }
  if (!leave(statement.frame)) return Flow::kError;
  return !text.is_error() && assign(*statement.target, text) ? Flow::kNext : Flow::kError;
}

Interpreter::Flow Interpreter::run_filter_block(const Statement& statement) {
  const size_t start = out_->size();
  if (!enter(statement.frame)) return Flow::kError;
  const Flow flow = run(statement.body);
  if (flow != Flow::kNext) {
    out_->resize(std::min(start, out_->size()));
    return flow;
  }
  Value text = captured(start);
  if (text.is_error()) return Flow::kError;
  const Value outer = std::exchange(filtered_text_, text);
  text = evaluate(*statement.value);
  filtered_text_ = outer;
  if (!leave(statement.frame)) return Flow::kError;
  if (!text.is_error()) text = to_str(rt_, text);
  return !text.is_error() && output(text.text()) ? Flow::kNext : Flow::kError;
}

Interpreter::Flow Interpreter::run_with(const Statement& statement) {
  if (!enter(statement.frame)) return Flow::kError;
  for (size_t i = 0; i < statement.targets.size(); ++i) {
    const Value value = evaluate(*statement.exprs[i]);
    if (value.is_error() || !assign(*statement.targets[i], value)) return Flow::kError;
  }
  const Flow flow = run(statement.body);
  return leave(statement.frame) ? flow : Flow::kError;
}

Interpreter::Flow Interpreter::run_call_block(const Statement& statement) {
  const Value caller = make_macro(statement, {});
  Value text = call(*statement.value, &caller);
  if (!text.is_error()) text = to_str(rt_, text);
  return !text.is_error() && output(text.text()) ? Flow::kNext : Flow::kError;
}

bool Interpreter::assign(const Expr& target, const Value& value) {
  switch (target.kind) {
    case ExprKind::kName:
      slot(target.slot) = value;
      return true;
    case ExprKind::kNamespaceRef: {
      const Value& space = slot(target.slot);
      if (!space.is(Type::kNamespace)) {
        rt_.fail("cannot assign attribute on non-namespace object");
        return false;
      }
      if (!rt_.charge(target.attribute->bytes >> 5)) return false;
      space.space->attributes->set(rt_.arena(), Value::of(target.attribute), value);
      return true;
    }
    default:
      return unpack(target, value);
  }
}

bool Interpreter::unpack(const Expr& target, const Value& value) {
  Iterator* source = iterate(rt_, value, "cannot unpack non-iterable ", " object");
  if (!source) return false;
  std::vector<Value> items;
  for (;;) {
    const Value item = source->next(rt_);
    if (item.is_error()) return false;
    if (item.is_missing()) break;
    items.push_back(item);
    if (items.size() > target.items.size()) {
      rt_.fail("too many values to unpack (expected ", std::to_string(target.items.size()), ")");
      return false;
    }
  }
  if (items.size() < target.items.size()) {
    rt_.fail("not enough values to unpack (expected ", std::to_string(target.items.size()),
             ", got ", std::to_string(items.size()), ")");
    return false;
  }
  for (size_t i = 0; i < items.size(); ++i)
    if (!assign(*target.items[i], items[i])) return false;
  return true;
}

}  // namespace weir::jinja
