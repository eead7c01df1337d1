// AffineRows: MLX's codes, streams along the rows [n, k * bits / 32] of U32, with a scale and a
// bias for each group [n, k / group]. Kernels have a way of their own to pack these (repack.h);
// this is for those who want the numbers.
//
// Pieces: codes, scales, biases.
#pragma once

#include "base/dtype.h"
#include "model/row_source.h"
#include "model/rows/stored_numbers.h"

namespace weir::model {

class AffineRows final : public RowSource {
 public:
  // REQUIRES: k is a multiple of the group.
  AffineRows(int32_t k, int32_t bits, int32_t group, DType scale_type);

  void rows(const Bases& bases, int64_t first, int32_t count,
            kernels::RowNumbers* out) const override;

 private:
  int32_t k_;
  BitStream stream_;
  int32_t group_;
  DType scale_type_;
};

}  // namespace weir::model
