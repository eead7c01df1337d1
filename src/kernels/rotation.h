// HeadRotation: the tables of a Rotation (coded_ops.h) for heads of some dimension. The signs are
// fixed: two processes that keep the same codes agree on what they stand for.
//
// Which Hadamard matrix: of order m times one of 2^k, where m is 1 or 12, 20, 28, 36, 44 or 60
// (Paley 1933), the smallest that fits: 64 = 2^6, 80 = 20 * 4, 96 = 12 * 8, 112 = 28 * 4, 576 = 36
// *
// 16. A dimension that is no such product is turned in overlapping parts.
//
// Threads: immutable.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/coded_ops.h"

namespace weir::kernels {

class HeadRotation {
 public:
  // REQUIRES: 1 <= dim <= kCodedDimMax.
  explicit HeadRotation(int32_t dim);

  Rotation view() const {
    return {.dim = dim_,
            .order = order_,
            .width = width_,
            .signs = signs_.data(),
            .matrix = order_ > 1 ? matrix_.data() : nullptr};
  }

 private:
  int32_t dim_;
  int32_t order_ = 1;
  int32_t width_ = 0;
  std::vector<float> signs_;
  std::vector<float> matrix_;
};

// A Hadamard matrix of one of Paley's orders above, [order][order].
std::vector<float> paley_matrix(int32_t order);

}  // namespace weir::kernels
