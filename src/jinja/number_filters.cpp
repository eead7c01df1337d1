// Filters on numbers.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "jinja/builtin.h"
#include "jinja/number.h"
#include "jinja/operators.h"

namespace weir::jinja {

namespace {

Value absolute(const Call& call) {
  if (call.self.is(Type::kFloat)) return Value::of(std::fabs(call.self.number));
  if (call.self.is_integral())
    return call.self.as_integer() < 0 ? negate(call.rt, call.self) : plus(call.rt, call.self);
  return call.rt.fail("bad operand type for abs(): '", type_name(call.self.type), "'");
}

// int(number): error for infinities, kMissing for what is not a number.
Value truncated(Runtime& rt, double number) {
  if (std::isnan(number)) return Value::missing();
  if (!(std::fabs(number) < 0x1p63)) return rt.fail("cannot convert float to a 64-bit integer");
  return Value::of(static_cast<int64_t>(number));
}

Value to_integer(const Call& call) {
  const Value otherwise = call.has(0) ? call[0] : Value::of(int64_t{0});
  const Value& self = call.self;
  if (self.is(Type::kUndefined)) return call.rt.fail_undefined(self);
  if (self.is(Type::kBigInt)) return self;
  if (self.is_integral()) return Value::of(self.as_integer());
  std::optional<double> number;
  if (self.is(Type::kFloat)) number = self.number;
  if (self.is(Type::kStr)) {
    int64_t base = 10, integer = 0;
    if (call.has(1) && !to_int(call, call[1], base)) return Value::error();
    if (!call.rt.charge_bytes(self.str->bytes)) return Value::error();
    if (base != 0 && (base < 2 || base > 36)) return otherwise;
    switch (parse_int(self.text(), static_cast<int>(base), integer)) {
      case IntParse::kOk:
        return Value::of(integer);
      case IntParse::kTooLarge:
        return call.rt.fail("integers beyond 64 bits are not supported");
      case IntParse::kMalformed:
        number = parse_float(self.text());  // "42.23" gives 42.
    }
  }
  if (!number) return otherwise;
  const Value integer = truncated(call.rt, *number);
  return integer.is_missing() ? otherwise : integer;
}

Value to_float(const Call& call) {
  const Value otherwise = call.has(0) ? call[0] : Value::of(0.0);
  const Value& self = call.self;
  if (self.is(Type::kUndefined)) return call.rt.fail_undefined(self);
  if (self.is_number()) return Value::of(self.as_double());
  if (!self.is(Type::kStr) || !call.rt.charge_bytes(self.str->bytes)) return otherwise;
  const std::optional<double> number = parse_float(self.text());
  return number ? Value::of(*number) : otherwise;
}

// round(number, digits): halves to even, on the exact binary value.
double rounded(double number, int64_t digits) {
  if (!std::isfinite(number) || digits > 340) return number;
  if (digits < -308) return std::copysign(0.0, number);
  if (digits < 0) {
    const double unit = std::pow(10.0, static_cast<double>(-digits));
    return std::nearbyint(number / unit) * unit;
  }
  char text[720];  // 309 digits, a point, 340 more.
  std::snprintf(text, sizeof text, "%.*f", static_cast<int>(digits), number);
  return std::strtod(text, nullptr);
}

Value rounded_integer(const Call& call, int64_t number, int64_t digits) {
  if (digits >= 0) return Value::of(number);
  if (digits < -18) return Value::of(int64_t{0});
  int64_t unit = 1;
  for (; digits < 0; ++digits) unit *= 10;
  int64_t rest = number % unit;
  if (rest < 0) rest += unit;
  int64_t result = 0;
  if (__builtin_sub_overflow(number, rest, &result)) return call.rt.fail("integer too large");
  const bool up = rest > unit - rest || (rest == unit - rest && result / unit % 2 != 0);
  if (up && __builtin_add_overflow(result, unit, &result)) return call.rt.fail("integer too large");
  return Value::of(result);
}

Value round_number(const Call& call) {
  int64_t digits = 0;
  if (call.has(0) && !to_int(call, call[0], digits)) return Value::error();
  const std::string_view method = !call.has(1)             ? "common"
                                  : call[1].is(Type::kStr) ? call[1].text()
                                                           : "";
  if (method != "common" && method != "ceil" && method != "floor")
    return call.rt.fail("method must be common, ceil or floor");
  if (call.self.is(Type::kUndefined)) return call.rt.fail_undefined(call.self);
  if (!call.self.is_number())
    return call.rt.fail("type ", type_name(call.self.type), " doesn't define __round__ method");
  if (method == "common") {
    return call.self.is(Type::kFloat) ? Value::of(rounded(call.self.number, digits))
                                      : rounded_integer(call, call.self.as_integer(), digits);
  }
  const double unit = std::pow(10.0, static_cast<double>(digits));
  const double scaled = call.self.as_double() * unit;
  if (!std::isfinite(scaled)) return call.rt.fail("cannot convert float to integer");
  return Value::of((method == "ceil" ? std::ceil(scaled) : std::floor(scaled)) / unit);
}

constexpr Builtin kFilters[] = {
    {"abs", "/", absolute},
    {"float", "default?", to_float},
    {"int", "default? base?", to_integer},
    {"round", "precision? method?", round_number},
};

}  // namespace

std::span<const Builtin> number_filters() { return kFilters; }

}  // namespace weir::jinja
