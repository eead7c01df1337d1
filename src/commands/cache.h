// `weir cache`: what lies in the prompt cache on disk (--disk-cache); `weir cache clear` removes
// it.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> manage_prompt_cache(const Options& options);

}  // namespace weir
