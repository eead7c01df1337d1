// `weir calibrate`: measures memory, arithmetic and, with --model, the disk that holds a model, and
// keeps the figures where forecasts and --stream-experts find them.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> calibrate_machine(const Options& options);

}  // namespace weir
