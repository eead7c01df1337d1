// `weir suite`: all parts of src/suite, one after another, and their report.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

// An error also where a figure does not keep its limit, or is worse than in the report of
// --against: it says how many.
Result<void> run_suite(const Options& options);

}  // namespace weir
