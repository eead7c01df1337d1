// Interpreter: expressions.
#include "jinja/interpreter.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

// Keeps the line of the innermost expression that failed.
Value Interpreter::evaluate(const Expr& expr) {
  if (expr.kind == ExprKind::kConstant) return expr.constant;
  const Value value = deeper() ? evaluate_node(expr) : Value::error();
  --depth_;
  if (value.is_error() && error_line_ == 0) error_line_ = expr.line;
  return value;
}

Value Interpreter::evaluate_node(const Expr& expr) {
  switch (expr.kind) {
    case ExprKind::kConstant:
      return expr.constant;
    case ExprKind::kName:
      return variable(expr);
    case ExprKind::kAttribute: {
      const Value of = evaluate(*expr.a);
      return of.is_error() ? of : attribute(expr, of);
    }
    case ExprKind::kItem: {
      const Value of = evaluate(*expr.a);
      if (of.is_error()) return of;
      const Value key = evaluate(*expr.b);
      return key.is_error() ? key : get_item(rt_, of, key);
    }
    case ExprKind::kSlice:
      return slice(expr);
    case ExprKind::kCall:
      return call(expr, nullptr);
    case ExprKind::kFilter: {
      const Value self = expr.a ? evaluate(*expr.a) : filtered_text_;
      return self.is_error() ? self : filter(expr, self);
    }
    case ExprKind::kTest:
      return test(expr);
    case ExprKind::kTuple:
    case ExprKind::kList:
      return sequence(expr);
    case ExprKind::kDict:
      return dict(expr);
    case ExprKind::kCondition:
      return condition(expr);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      const Value left = evaluate(*expr.a);
      if (left.is_error() || truthy(left) == (expr.kind == ExprKind::kOr)) return left;
      return evaluate(*expr.b);
    }
    case ExprKind::kNot:
    case ExprKind::kNegate:
    case ExprKind::kPlus: {
      const Value value = evaluate(*expr.a);
      if (value.is_error()) return value;
      if (expr.kind == ExprKind::kNot) return Value::of(!truthy(value));
      return expr.kind == ExprKind::kNegate ? negate(rt_, value) : plus(rt_, value);
    }
    case ExprKind::kConcat:
      return concat(expr);
    case ExprKind::kCompare:
      return comparison(expr);
    case ExprKind::kNamespaceRef:
      break;
    default:
      return binary(expr);
  }
  return rt_.fail("a namespace's attribute is no expression");
}

Value Interpreter::variable(const Expr& expr) {
  const Value& value = slot(expr.slot);
  if (!value.is_missing()) return value;
  Undefined why;
  why.name = Value::of(expr.name);
  return rt_.undefined(why);
}

Value Interpreter::attribute(const Expr& expr, const Value& of) {
  // The usual case without detours: an item of a mapping that no method hides.
  if (!rt_.charge(expr.name->bytes >> 5)) return Value::error();
  if (of.is(Type::kDict) && !expr.dict_method && !is_unsafe_method(Type::kDict, expr.name->view()))
    if (const Value* found = of.dict->find(expr.name->view())) return *found;
  return get_attribute(rt_, of, *expr.name);
}

Value Interpreter::sequence(const Expr& expr) {
  List* list =
      rt_.arena().make<List>(rt_.arena().make_array<Value>(expr.items.size()), expr.items.size());
  for (size_t i = 0; i < expr.items.size(); ++i) {
    list->items[i] = evaluate(*expr.items[i]);
    if (list->items[i].is_error()) return Value::error();
  }
  return Value::of(expr.kind == ExprKind::kList ? Type::kList : Type::kTuple, list);
}

Value Interpreter::dict(const Expr& expr) {
  Dict* made = rt_.arena().make<Dict>();
  for (size_t i = 0; i + 1 < expr.items.size(); i += 2) {
    const Value key = evaluate(*expr.items[i]);
    if (key.is_error()) return key;
    const Value value = evaluate(*expr.items[i + 1]);
    if (value.is_error()) return value;
    if (!hashable(rt_, key)) return rt_.fail("unhashable type: '", type_name(key.type), "'");
    made->set(rt_.arena(), key, value);
  }
  return Value::of(Type::kDict, made);
}

Value Interpreter::slice(const Expr& expr) {
  const Value of = evaluate(*expr.a);
  if (of.is_error()) return of;
  Value bounds[3] = {Value::missing(), Value::missing(), Value::missing()};
  const Expr* const exprs[3] = {expr.b, expr.c, expr.d};
  for (size_t i = 0; i < 3; ++i) {
    if (!exprs[i]) continue;
    bounds[i] = evaluate(*exprs[i]);
    if (bounds[i].is_error()) return bounds[i];
  }
  return get_slice(rt_, of, bounds[0], bounds[1], bounds[2]);
}

Value Interpreter::concat(const Expr& expr) {
  Value text = Value::missing();
  for (const Expr* item : expr.items) {
    Value next = evaluate(*item);
    if (!next.is_error()) next = to_str(rt_, next);
    if (next.is_error()) return next;
    text =
        text.is_missing() ? rt_.borrow(next.text()) : rt_.concat(text.text(), next.text(), false);
    if (text.is_error()) return text;
  }
  return text;
}

Value Interpreter::comparison(const Expr& expr) {
  Value left = evaluate(*expr.a);
  Value verdict = left;
  for (const ComparisonExpr& part : expr.comparisons) {
    if (verdict.is_error()) return verdict;
    const Value right = evaluate(*part.right);
    if (right.is_error()) return right;
    switch (part.kind) {
      case CompareKind::kEqual:
      case CompareKind::kNotEqual:
        verdict = Value::of(equal(rt_, left, right) == (part.kind == CompareKind::kEqual));
        if (rt_.failed()) return Value::error();
        break;
      case CompareKind::kLess:
        verdict = compare(rt_, Comparison::kLess, left, right);
        break;
      case CompareKind::kLessEqual:
        verdict = compare(rt_, Comparison::kLessEqual, left, right);
        break;
      case CompareKind::kGreater:
        verdict = compare(rt_, Comparison::kGreater, left, right);
        break;
      case CompareKind::kGreaterEqual:
        verdict = compare(rt_, Comparison::kGreaterEqual, left, right);
        break;
      case CompareKind::kIn:
      case CompareKind::kNotIn:
        verdict = contains(rt_, right, left);
        if (part.kind == CompareKind::kNotIn && !verdict.is_error())
          verdict = Value::of(!verdict.boolean);
        break;
    }
    // A chain ends at its first false link.
    if (verdict.is_error() || !truthy(verdict)) return verdict;
    left = right;
  }
  return verdict;
}

Value Interpreter::condition(const Expr& expr) {
  const Value verdict = evaluate(*expr.a);
  if (verdict.is_error()) return verdict;
  if (truthy(verdict)) return evaluate(*expr.b);
  if (expr.c) return evaluate(*expr.c);
  return rt_.undefined(
      "the inline if-expression evaluated to false and no else section was defined.");
}

Value Interpreter::binary(const Expr& expr) {
  const Value left = evaluate(*expr.a);
  if (left.is_error()) return left;
  const Value right = evaluate(*expr.b);
  if (right.is_error()) return right;
  switch (expr.kind) {
    case ExprKind::kAdd:
      return add(rt_, left, right);
    case ExprKind::kSubtract:
      return subtract(rt_, left, right);
    case ExprKind::kMultiply:
      return multiply(rt_, left, right);
    case ExprKind::kDivide:
      return divide(rt_, left, right);
    case ExprKind::kFloorDivide:
      return floor_divide(rt_, left, right);
    case ExprKind::kModulo:
      return modulo(rt_, left, right);
    default:
      return power(rt_, left, right);
  }
}

Value Interpreter::filter(const Expr& expr, const Value& self) {
  if (!expr.builtin) return rt_.fail("No filter named '", expr.name->view(), "' found.");
  return call_builtin(expr, self);
}

Value Interpreter::test(const Expr& expr) {
  const Value self = evaluate(*expr.a);
  if (self.is_error()) return self;
  if (!expr.builtin) return rt_.fail("No test named '", expr.name->view(), "' found.");
  return call_builtin(expr, self);
}

}  // namespace weir::jinja
