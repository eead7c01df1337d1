// AttributePath: the `attribute` argument of filters: "name", "a.b.0" or an index.
//
// Threads: each call works for one Runtime.
#pragma once

#include <span>

#include "jinja/builtin.h"

namespace weir::jinja {

struct AttributePath {
  std::span<const Value> parts;  // Names and indices, from the outside in.
  Value otherwise;               // Takes the place of what is undefined, unless missing.
  bool ignore_case = false;      // Strings are compared in lower case.

  Value get(Runtime& rt, Value item) const;
};

// None or missing gives the empty path, which leads to the item itself.
AttributePath attribute_path(Runtime& rt, const Value& attribute);

// Paths separated by commas.
std::vector<AttributePath> attribute_paths(Runtime& rt, const Value& attribute);

}  // namespace weir::jinja
