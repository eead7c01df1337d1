// `weir perplexity`: the mean negative log-likelihood of a text under a model; with --against also
// how far its distributions of the next token lie from another model's.
#pragma once

#include "base/result.h"
#include "program/options.h"

namespace weir {

Result<void> measure_perplexity(const Options& options);

}  // namespace weir
