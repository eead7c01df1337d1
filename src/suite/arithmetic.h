// How far a model as it is served lies from the same model in exact arithmetic, on one text.
//
// Threads: the caller's, which must be the one that chose the kernels; it makes a team of its own.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "kv/format.h"
#include "model/model.h"
#include "program/options.h"

namespace weir::suite {

struct ArithmeticFigures {
  int64_t tokens = 0;  // Predicted.
  double perplexity = 0, exact_perplexity = 0;
  // By how many nats a token is predicted worse than exactly, and the standard error of that mean.
  double loss_more = 0, loss_more_error = 0;
  double divergence = 0;      // Mean KL(exact || served), nats a token.
  double same_top_share = 0;  // 0 to 1: both find the same token the most likely.
};

// One way to compute a model.
struct Arithmetic {
  model::Compute compute = model::Compute::kExact;
  kv::Format kv = kv::Format::kF32;
};

// The model as it is served beside the same in floats. `tokens_max`: of the text, from its
// beginning. With --compute exact both are the same model.
Result<ArithmeticFigures> compare_arithmetic(const Options& options, std::string_view text,
                                             int32_t tokens_max);
// Any two ways; the first one is called exact.
Result<ArithmeticFigures> compare_arithmetic(const Options& options, const Arithmetic& exact,
                                             const Arithmetic& served, std::string_view text,
                                             int32_t tokens_max);

}  // namespace weir::suite
