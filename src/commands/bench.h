// `weir bench`: prefill and decode speed of the engine without the network, beside the limits of
// the machine that the same run measures.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> run_bench(const Options& options);

}  // namespace weir
