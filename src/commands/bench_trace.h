// `weir bench --trace FILE`: a server of this process answers streams over loopback; what its
// threads did is written as a trace, and summed up for each number of streams.
#pragma once

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> trace_serving(const Options& options, const std::vector<int32_t>& batches);

}  // namespace weir
