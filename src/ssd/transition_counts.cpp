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

// In fixed point, eight experts an instruction on any x86-64: this runs for every row of a layer.
void TransitionCounts::add_shares(int32_t layer, int32_t distance, std::span<const int16_t> from,
                                  std::span<uint16_t> shares) const {
  const uint16_t divisor = static_cast<uint16_t>(65536 / kShareOne * static_cast<int>(from.size()));
  uint16_t* sums = shares.data();
  for (const int16_t first : from) {
    const size_t at = row(layer, distance, first);
    if (rows_[at] == 0) continue;
    const uint8_t* pairs = pairs_.data() + at * static_cast<size_t>(experts_);
    // One more than was counted: what was seen once in one case is no certainty. A count times its
    // unit is below 65536, and 1 / divisor of that in 16 bits: a multiplication, high half.
    const uint32_t unit = 65535u / (rows_[at] + 1u);
    const uint32_t scale = 65536u / divisor;
    for (int32_t e = 0; e < experts_; ++e) {
      const auto share = static_cast<uint16_t>(pairs[e] * unit);
      sums[e] = static_cast<uint16_t>(sums[e] + (uint32_t{share} * scale >> 16));
    }
  }
}

}  // namespace weir::ssd
