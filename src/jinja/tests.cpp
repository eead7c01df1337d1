// Jinja's tests: what follows `is`.
#include "jinja/builtin.h"
#include "jinja/iterator.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

namespace {

template <Type... types>
Value is_type(const Call& call) {
  return Value::of(((call.self.type == types) || ...));
}

template <bool wanted>
Value is_boolean(const Call& call) {
  return Value::of(call.self.is(Type::kBool) && call.self.boolean == wanted);
}

Value is_defined(const Call& call) { return Value::of(!call.self.is(Type::kUndefined)); }

Value is_callable(const Call& call) {
  switch (call.self.type) {
    case Type::kUndefined:  // It has __call__, which then raises.
    case Type::kFunction:
    case Type::kMethod:
    case Type::kMacro:
    case Type::kLoop:
    case Type::kJoiner:
      return Value::of(true);
    default:
      return Value::of(false);
  }
}

Value is_sequence(const Call& call) {
  switch (call.self.type) {
    case Type::kUndefined:
    case Type::kStr:
    case Type::kList:
    case Type::kTuple:
    case Type::kDict:
    case Type::kRange:
      return Value::of(true);
    default:
      return Value::of(false);
  }
}

Value is_iterable_test(const Call& call) { return Value::of(is_iterable(call.self)); }
Value is_escaped(const Call& call) {
  return Value::of(call.self.is(Type::kStr) && call.self.str->markup);
}

// value % divisor == rest
Value has_rest(const Call& call, const Value& divisor, int64_t rest) {
  const Value found = modulo(call.rt, call.self, divisor);
  return found.is_error() ? found : Value::of(equal(call.rt, found, Value::of(rest)));
}

Value is_odd(const Call& call) { return has_rest(call, Value::of(int64_t{2}), 1); }
Value is_even(const Call& call) { return has_rest(call, Value::of(int64_t{2}), 0); }
Value is_divisible(const Call& call) { return has_rest(call, call[0], 0); }

Value by_method(const Call& call, std::string_view method) {
  const Value text = to_str(call.rt, call.self);
  if (text.is_error()) return text;
  return invoke(call.rt, *find_method(Type::kStr, method), text, {});
}

Value is_lower_test(const Call& call) { return by_method(call, "islower"); }
Value is_upper_test(const Call& call) { return by_method(call, "isupper"); }

template <const Builtin* (*find)(std::string_view)>
Value is_known(const Call& call) {
  if (!hashable(call.rt, call.self))
    return call.rt.fail("unhashable type: '", type_name(call.self.type), "'");
  return Value::of(call.self.is(Type::kStr) && find(call.self.text()) != nullptr);
}

Value is_same(const Call& call) {
  const Value &a = call.self, &b = call[0];
  if (a.type != b.type) return Value::of(false);
  switch (a.type) {
    case Type::kNone:
      return Value::of(true);
    case Type::kBool:
      return Value::of(a.boolean == b.boolean);
    case Type::kInt:
      return Value::of(a.integer == b.integer);
    default:
      return Value::of(a.identity == b.identity);
  }
}

template <bool wanted>
Value is_equal(const Call& call) {
  const bool same = equal(call.rt, call.self, call[0]);
  return call.rt.failed() ? Value::error() : Value::of(same == wanted);
}

template <Comparison comparison>
Value is_ordered(const Call& call) {
  return compare(call.rt, comparison, call.self, call[0]);
}

Value is_in(const Call& call) { return contains(call.rt, call[0], call.self); }

constexpr Builtin kTests[] = {
    {"!=", "/ other", is_equal<false>},
    {"<", "/ other", is_ordered<Comparison::kLess>},
    {"<=", "/ other", is_ordered<Comparison::kLessEqual>},
    {"==", "/ other", is_equal<true>},
    {">", "/ other", is_ordered<Comparison::kGreater>},
    {">=", "/ other", is_ordered<Comparison::kGreaterEqual>},
    {"boolean", "", is_type<Type::kBool>},
    {"callable", "/", is_callable},
    {"defined", "", is_defined},
    {"divisibleby", "num", is_divisible},
    {"eq", "/ other", is_equal<true>},
    {"equalto", "/ other", is_equal<true>},
    {"escaped", "", is_escaped},
    {"even", "", is_even},
    {"false", "", is_boolean<false>},
    {"filter", "", is_known<find_filter>},
    {"float", "", is_type<Type::kFloat>},
    {"ge", "/ other", is_ordered<Comparison::kGreaterEqual>},
    {"greaterthan", "/ other", is_ordered<Comparison::kGreater>},
    {"gt", "/ other", is_ordered<Comparison::kGreater>},
    {"in", "seq", is_in},
    {"integer", "", is_type<Type::kInt, Type::kBigInt>},
    {"iterable", "", is_iterable_test},
    {"le", "/ other", is_ordered<Comparison::kLessEqual>},
    {"lessthan", "/ other", is_ordered<Comparison::kLess>},
    {"lower", "", is_lower_test},
    {"lt", "/ other", is_ordered<Comparison::kLess>},
    {"mapping", "", is_type<Type::kDict>},
    {"ne", "/ other", is_equal<false>},
    {"none", "", is_type<Type::kNone>},
    {"number", "", is_type<Type::kBool, Type::kInt, Type::kBigInt, Type::kFloat>},
    {"odd", "", is_odd},
    {"sameas", "other", is_same},
    {"sequence", "", is_sequence},
    {"string", "", is_type<Type::kStr>},
    {"test", "", is_known<find_test>},
    {"true", "", is_boolean<true>},
    {"undefined", "", is_type<Type::kUndefined>},
    {"upper", "", is_upper_test},
};

}  // namespace

std::span<const Builtin> tests() { return kTests; }

}  // namespace weir::jinja
