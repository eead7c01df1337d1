// `weir quantize`: writes a model's checkpoint with its matrices in 2 to 8 bits.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> quantize_model(const Options& options);

}  // namespace weir
