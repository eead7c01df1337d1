// Operators of values: truth, comparison, arithmetic, membership, as Python has them.
//
// Threads: each call works for one Runtime.
#pragma once

#include "jinja/runtime.h"

namespace weir::jinja {

bool truthy(const Value& value);

// a == b. False as well when the budget is spent; the Runtime has failed then.
bool equal(Runtime& rt, const Value& a, const Value& b);

enum class Order : uint8_t { kLess, kEqual, kGreater, kUnordered };
enum class Comparison : uint8_t { kLess, kLessEqual, kGreater, kGreaterEqual };
// a < b and so on: a bool, or an error for types that have no order.
Value compare(Runtime& rt, Comparison comparison, const Value& a, const Value& b);
// For sorting. False, with the error set, where compare(kLess) fails.
bool less(Runtime& rt, const Value& a, const Value& b, bool& result);

// item in container: a bool, or an error.
Value contains(Runtime& rt, const Value& container, const Value& item);

// len(value): an int, or an error for what has no length.
Value length_of(Runtime& rt, const Value& value);

Value add(Runtime& rt, const Value& a, const Value& b);
Value subtract(Runtime& rt, const Value& a, const Value& b);
Value multiply(Runtime& rt, const Value& a, const Value& b);
Value divide(Runtime& rt, const Value& a, const Value& b);
Value floor_divide(Runtime& rt, const Value& a, const Value& b);
// The remainder, or a string's printf-style formatting.
Value modulo(Runtime& rt, const Value& a, const Value& b);
Value power(Runtime& rt, const Value& a, const Value& b);
Value negate(Runtime& rt, const Value& a);
Value plus(Runtime& rt, const Value& a);

// markupsafe.escape of a string: & < > " ' as entities.
Value escape_html(Runtime& rt, const Value& value);

// First and last occurrence, or npos. Linear time, whatever the needle.
size_t find_text(std::string_view text, std::string_view needle, size_t from = 0);
size_t find_last_text(std::string_view text, std::string_view needle);

}  // namespace weir::jinja
