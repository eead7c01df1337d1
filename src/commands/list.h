// `weir list`: the models in the cache that huggingface_hub and weir share.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> list_cache(const Options& options);

}  // namespace weir
