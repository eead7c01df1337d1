// `weir verify`: reads a model of the cache again, and compares it with its hashes.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> verify_cached(const Options& options);

}  // namespace weir
