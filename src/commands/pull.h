// `weir pull`: fetches a model of the hub into the cache; and what other commands do with a model
// that is not here.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> run_pull(const Options& options);

// The options with the path of the model in the place of its name at the hub (--model, --against).
// A model that is not here is pulled first.
Result<Options> with_model_here(Options options);

}  // namespace weir
