// TernaryRows: BitNet's -1, 0 and 1, four rows of w in a byte of U8 [n / 4, k]: row i * n / 4 + r
// is in bits 2i of packed row r, with 1 added; one scale for the matrix.
//
// Pieces: codes, scale.
#pragma once

#include "model/rows/grouped_rows.h"

namespace weir::model {

class TernaryRows final : public GroupedRows {
 public:
  // `divides`: numbers are divided by the scale, not multiplied.
  TernaryRows(int32_t k, int64_t n, DType scale_type, bool divides);

 private:
  void codes(const Bases& bases, int64_t first, int32_t count, uint8_t* const* out) const override;
  float scale(const Bases& bases, int64_t row, int64_t group) const override;

  int64_t n_;
  DType type_;
  bool divides_;
};

}  // namespace weir::model
