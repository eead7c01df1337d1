// Counting, fading and adding up pairs of experts.
#include "ssd/transition_counts.h"

#include <algorithm>

namespace weir::ssd {
namespace {

int32_t depth_that_fits(int32_t layers, int32_t experts) {
  const int64_t bytes_per_distance = int64_t{layers} * experts * experts;
  const int64_t fits = TransitionCounts::kBytesMax / bytes_per_distance;
  return static_cast<int32_t>(
      std::min<int64_t>({fits, TransitionCounts::kDepthMax, int64_t{layers} - 1}));
}

}  // namespace

TransitionCounts::TransitionCounts(int32_t layers, int32_t experts)
    : experts_(experts), depth_(depth_that_fits(layers, experts)) {
  const size_t rows = static_cast<size_t>(layers) * static_cast<size_t>(depth_ * experts);
  rows_.assign(rows, 0);
  pairs_.assign(rows * static_cast<size_t>(experts), 0);
}

void TransitionCounts::count(int32_t layer, int32_t distance, std::span<const int16_t> from,
                             std::span<const int32_t> to) {
  for (const int16_t first : from) {
    const size_t at = row(layer, distance, first);
    uint8_t* pairs = pairs_.data() + at * static_cast<size_t>(experts_);
    if (rows_[at] == 255) {
      rows_[at] /= 2;
      for (int32_t e = 0; e < experts_; ++e) pairs[e] /= 2;
    }
    ++rows_[at];
    for (const int32_t second : to) ++pairs[second];
  }
}

void TransitionCounts::add_shares(int32_t layer, int32_t distance, std::span<const int16_t> from,
                                  std::span<float> shares) const {
  for (const int16_t first : from) {
    const size_t at = row(layer, distance, first);
    if (rows_[at] == 0) continue;
    const uint8_t* pairs = pairs_.data() + at * static_cast<size_t>(experts_);
    // One more than was counted: what was seen once in one case is no certainty.
    const float unit =
        1.0f / (static_cast<float>(from.size()) * (static_cast<float>(rows_[at]) + 1));
    for (int32_t e = 0; e < experts_; ++e)
      shares[static_cast<size_t>(e)] += unit * static_cast<float>(pairs[e]);
  }
}

}  // namespace weir::ssd
