// What a JSON document has somewhere, or something else where it has nothing of that type.
//
// Threads: pure functions.
#pragma once

#include "base/json.h"

namespace weir::suite {

// value_or(doc.root()["plan"]["total"], int64_t{0})
template <class T, class Found>
T value_or(const Found& found, T fallback) {
  T value{};
  return found.get(value) == simdjson::SUCCESS ? value : fallback;
}

}  // namespace weir::suite
