// Objects that only templates know: the loop variable, macros; and access to attributes, items and
// slices of any value as Jinja's sandbox grants it.
//
// Threads: each call works for one Runtime.
#pragma once

#include "jinja/builtin.h"
#include "jinja/iterator.h"

namespace weir::jinja {

struct Statement;
struct Scope;

struct Macro {
  const Statement* definition = nullptr;
  Scope* scope = nullptr;  // Of the definition; its body sees these variables.
  std::string_view name;   // Empty for a call block.
};

// The `loop` variable. Looks ahead only when asked to, as Jinja's does.
struct Loop {
  Iterator* source = nullptr;
  Value iterable;
  int64_t index0 = -1;
  int64_t length = -1;  // -1: not asked for yet.
  int64_t depth0 = 0;
  Value after, current, before;
  Value changed;  // Arguments of the last loop.changed().
  // A recursive loop's statement and the scope it was met in; null otherwise.
  const Statement* recursive = nullptr;
  Scope* scope = nullptr;

  // The next item, kMissing after the last, or an error.
  Value next(Runtime& rt);
  // The item after this one, kMissing if there is none, or an error.
  Value peek(Runtime& rt);
  Value count(Runtime& rt);
  // `loop.name`, or kMissing if it is no attribute.
  Value attribute(Runtime& rt, std::string_view name);
};

// value.name, value[key]: undefined where Python would raise AttributeError or LookupError.
Value get_attribute(Runtime& rt, const Value& value, const Str& name);
// Only what the object has itself, as getattr() sees it: methods, not a mapping's items.
Value get_own_attribute(Runtime& rt, const Value& value, const Str& name);
Value get_item(Runtime& rt, const Value& value, const Value& key);
// value[start:stop:step]; bounds are int, None or missing.
Value get_slice(Runtime& rt, const Value& value, const Value& start, const Value& stop,
                const Value& step);

// repr of what has no literal form: macros, loops, functions.
bool append_object_repr(Runtime& rt, TextBuilder& out, const Value& value);

}  // namespace weir::jinja
