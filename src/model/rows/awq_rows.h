// AwqRows: w = s * (q - z) in AutoAWQ's gemm layout: eight neighbouring rows of w share a word of
// qweight [k, n / 8] and of qzeros [groups, n / 8], in the order that awq_nibble() has; scales
// [groups, n]. 4 bits.
//
// Pieces: qweight, qzeros, scales.
#pragma once

#include "model/rows/grouped_rows.h"

namespace weir::model {

class AwqRows final : public GroupedRows {
 public:
  AwqRows(const Sizes& sizes, int64_t n);

 private:
  void codes(const Bases& bases, int64_t first, int32_t count, uint8_t* const* out) const override;
  float scale(const Bases& bases, int64_t row, int64_t group) const override;
  uint8_t zero(const Bases& bases, int64_t row, int64_t group) const override;

  int64_t n_;
};

}  // namespace weir::model
