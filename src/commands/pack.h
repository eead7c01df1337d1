// `weir pack`: writes a model's experts as they lie in memory, for --stream-experts.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> pack_model(const Options& options);

}  // namespace weir
