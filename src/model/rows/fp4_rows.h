// Fp4Rows: E2M1 numbers, two to a byte, the first in the low bits, in groups that share a byte of
// scale: MXFP4 (groups of 32, E8M0) and NVFP4 (groups of 16, E4M3, with a float for the matrix).
// Codes [n, k / 2], scales [n, k / group]; OpenAI, MLX, compressed-tensors and modelopt agree on
// the bytes.
//
// Pieces: codes, scales, the matrix's float (F32) where it has one.
#pragma once

#include "model/row_source.h"

namespace weir::model {

class Fp4Rows final : public RowSource {
 public:
  enum class Matrix : uint8_t { kNone, kFactor, kDivisor };  // What the matrix's float is.

  // REQUIRES: k is a multiple of the group.
  Fp4Rows(int32_t k, int32_t group, kernels::ByteScale scales, Matrix matrix);

  void rows(const Bases& bases, int64_t first, int32_t count,
            kernels::RowNumbers* out) const override;

 private:
  int32_t k_;
  int32_t group_;
  Matrix matrix_;
};

}  // namespace weir::model
