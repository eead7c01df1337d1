// Part: what the suite measures, as a row of a table. A new part is a function in a file of its
// own, declared in parts.h, and a row in parts.cpp.
//
// Threads: any; the table is a constant.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "suite/run.h"

namespace weir::suite {

struct Part {
  std::string_view name;      // As --only names it.
  std::string_view measures;  // In a line.
  // Of a small model on two cores, for who waits.
  double quick_minutes = 0, minutes = 0;
  // Adds its figures to the run. An error says why the whole part could not be measured; what was
  // added before counts.
  Result<void> (*measure)(Run& run);
};

std::span<const Part> parts();

// Those that --only names, in the order of the table; none named: all. An error lists them.
Result<std::vector<const Part*>> chosen_parts(const std::string& only);

}  // namespace weir::suite
