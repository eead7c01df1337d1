// Filters: which tokens of a row are still in play, and what each weighs.
//
// Threads: pure functions of a row, its parameters and one thread's scratch.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/ops.h"
#include "sample/sampler_scratch.h"
#include "sample/sampling_params.h"

namespace weir::sample {

// Below this the reciprocal would overflow the differences of logits; the result is greedy anyway.
inline constexpr float kTemperatureMin = 1e-5f;

// The `count` largest of the row, largest first, to the scratch's candidates; of equals the smaller
// id. Returns how many. REQUIRES: no NaN in `row`.
size_t gather_largest(std::span<const float> row, size_t count, SamplerScratch& scratch);

// Takes away what lies more than `sigmas` standard deviations below `largest`, the row's maximum.
// What has no chance already counts neither in the mean nor in the deviation.
void keep_within_sigmas(std::span<float> row, float largest, float sigmas);

// Applies top_k, top_p, min_p and typical_p, in this order, to a row of scaled logits whose maximum
// is 0, that of `best`. On return the first candidates, as many as it says, are the tokens left,
// and row[token] is each one's weight; their sum is not 1.
size_t narrow(const SamplingParams& params, std::span<float> row, int32_t best,
              const kernels::Ops& ops, SamplerScratch& scratch);

// XTC: of the candidates whose share is at least `threshold` only the least likely stays. Keeps the
// order, and returns how many are left.
size_t exclude_top_choices(std::span<Candidate> candidates, std::span<const float> row,
                           float threshold);

// The temperature by how undecided the candidates are: temperature - range where one has all the
// weight, temperature + range where all weigh the same.
float dynamic_temperature(const SamplingParams& params, std::span<const Candidate> candidates,
                          std::span<const float> row);

// Weights at temperature 1 become weights at `temperature`; at 0 one candidate has all.
void reheat(std::span<const Candidate> candidates, std::span<float> row, float temperature);

}  // namespace weir::sample
