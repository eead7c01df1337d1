// `weir rm`: deletes a model of the cache.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> remove_from_cache(const Options& options);

}  // namespace weir
