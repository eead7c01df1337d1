// What a report says beside an older one.
//
// Threads: pure functions.
#pragma once

#include <vector>

#include "base/result.h"
#include "suite/report.h"

namespace weir::suite {

// An error where the two settings are of different things: speeds and bits of another model,
// machine or kind of run say nothing. The error names what differs. The builds may differ.
Result<void> check_comparable(const Setting& now, const Setting& old);

// Figures of the parts that ran now which are worse than they were, or are not there any more.
std::vector<Regression> find_regressions(const Report& now, const Report& old);

}  // namespace weir::suite
