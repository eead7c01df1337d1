// Attributes, items, slices; the loop variable.
#include "jinja/object.h"

#include <algorithm>
#include <charconv>

#include "base/concat.h"
#include "jinja/codepoint.h"
#include "jinja/operators.h"
#include "jinja/repr.h"

namespace weir::jinja {

namespace {

Value missing_attribute(Runtime& rt, const Value& value, const Value& name) {
  Undefined why;
  why.name = name;
  why.object = value;
  return rt.undefined(why);
}

Value unsafe_attribute(Runtime& rt, const Value& value, std::string_view name) {
  const std::string hint = concat(
      {"access to attribute '", name, "' of '", type_name(value.type), "' object is unsafe."});
  return rt.undefined(rt.arena().copy(std::string_view(hint)));
}

// What getattr() finds: an attribute of the object itself, a method, something forbidden; kMissing
// for nothing.
Value own_attribute(Runtime& rt, const Value& value, std::string_view name) {
  if (value.is(Type::kNamespace)) {
    const Value* found = value.space->attributes->find(name);
    return found ? *found : Value::missing();
  }
  if (value.is(Type::kLoop)) {
    const Value found = value.loop->attribute(rt, name);
    if (!found.is_missing()) return found;
  }
  if (value.is(Type::kMacro) && name == "name") return rt.borrow(value.macro->name);
  if (value.is(Type::kTuple) && value.list->is_group && (name == "grouper" || name == "list"))
    return value.list->items[name == "list" ? 1 : 0];
  if (const Builtin* method = find_method(value.type, name))
    return Value::of(Type::kMethod, rt.arena().make<Method>(value, method));
  if (is_unsafe_method(value.type, name)) return unsafe_attribute(rt, value, name);
  if (value.is(Type::kCycler) && name == "current") return value.cycler->items[value.cycler->next];
  return Value::missing();
}

// value[key] where there is one, else kMissing.
Value own_item(Runtime& rt, const Value& value, const Value& key) {
  if (value.is(Type::kDict)) {
    const Value* found = hashable(rt, key) ? value.dict->find(key) : nullptr;
    return found ? *found : rt.failed() ? Value::error() : Value::missing();
  }
  if (key.is(Type::kStr) && !rt.charge_bytes(key.str->bytes)) return Value::error();
  if (!key.is_integral()) return Value::missing();
  int64_t size = 0;
  switch (value.type) {
    case Type::kStr:
      if (value.str->chars == kUncounted && !rt.charge_bytes(value.str->bytes))
        return Value::error();
      size = value.str->length();
      break;
    case Type::kList:
    case Type::kTuple:
      size = static_cast<int64_t>(value.list->size);
      break;
    case Type::kRange:
      size = value.range->size();
      break;
    default:
      return Value::missing();
  }
  int64_t index = key.as_integer();
  if (index < 0) index += size;
  if (index < 0 || index >= size) return Value::missing();
  if (value.is(Type::kRange)) return Value::of(value.range->at(index));
  const auto i = static_cast<size_t>(index);
  if (!value.is(Type::kStr)) return value.list->items[i];
  const std::string_view text = value.text();
  if (value.str->ascii()) return rt.borrow(text.substr(i, 1), value.str->markup);
  if (!rt.charge_bytes(i)) return Value::error();
  const size_t at = codepoint_offset(text, i);
  return rt.borrow(text.substr(at, sequence_bytes(text[at])), value.str->markup);
}

}  // namespace

Value get_attribute(Runtime& rt, const Value& value, const Str& name) {
  if (value.is(Type::kUndefined) && !is_unsafe_method(value.type, name.view()))
    return rt.fail_undefined(value);
  if (!rt.charge(name.bytes >> 5)) return Value::error();
  const Value attribute = own_attribute(rt, value, name.view());
  if (!attribute.is_missing()) return attribute;
  if (value.is(Type::kDict)) {
    if (const Value* found = value.dict->find(name.view())) return *found;
  }
  return missing_attribute(rt, value, Value::of(&name));
}

Value get_own_attribute(Runtime& rt, const Value& value, const Str& name) {
  if (value.is(Type::kUndefined)) return rt.fail_undefined(value);
  if (!rt.charge(name.bytes >> 5)) return Value::error();
  const Value attribute = own_attribute(rt, value, name.view());
  return attribute.is_missing() ? missing_attribute(rt, value, Value::of(&name)) : attribute;
}

Value get_item(Runtime& rt, const Value& value, const Value& key) {
  if (value.is(Type::kUndefined)) return rt.fail_undefined(value);
  const Value item = own_item(rt, value, key);
  if (!item.is_missing()) return item;
  if (key.is(Type::kStr)) {
    const Value attribute = own_attribute(rt, value, key.text());
    if (!attribute.is_missing()) return attribute;
  }
  return missing_attribute(rt, value, key);
}

namespace {

bool slice_bound(Runtime& rt, const Value& value, std::optional<int64_t>& bound) {
  if (value.is_missing() || value.is(Type::kNone)) return true;
  if (!value.is_integral()) {
    rt.fail("slice indices must be integers or None or have an __index__ method");
    return false;
  }
  bound = value.as_integer();
  return true;
}

// Python's slice.indices(): a range of indices that all exist.
struct Indices {
  int64_t start = 0, stop = 0, count = 0, step = 1;
};

Indices slice_indices(int64_t size, std::optional<int64_t> start, std::optional<int64_t> stop,
                      int64_t step) {
  // A step beyond the size is as good as one of the size, and cannot overflow.
  step = std::clamp(step, -size - 1, size + 1);
  const auto clip = [size, step](std::optional<int64_t> bound, int64_t otherwise) {
    if (!bound) return otherwise;
    int64_t index = *bound;
    if (index < 0) index = index < -size ? -1 : index + size;
    return std::clamp<int64_t>(index, step < 0 ? -1 : 0, step < 0 ? size - 1 : size);
  };
  const int64_t from = clip(start, step < 0 ? size - 1 : 0);
  // -1 from outside means the last item, so a missing stop is written as the bound it becomes.
  const int64_t to = stop ? clip(stop, 0) : step < 0 ? -1 : size;
  return {from, to, Range{from, to, step}.size(), step};
}

Value slice_text(Runtime& rt, const Str& str, const Indices& indices) {
  const std::string_view text = str.view();
  const auto start = static_cast<size_t>(indices.start);
  const auto count = static_cast<size_t>(indices.count);
  if (count == 0) return rt.borrow(text.substr(0, 0), str.markup);
  if (indices.step == 1) {
    if (str.ascii()) return rt.borrow(text.substr(start, count), str.markup);
    if (!rt.charge_bytes(text.size())) return Value::error();
    const std::string_view tail = text.substr(codepoint_offset(text, start));
    return rt.borrow(tail.substr(0, codepoint_offset(tail, count)), str.markup);
  }
  // One offset a character, and the result.
  if (!rt.reserve(text.size() * (sizeof(uint32_t) + 1))) return Value::error();
  std::vector<uint32_t> offsets;  // Of each code point; strings have less than 4 GiB by limit.
  offsets.reserve(static_cast<size_t>(str.length()) + 1);
  for (size_t at = 0; at < text.size(); at += sequence_bytes(text[at]))
    offsets.push_back(static_cast<uint32_t>(at));
  offsets.push_back(static_cast<uint32_t>(text.size()));
  std::string out;
  int64_t index = indices.start;
  for (size_t i = 0; i < count; ++i, index += indices.step) {
    const auto at = static_cast<size_t>(index);
    out += text.substr(offsets[at], offsets[at + 1] - offsets[at]);
  }
  return rt.string(out, str.markup);
}

}  // namespace

Value get_slice(Runtime& rt, const Value& value, const Value& start, const Value& stop,
                const Value& step) {
  if (value.is(Type::kUndefined)) return rt.fail_undefined(value);
  std::optional<int64_t> from, to, by;
  if (!slice_bound(rt, start, from) || !slice_bound(rt, stop, to) || !slice_bound(rt, step, by))
    return Value::error();
  if (by == 0) return rt.fail("slice step cannot be zero");
  if (!value.is(Type::kStr) && !value.is_sequence() && !value.is(Type::kRange))
    return value.is(Type::kDict)
               ? rt.fail("unhashable type: 'slice'")
               : rt.fail("'", type_name(value.type), "' object is not subscriptable");
  const Value size = length_of(rt, value);
  if (size.is_error()) return size;
  const Indices indices = slice_indices(size.integer, from, to, by.value_or(1));
  if (value.is(Type::kStr)) return slice_text(rt, *value.str, indices);
  if (value.is(Type::kRange)) {
    const Range& range = *value.range;
    int64_t width = 0;
    if (__builtin_mul_overflow(range.step, indices.step, &width)) width = range.step;
    return Value::of(Type::kRange, rt.arena().make<Range>(range.at(indices.start),
                                                          range.at(indices.stop), width));
  }
  const auto count = static_cast<size_t>(indices.count);
  if (!rt.reserve(count * sizeof(Value))) return Value::error();
  List* list = rt.arena().make<List>(rt.arena().make_array<Value>(count), count);
  for (size_t i = 0; i < count; ++i)
    list->items[i] =
        value.list
            ->items[static_cast<size_t>(indices.start + indices.step * static_cast<int64_t>(i))];
  return Value::of(value.type, list);
}

Value Loop::next(Runtime& rt) {
  Value item = after;
  after = Value::missing();
  if (item.is_missing()) item = source->next(rt);
  if (item.is_missing() || item.is_error()) return item;
  ++index0;
  before = current;
  current = item;
  return item;
}

Value Loop::peek(Runtime& rt) {
  if (after.is_missing()) after = source->next(rt);
  return after;
}

Value Loop::count(Runtime& rt) {
  if (length >= 0) return Value::of(length);
  if (!iterable.is(Type::kIterator)) {
    const Value size = length_of(rt, iterable);
    if (!size.is_error()) length = size.integer;
    return size;
  }
  // A generator has no length: it is run to its end.
  std::vector<Value> rest;
  if (!collect(rt, Value::of(Type::kIterator, source), rest)) return Value::error();
  if (!rt.reserve(rest.size() * sizeof(Value))) return Value::error();
  source = iterate(rt, rt.list(rest));
  length = static_cast<int64_t>(rest.size()) + index0 + 1 + (after.is_missing() ? 0 : 1);
  return Value::of(length);
}

Value Loop::attribute(Runtime& rt, std::string_view name) {
  if (name == "index0") return Value::of(index0);
  if (name == "index") return Value::of(index0 + 1);
  if (name == "first") return Value::of(index0 == 0);
  if (name == "depth0") return Value::of(depth0);
  if (name == "depth") return Value::of(depth0 + 1);
  if (name == "last") {
    const Value next = peek(rt);
    return next.is_error() ? next : Value::of(next.is_missing());
  }
  if (name == "length" || name == "revindex" || name == "revindex0") {
    const Value total = count(rt);
    if (total.is_error() || name == "length") return total;
    return Value::of(total.integer - index0 - (name == "revindex0" ? 1 : 0));
  }
  if (name == "previtem") return index0 == 0 ? rt.undefined("there is no previous item") : before;
  if (name == "nextitem") {
    const Value next = peek(rt);
    return next.is_missing() ? rt.undefined("there is no next item") : next;
  }
  return Value::missing();
}

bool append_object_repr(Runtime& rt, TextBuilder& out, const Value& value) {
  switch (value.type) {
    case Type::kMacro:
      if (value.macro->name.empty()) return out.add("<Macro anonymous>");
      return out.add("<Macro ") && append_quoted(out, value.macro->name) && out.add('>');
    case Type::kLoop: {
      const Value total = value.loop->count(rt);
      if (total.is_error()) return false;
      return out.add("<LoopContext " + std::to_string(value.loop->index0 + 1) + "/" +
                     std::to_string(total.integer) + ">");
    }
    case Type::kFunction:
      return out.add("<function ") && out.add(value.function->name) && out.add('>');
    case Type::kMethod:
      return out.add("<built-in method ") && out.add(value.method->builtin->name) && out.add('>');
    default:
      return out.add('<') && out.add(type_name(value.type)) && out.add(" object>");
  }
}

}  // namespace weir::jinja
