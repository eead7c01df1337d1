// Runtime: the budget, and making values.
#include "jinja/runtime.h"
#include "base/concat.h"

#include <algorithm>

#include "jinja/repr.h"

namespace weir::jinja {

Value Runtime::fail_with(std::string message) {
  if (!failed_) {
    failed_ = true;
    message_ = std::move(message);
  }
  return Value::error();
}

bool Runtime::exhausted() {
  if (steps_ < 0) {
    fail("the template did not end within ", std::to_string(limits_.steps), " steps");
  } else {
    fail("the template's values need more than ", std::to_string(limits_.memory_bytes), " bytes");
  }
  return false;
}

bool Runtime::reserve(size_t bytes) {
  if (bytes > limits_.memory_bytes - std::min(arena_.used(), limits_.memory_bytes)) {
    fail("the template's values need more than ", std::to_string(limits_.memory_bytes), " bytes");
    return false;
  }
  return charge_bytes(bytes);
}

Value Runtime::concat(std::string_view a, std::string_view b, bool markup) {
  if (a.empty()) return borrow(b, markup);
  if (b.empty()) return borrow(a, markup);
  if (a.data() + a.size() == spare_ && b.size() <= spare_bytes_) {
    if (!charge_bytes(b.size())) return Value::error();
    std::memcpy(spare_, b.data(), b.size());
    spare_ += b.size();
    spare_bytes_ -= b.size();
    return borrow({a.data(), a.size() + b.size()}, markup);
  }
  // Long texts are likely to grow further.
  constexpr size_t kLongBytes = 256;
  const size_t bytes = a.size() + b.size();
  const size_t room = bytes < kLongBytes ? bytes : 2 * bytes;
  if (!reserve(room)) return Value::error();
  char* text = arena_.make_array<char>(room);
  std::memcpy(text, a.data(), a.size());
  std::memcpy(text + a.size(), b.data(), b.size());
  if (room > bytes) {
    spare_ = text + bytes;
    spare_bytes_ = room - bytes;
  }
  return borrow({text, bytes}, markup);
}

Value Runtime::sequence(Type type, std::span<const Value> items) {
  List* list = arena_.make<List>(arena_.make_array<Value>(items.size()), items.size());
  std::uninitialized_copy(items.begin(), items.end(), list->items);
  return Value::of(type, list);
}

Value Runtime::fail_undefined(const Value& value) {
  const Undefined& why = *value.undefined;
  if (!why.hint.empty()) return fail(std::string(why.hint));
  const std::string name = short_repr(*this, why.name);
  if (why.object.is_missing()) return fail(name, " is undefined");
  const std::string object =
      why.object.is(Type::kNone) ? "None" : weir::concat({type_name(why.object.type), " object"});
  if (!why.name.is(Type::kStr)) return fail(object, " has no element ", name);
  return fail("'", object, "' has no attribute ", name);
}

bool TextBuilder::add(std::string_view text) {
  if (text.size() > rt_.limits().memory_bytes - std::min(text_.size(), rt_.limits().memory_bytes))
    return rt_.reserve(rt_.limits().memory_bytes + 1);
  text_ += text;
  return rt_.charge_bytes(text.size());
}

bool TextBuilder::fill(std::string_view text, size_t times) {
  if (text.empty() || times == 0) return true;
  if (times > rt_.limits().memory_bytes / text.size())
    return rt_.reserve(rt_.limits().memory_bytes + 1);
  if (!rt_.reserve(text.size() * times)) return false;
  if (text.size() == 1) {
    text_.append(times, text[0]);
    return true;
  }
  for (; times > 0; --times) text_ += text;
  return true;
}

Value TextBuilder::take(bool markup) {
  if (rt_.failed() || !rt_.reserve(text_.size())) return Value::error();
  return rt_.string(text_, markup);
}

bool ListBuilder::add(const Value& value) {
  if (items_.size() > rt_.limits().memory_bytes / sizeof(Value))
    return rt_.reserve(rt_.limits().memory_bytes + 1);
  items_.push_back(value);
  return rt_.charge();
}

Value ListBuilder::take(Type type) {
  if (rt_.failed() || !rt_.reserve(items_.size() * sizeof(Value))) return Value::error();
  return type == Type::kList ? rt_.list(items_) : rt_.tuple(items_);
}

}  // namespace weir::jinja
