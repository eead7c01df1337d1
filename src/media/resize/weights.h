// AxisWeights: for each pixel along one side of the picture to be made, which pixels of the given
// one count, and how much, as integers.
//
// Threads: immutable after construction.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "media/resize/filter.h"
#include "media/resize/resize.h"

namespace weir::media {

class AxisWeights {
 public:
  // From `from` pixels to `to`. REQUIRES: both >= 1, and a filter that is not kNearest.
  AxisWeights(int from, int to, Filter filter, Arithmetic arithmetic);

  // Of pixel `i`: the first that counts, and the weights from it on.
  int first(int i) const { return first_[static_cast<size_t>(i)]; }
  std::span<const int32_t> weights(int i) const {
    const auto at = static_cast<size_t>(i);
    return {weights_.data() + begins_[at], begins_[at + 1] - begins_[at]};
  }
  // Bits after the point: the weights of a pixel add up to about 2^bits.
  int bits() const { return bits_; }

 private:
  std::vector<int32_t> first_;
  std::vector<size_t> begins_;  // Of each pixel's weights, and the end.
  std::vector<int32_t> weights_;
  int bits_ = 0;
};

}  // namespace weir::media
