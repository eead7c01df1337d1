// Residual: the stream of rows that sublayers read, and to which each adds what it computes.
// Nothing else writes it, but the embedding, which begins it, and levels (model/batch.h).
//
// Threads: one per workspace; members write rows or columns of their own (pass.h).
#pragma once

#include <cstdint>

#include "kernels/ops.h"

namespace weir::model {

class Residual {
 public:
  Residual() = default;
  // `x`: [rows, width].
  Residual(float* x, int32_t width) : x_(x), width_(width) {}

  int32_t width() const { return width_; }
  const float* row(int64_t row) const { return x_ + row * width_; }
  // For what the row begins with, or becomes.
  float* begin_row(int64_t row) const { return x_ + row * width_; }

  // row += scale * delta, [width].
  void add_row(const kernels::Ops& ops, const float* delta, float scale, int64_t row) const {
    ops.add_scaled(delta, scale, width_, x_ + row * width_);
  }
  // row *= factor.
  void scale_row(const kernels::Ops& ops, float factor, int64_t row) const {
    ops.scale(factor, width_, x_ + row * width_);
  }
  // Some columns of the rows from `row` on += scale * what a product has left in its range.
  void add_columns(const kernels::Ops& ops, const kernels::GemmRange& range, float scale,
                   int64_t row) const {
    for (int64_t m = 0; m < range.rows; ++m)
      ops.add_scaled(range.y + m * range.y_stride + range.begin, scale, range.end - range.begin,
                     x_ + (row + m) * width_ + range.begin);
  }

 private:
  float* x_ = nullptr;
  int32_t width_ = 0;
};

}  // namespace weir::model
