// Truth, comparison and membership; arithmetic is in arithmetic.cpp.
#include "jinja/operators.h"

#include <algorithm>
#include <cmath>

#include "jinja/object.h"
#include "jinja/repr.h"

namespace weir::jinja {

bool truthy(const Value& value) {
  switch (value.type) {
    case Type::kError:
    case Type::kMissing:
    case Type::kUndefined:
    case Type::kNone:
      return false;
    case Type::kBool:
      return value.boolean;
    case Type::kInt:
      return value.integer != 0;
    case Type::kFloat:
      return value.number != 0;
    case Type::kStr:
      return value.str->bytes != 0;
    case Type::kList:
    case Type::kTuple:
      return value.list->size != 0;
    case Type::kDict:
      return value.dict->size() != 0;
    case Type::kDictView:
      return value.view->dict->size() != 0;
    case Type::kRange:
      return value.range->size() != 0;
    default:
      return true;
  }
}

namespace {

bool equal_within(Runtime& rt, const Value& a, const Value& b, int depth);

bool equal_lists(Runtime& rt, const List& a, const List& b, int depth) {
  if (a.size != b.size) return false;
  for (size_t i = 0; i < a.size; ++i)
    if (!equal_within(rt, a.items[i], b.items[i], depth)) return false;
  return true;
}

bool equal_dicts(Runtime& rt, const Dict& a, const Dict& b, int depth) {
  if (a.size() != b.size()) return false;
  for (const Entry& entry : a.entries()) {
    if (!hashable(rt, entry.key)) return false;  // It is a key; this pays for finding it.
    const Value* other = b.find(entry.key);
    if (!other || !equal_within(rt, entry.value, *other, depth)) return false;
  }
  return true;
}

bool equal_ranges(const Range& a, const Range& b) {
  const int64_t size = a.size();
  return size == b.size() && (size == 0 || (a.start == b.start && (size == 1 || a.step == b.step)));
}

bool equal_within(Runtime& rt, const Value& a, const Value& b, int depth) {
  if (!rt.charge()) return false;
  if (depth == 0) {
    rt.fail("maximum recursion depth exceeded in comparison");
    return false;
  }
  if (a.is_number() && b.is_number()) return same_key(a, b);
  if (a.type != b.type) return false;
  switch (a.type) {
    case Type::kStr:
      return a.str == b.str || (a.str->bytes == b.str->bytes && rt.charge_bytes(a.str->bytes) &&
                                a.text() == b.text());
    case Type::kList:
    case Type::kTuple:
      return a.list == b.list || equal_lists(rt, *a.list, *b.list, depth - 1);
    case Type::kDict:
      return a.dict == b.dict || equal_dicts(rt, *a.dict, *b.dict, depth - 1);
    case Type::kRange:
      return equal_ranges(*a.range, *b.range);
    default:
      return same_key(a, b);
  }
}

Order order_of(double a, double b) {
  return a < b    ? Order::kLess
         : a > b  ? Order::kGreater
         : a == b ? Order::kEqual
                  : Order::kUnordered;
}

Order order_of_numbers(const Value& a, const Value& b) {
  if (a.is_integral() && b.is_integral()) {
    const int64_t x = a.as_integer(), y = b.as_integer();
    return x < y ? Order::kLess : x > y ? Order::kGreater : Order::kEqual;
  }
  return order_of(a.as_double(), b.as_double());
}

bool is_unordered_type(Runtime& rt, const Value& a, const Value& b, const char* sign) {
  if (a.is(Type::kUndefined) || b.is(Type::kUndefined)) {
    rt.fail_undefined(a.is(Type::kUndefined) ? a : b);
    return true;
  }
  rt.fail("'", sign, "' not supported between instances of '", type_name(a.type), "' and '",
          type_name(b.type), "'");
  return true;
}

// False, with the error set, for types that have no order.
bool order_within(Runtime& rt, const Value& a, const Value& b, const char* sign, int depth,
                  Order& order) {
  if (!rt.charge()) return false;
  if (depth == 0) {
    rt.fail("maximum recursion depth exceeded in comparison");
    return false;
  }
  if (a.is_number() && b.is_number()) {
    order = order_of_numbers(a, b);
    return true;
  }
  if (a.is(Type::kStr) && b.is(Type::kStr)) {
    if (!rt.charge_bytes(std::min(a.str->bytes, b.str->bytes))) return false;
    const int sides = a.text().compare(b.text());  // UTF-8 sorts as its code points do.
    order = sides < 0 ? Order::kLess : sides > 0 ? Order::kGreater : Order::kEqual;
    return true;
  }
  if (!a.is_sequence() || a.type != b.type) return !is_unordered_type(rt, a, b, sign);
  const size_t common = std::min(a.list->size, b.list->size);
  for (size_t i = 0; i < common; ++i) {
    const Value &x = a.list->items[i], &y = b.list->items[i];
    if (equal_within(rt, x, y, depth - 1)) continue;
    return !rt.failed() && order_within(rt, x, y, sign, depth - 1, order);
  }
  const size_t x = a.list->size, y = b.list->size;
  order = x < y ? Order::kLess : x > y ? Order::kGreater : Order::kEqual;
  return true;
}

}  // namespace

bool equal(Runtime& rt, const Value& a, const Value& b) {
  return equal_within(rt, a, b, kNestingMax);
}

Value compare(Runtime& rt, Comparison comparison, const Value& a, const Value& b) {
  static constexpr const char* kSigns[] = {"<", "<=", ">", ">="};
  Order order = Order::kUnordered;
  if (!order_within(rt, a, b, kSigns[static_cast<int>(comparison)], kNestingMax, order))
    return Value::error();
  switch (comparison) {
    case Comparison::kLess:
      return Value::of(order == Order::kLess);
    case Comparison::kLessEqual:
      return Value::of(order == Order::kLess || order == Order::kEqual);
    case Comparison::kGreater:
      return Value::of(order == Order::kGreater);
    case Comparison::kGreaterEqual:
      return Value::of(order == Order::kGreater || order == Order::kEqual);
  }
  return Value::error();
}

bool less(Runtime& rt, const Value& a, const Value& b, bool& result) {
  Order order = Order::kUnordered;
  if (!order_within(rt, a, b, "<", kNestingMax, order)) return false;
  result = order == Order::kLess;
  return true;
}

Value contains(Runtime& rt, const Value& container, const Value& item) {
  switch (container.type) {
    case Type::kStr:
      if (!item.is(Type::kStr))
        return rt.fail("'in <string>' requires string as left operand, not ", type_name(item.type));
      if (!rt.charge_bytes(container.str->bytes)) return Value::error();
      return Value::of(find_text(container.text(), item.text()) != std::string_view::npos);
    case Type::kDict:
      if (!hashable(rt, item)) return rt.fail("unhashable type: '", type_name(item.type), "'");
      return Value::of(container.dict->find(item) != nullptr);
    case Type::kRange:
      if (item.is_integral()) {
        const Range& range = *container.range;
        const auto offset = static_cast<Int128>(item.as_integer()) - range.start;
        return Value::of(offset % range.step == 0 && offset / range.step >= 0 &&
                         offset / range.step < range.size());
      }
      break;
    default:
      break;
  }
  Iterator* iterator = iterate(rt, container, "argument of type '", "' is not iterable");
  if (!iterator) return Value::error();
  for (;;) {
    const Value next = iterator->next(rt);
    if (next.is_error()) return next;
    if (next.is_missing()) return Value::of(false);
    const bool same = equal(rt, next, item);
    if (rt.failed()) return Value::error();
    if (same) return Value::of(true);
  }
}

Value length_of(Runtime& rt, const Value& value) {
  switch (value.type) {
    case Type::kUndefined:
      return Value::of(int64_t{0});
    case Type::kStr:
      if (value.str->chars == kUncounted && !rt.charge_bytes(value.str->bytes))
        return Value::error();
      return Value::of(value.str->length());
    case Type::kList:
    case Type::kTuple:
      return Value::of(static_cast<int64_t>(value.list->size));
    case Type::kDict:
      return Value::of(static_cast<int64_t>(value.dict->size()));
    case Type::kDictView:
      return Value::of(static_cast<int64_t>(value.view->dict->size()));
    case Type::kRange:
      return Value::of(value.range->size());
    case Type::kLoop:
      return value.loop->count(rt);
    default:
      return rt.fail("object of type '", type_name(value.type), "' has no len()");
  }
}

size_t find_text(std::string_view text, std::string_view needle, size_t from) {
  if (from > text.size()) return std::string_view::npos;
  if (needle.empty()) return from;
  // glibc's memmem is linear (two-way); string_view::find is quadratic for hostile needles.
  // A single character needs neither.
  if (needle.size() == 1) return text.find(needle[0], from);
  const void* found = memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
  return found ? static_cast<size_t>(static_cast<const char*>(found) - text.data())
               : std::string_view::npos;
}

size_t find_last_text(std::string_view text, std::string_view needle) {
  // Needles this short cost rfind() no more than a constant per byte.
  constexpr size_t kShortBytes = 16;
  if (needle.size() <= kShortBytes) return text.rfind(needle);
  const std::string backwards(text.rbegin(), text.rend());
  const std::string backwards_needle(needle.rbegin(), needle.rend());
  const size_t found = find_text(backwards, backwards_needle);
  return found == std::string_view::npos ? found : text.size() - found - needle.size();
}

}  // namespace weir::jinja
