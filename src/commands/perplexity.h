// `weir perplexity`: the mean negative log-likelihood of a text under a model.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> measure_perplexity(const Options& options);

}  // namespace weir
