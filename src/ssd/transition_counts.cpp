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

void add_row(const uint8_t* __restrict pairs, uint16_t unit, uint16_t scale,
             uint16_t* __restrict sums, int32_t count) {
  for (int32_t e = 0; e < count; ++e) {
    const auto share = static_cast<uint16_t>(pairs[e] * unit);
    const auto part = static_cast<uint16_t>(uint32_t{share} * scale >> 16);
    sums[e] = static_cast<uint16_t>(sums[e] + part);
  }
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
  if (from.empty()) return;
  // What a row adds is below kShareOne / from.size(): the high half of a product of 16 bits.
  const auto scale = static_cast<uint16_t>(kShareOne / static_cast<int32_t>(from.size()));
  for (const int16_t first : from) {
    const size_t at = row(layer, distance, first);
    if (rows_[at] == 0) continue;
    // One more than was counted: what was seen once in one case is no certainty. No count is above
    // its row's, so that a count times its unit is below 65,536.
    const auto unit = static_cast<uint16_t>(65535 / (rows_[at] + 1));
    add_row(pairs_.data() + at * static_cast<size_t>(experts_), unit, scale, shares.data(),
            experts_);
  }
}

}  // namespace weir::ssd
