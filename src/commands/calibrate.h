// `weir calibrate`: measures the disk that holds a model, and memory, and keeps the figures where
// --stream-experts finds them.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> calibrate_machine(const Options& options);

}  // namespace weir
