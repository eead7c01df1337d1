// Arithmetic of values. Integers have 64 bits; what needs more is an error, not a wrong number.
#include <cmath>
#include <limits>

#include "jinja/format.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

namespace {

Value unsupported(Runtime& rt, const char* sign, const Value& a, const Value& b) {
  if (a.is(Type::kUndefined)) return rt.fail_undefined(a);
  if (b.is(Type::kUndefined)) return rt.fail_undefined(b);
  if (a.is(Type::kBigInt) || b.is(Type::kBigInt))
    return rt.fail("arithmetic with an integer beyond 64 bits is not supported");
  return rt.fail("unsupported operand type(s) for ", sign, ": '", type_name(a.type), "' and '",
                 type_name(b.type), "'");
}

Value overflow(Runtime& rt) { return rt.fail("integers beyond 64 bits are not supported"); }

bool both_integral(const Value& a, const Value& b) { return a.is_integral() && b.is_integral(); }
bool both_numbers(const Value& a, const Value& b) { return a.is_number() && b.is_number(); }

Value add_strings(Runtime& rt, const Value& a, const Value& b) {
  if (!a.str->markup && !b.str->markup) return rt.concat(a.text(), b.text(), false);
  // Markup escapes whatever plain string joins it.
  const Value left = escape_html(rt, a), right = escape_html(rt, b);
  if (left.is_error() || right.is_error()) return Value::error();
  return rt.concat(left.text(), right.text(), true);
}

Value add_sequences(Runtime& rt, const Value& a, const Value& b) {
  const size_t size = a.list->size + b.list->size;
  if (!rt.reserve(size * sizeof(Value))) return Value::error();
  List* list = rt.arena().make<List>(rt.arena().make_array<Value>(size), size);
  std::uninitialized_copy_n(a.list->items, a.list->size, list->items);
  std::uninitialized_copy_n(b.list->items, b.list->size, list->items + a.list->size);
  return Value::of(a.type, list);
}

Value repeat(Runtime& rt, const Value& what, int64_t times) {
  const size_t count = times > 0 ? static_cast<size_t>(times) : 0;
  if (what.is(Type::kStr)) {
    TextBuilder text(rt);
    if (!text.fill(what.text(), count)) return Value::error();
    return text.take(what.str->markup);
  }
  const size_t size = what.list->size;
  if (size != 0 && count > rt.limits().memory_bytes / sizeof(Value) / size) {
    rt.reserve(rt.limits().memory_bytes + 1);
    return Value::error();
  }
  if (!rt.reserve(size * count * sizeof(Value))) return Value::error();
  const size_t total = size == 0 ? 0 : size * count;
  List* list = rt.arena().make<List>(rt.arena().make_array<Value>(total), total);
  for (size_t i = 0; i < total; ++i) list->items[i] = what.list->items[i % size];
  return Value::of(what.type, list);
}

Value zero_division(Runtime& rt, const char* what) { return rt.fail(what); }

double floor_mod(double a, double b) {
  double mod = std::fmod(a, b);
  if (mod != 0) {
    if ((b < 0) != (mod < 0)) mod += b;
  } else {
    mod = std::copysign(0.0, b);
  }
  return mod;
}

double floor_quotient(double a, double b) {
  const double mod = std::fmod(a, b);
  double quotient = (a - mod) / b;
  if (mod != 0 && (b < 0) != (mod < 0)) quotient -= 1.0;
  if (quotient == 0) return std::copysign(0.0, a / b);
  const double floored = std::floor(quotient);
  return quotient - floored > 0.5 ? floored + 1.0 : floored;
}

Value integer_power(Runtime& rt, int64_t base, int64_t exponent) {
  int64_t result = 1;
  for (;;) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return overflow(rt);
    exponent >>= 1;
    if (exponent == 0) return Value::of(result);
    if (__builtin_mul_overflow(base, base, &base)) return overflow(rt);
  }
}

}  // namespace

Value add(Runtime& rt, const Value& a, const Value& b) {
  if (a.is(Type::kStr) && b.is(Type::kStr)) return add_strings(rt, a, b);
  if (both_integral(a, b)) {
    int64_t sum;
    if (__builtin_add_overflow(a.as_integer(), b.as_integer(), &sum)) return overflow(rt);
    return Value::of(sum);
  }
  if (both_numbers(a, b)) return Value::of(a.as_double() + b.as_double());
  if (a.is_sequence() && a.type == b.type) return add_sequences(rt, a, b);
  if (b.is(Type::kUndefined)) return rt.fail_undefined(b);
  if (a.is(Type::kStr))
    return rt.fail("can only concatenate str (not \"", type_name(b.type), "\") to str");
  return unsupported(rt, "+", a, b);
}

Value subtract(Runtime& rt, const Value& a, const Value& b) {
  if (both_integral(a, b)) {
    int64_t difference;
    if (__builtin_sub_overflow(a.as_integer(), b.as_integer(), &difference)) return overflow(rt);
    return Value::of(difference);
  }
  if (both_numbers(a, b)) return Value::of(a.as_double() - b.as_double());
  return unsupported(rt, "-", a, b);
}

Value multiply(Runtime& rt, const Value& a, const Value& b) {
  if (both_integral(a, b)) {
    int64_t product;
    if (__builtin_mul_overflow(a.as_integer(), b.as_integer(), &product)) return overflow(rt);
    return Value::of(product);
  }
  if (both_numbers(a, b)) return Value::of(a.as_double() * b.as_double());
  const auto repeatable = [](const Value& v) { return v.is(Type::kStr) || v.is_sequence(); };
  if (repeatable(a) && b.is_integral()) return repeat(rt, a, b.as_integer());
  if (repeatable(b) && a.is_integral()) return repeat(rt, b, a.as_integer());
  return unsupported(rt, "*", a, b);
}

Value divide(Runtime& rt, const Value& a, const Value& b) {
  if (!both_numbers(a, b)) return unsupported(rt, "/", a, b);
  if (b.as_double() == 0) return zero_division(rt, "division by zero");
  if (!both_integral(a, b)) return Value::of(a.as_double() / b.as_double());
  // Integers beyond 2^53 are divided exactly and rounded once, as Python does.
  const auto quotient =
      static_cast<long double>(a.as_integer()) / static_cast<long double>(b.as_integer());
  return Value::of(static_cast<double>(quotient));
}

Value floor_divide(Runtime& rt, const Value& a, const Value& b) {
  if (!both_numbers(a, b)) return unsupported(rt, "//", a, b);
  if (b.as_double() == 0) return zero_division(rt, "integer division or modulo by zero");
  if (!both_integral(a, b)) return Value::of(floor_quotient(a.as_double(), b.as_double()));
  const int64_t x = a.as_integer(), y = b.as_integer();
  if (y == -1) return negate(rt, a);
  const int64_t quotient = x / y;
  return Value::of(x % y != 0 && (x < 0) != (y < 0) ? quotient - 1 : quotient);
}

Value modulo(Runtime& rt, const Value& a, const Value& b) {
  if (a.is(Type::kStr)) return format_percent(rt, a, b);
  if (!both_numbers(a, b)) return unsupported(rt, "%", a, b);
  if (b.as_double() == 0) return zero_division(rt, "integer modulo by zero");
  if (!both_integral(a, b)) return Value::of(floor_mod(a.as_double(), b.as_double()));
  const int64_t x = a.as_integer(), y = b.as_integer();
  if (y == -1) return Value::of(int64_t{0});
  const int64_t rest = x % y;
  return Value::of(rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest);
}

Value power(Runtime& rt, const Value& a, const Value& b) {
  if (!both_numbers(a, b)) return unsupported(rt, "** or pow()", a, b);
  if (both_integral(a, b) && b.as_integer() >= 0)
    return integer_power(rt, a.as_integer(), b.as_integer());
  const double base = a.as_double(), exponent = b.as_double();
  if (base == 0 && exponent < 0)
    return zero_division(rt, "0.0 cannot be raised to a negative power");
  if (base < 0 && std::isfinite(exponent) && exponent != std::floor(exponent))
    return rt.fail("complex numbers are not supported");
  const double result = std::pow(base, exponent);
  if (std::isinf(result) && std::isfinite(base) && std::isfinite(exponent))
    return rt.fail("Numerical result out of range");
  return Value::of(result);
}

Value negate(Runtime& rt, const Value& a) {
  if (a.is_integral()) {
    if (a.as_integer() == std::numeric_limits<int64_t>::min()) return overflow(rt);
    return Value::of(-a.as_integer());
  }
  if (a.is(Type::kFloat)) return Value::of(-a.number);
  if (a.is(Type::kUndefined)) return rt.fail_undefined(a);
  return rt.fail("bad operand type for unary -: '", type_name(a.type), "'");
}

Value plus(Runtime& rt, const Value& a) {
  if (a.is_integral()) return Value::of(a.as_integer());
  if (a.is(Type::kFloat)) return a;
  if (a.is(Type::kUndefined)) return rt.fail_undefined(a);
  return rt.fail("bad operand type for unary +: '", type_name(a.type), "'");
}

Value escape_html(Runtime& rt, const Value& value) {
  if (value.is(Type::kStr) && value.str->markup) return value;
  const Value text = to_str(rt, value);
  if (text.is_error()) return text;
  TextBuilder out(rt);
  std::string_view rest = text.text();
  while (!rest.empty()) {
    const size_t plain = std::min(rest.find_first_of("&<>\"'"), rest.size());
    if (!out.add(rest.substr(0, plain))) return Value::error();
    if (plain == rest.size()) break;
    const char c = rest[plain];
    if (!out.add(c == '&'   ? "&amp;"
                 : c == '<' ? "&lt;"
                 : c == '>' ? "&gt;"
                 : c == '"' ? "&#34;"
                            : "&#39;"))
      return Value::error();
    rest.remove_prefix(plain + 1);
  }
  return out.take(true);
}

}  // namespace weir::jinja
