// Iterators over values.
#include "jinja/iterator.h"

#include "jinja/codepoint.h"
#include "jinja/object.h"

namespace weir::jinja {

namespace {

Value entry_value(Runtime& rt, const Entry& entry, DictView::Kind kind) {
  switch (kind) {
    case DictView::Kind::kKeys:
      return entry.key;
    case DictView::Kind::kValues:
      return entry.value;
    case DictView::Kind::kItems:
      return rt.tuple(entry.key, entry.value);
  }
  return Value::error();
}

Iterator* make(Runtime& rt, Iterator::Kind kind, const void* over) {
  Iterator* iterator = rt.arena().make<Iterator>();
  iterator->kind = kind;
  switch (kind) {
    case Iterator::Kind::kChars:
      iterator->str = static_cast<const Str*>(over);
      break;
    case Iterator::Kind::kRange:
      iterator->range = static_cast<const Range*>(over);
      break;
    case Iterator::Kind::kEntries:
      iterator->view = static_cast<const DictView*>(over);
      break;
    default:
      iterator->list = static_cast<const List*>(over);
  }
  return iterator;
}

// Going over `loop` itself takes its items away from the loop.
Value next_of_loop(Runtime& rt, void* state) {
  auto* loop = static_cast<Loop*>(state);
  const Value item = loop->next(rt);
  if (item.is_missing() || item.is_error()) return item;
  return rt.tuple(item, Value::of(Type::kLoop, loop));
}

}  // namespace

Value Iterator::next(Runtime& rt) {
  if (!rt.charge()) return Value::error();
  switch (kind) {
    case Kind::kItems:
      return position < list->size ? list->items[position++] : Value::missing();
    case Kind::kReversedItems:
      return position > 0 ? list->items[--position] : Value::missing();
    case Kind::kChars: {
      if (position >= str->bytes) return Value::missing();
      const size_t start = position;
      position += sequence_bytes(str->data[start]);
      return rt.borrow({str->data + start, position - start}, str->markup);
    }
    case Kind::kRange:
      if (static_cast<int64_t>(position) >= range->size()) return Value::missing();
      return Value::of(range->at(static_cast<int64_t>(position++)));
    case Kind::kEntries:
      if (position >= view->dict->size()) return Value::missing();
      return entry_value(rt, view->dict->entries()[position++], view->kind);
    case Kind::kGenerator: {
      if (!state) return Value::missing();
      const Value value = rt.enter_generator() ? step(rt, state) : Value::error();
      rt.leave_generator();
      if (value.is_missing()) state = nullptr;
      return value;
    }
  }
  return Value::error();
}

bool is_iterable(const Value& value) {
  switch (value.type) {
    case Type::kUndefined:
    case Type::kStr:
    case Type::kList:
    case Type::kTuple:
    case Type::kDict:
    case Type::kDictView:
    case Type::kRange:
    case Type::kIterator:
    case Type::kLoop:
      return true;
    default:
      return false;
  }
}

Iterator* iterate(Runtime& rt, const Value& value, const char* before, const char* after) {
  static constexpr List kNothing;
  switch (value.type) {
    case Type::kUndefined:
      return make(rt, Iterator::Kind::kItems, &kNothing);
    case Type::kStr:
      return make(rt, Iterator::Kind::kChars, value.str);
    case Type::kList:
    case Type::kTuple:
      return make(rt, Iterator::Kind::kItems, value.list);
    case Type::kDict:
      return make(rt, Iterator::Kind::kEntries,
                  rt.arena().make<DictView>(value.dict, DictView::Kind::kKeys));
    case Type::kDictView:
      return make(rt, Iterator::Kind::kEntries, value.view);
    case Type::kRange:
      return make(rt, Iterator::Kind::kRange, value.range);
    case Type::kIterator:
      return value.iterator;
    case Type::kLoop:
      return make_generator(rt, next_of_loop, value.loop).iterator;
    default:
      rt.fail(before, type_name(value.type), after);
      return nullptr;
  }
}

Value make_generator(Runtime& rt, Iterator::Step step, void* state) {
  Iterator* iterator = rt.arena().make<Iterator>();
  iterator->kind = Iterator::Kind::kGenerator;
  iterator->step = step;
  iterator->state = state;
  return Value::of(Type::kIterator, iterator);
}

bool collect(Runtime& rt, const Value& value, std::vector<Value>& items) {
  Iterator* iterator = iterate(rt, value);
  if (!iterator) return false;
  ListBuilder list(rt);
  for (;;) {
    const Value item = iterator->next(rt);
    if (item.is_error()) return false;
    if (item.is_missing()) break;
    if (!list.add(item)) return false;
  }
  items = std::move(list.items());
  return true;
}

Iterator* iterate_reversed(Runtime& rt, const Value& value) {
  if (value.is_sequence()) {
    Iterator* iterator = make(rt, Iterator::Kind::kReversedItems, value.list);
    iterator->position = value.list->size;
    return iterator;
  }
  switch (value.type) {
    case Type::kStr:
    case Type::kDict:
    case Type::kDictView:
    case Type::kRange: {
      std::vector<Value> items;
      if (!collect(rt, value, items) || !rt.reserve(items.size() * sizeof(Value))) return nullptr;
      const Value list = rt.list(items);
      Iterator* iterator = make(rt, Iterator::Kind::kReversedItems, list.list);
      iterator->position = items.size();
      return iterator;
    }
    default:
      return nullptr;
  }
}

}  // namespace weir::jinja
