// Iterator: Python's iterators; also the generators that filters return, which work lazily and can
// be gone through once.
//
// Threads: owned by the rendering's thread.
#pragma once

#include "jinja/runtime.h"

namespace weir::jinja {

struct Iterator {
  enum class Kind : uint8_t { kItems, kReversedItems, kChars, kRange, kEntries, kGenerator };
  // The next item, kMissing after the last, or an error.
  using Step = Value (*)(Runtime& rt, void* state);

  Kind kind = Kind::kItems;
  size_t position = 0;
  union {
    const List* list = nullptr;  // Its size is looked at anew each time: it may be popped from.
    const Str* str;              // `position` is in bytes.
    const Range* range;
    const DictView* view;
    Step step;
  };
  void* state = nullptr;  // Of a generator.

  Value next(Runtime& rt);
};

// Iterates over any iterable value. Otherwise fails with `before` + type + `after`.
Iterator* iterate(Runtime& rt, const Value& value, const char* before = "'",
                  const char* after = "' object is not iterable");
bool is_iterable(const Value& value);

Value make_generator(Runtime& rt, Iterator::Step step, void* state);

// All items that are left. False, with the error set, if there is no end to them within the limits.
bool collect(Runtime& rt, const Value& value, std::vector<Value>& items);

// reversed(value), for what has an order. Null, without an error, otherwise.
Iterator* iterate_reversed(Runtime& rt, const Value& value);

}  // namespace weir::jinja
