// GptqRows: w = s * (q - z) as AutoGPTQ and GPTQModel store it: codes are streams down the columns
// of qweight [k * bits / 32, n], zero points streams along the rows of qzeros [groups, n * bits /
// 32], scales [groups, n].
//
// Pieces: qweight, qzeros, scales, g_idx.
#pragma once

#include "model/rows/grouped_rows.h"

namespace weir::model {

class GptqRows final : public GroupedRows {
 public:
  static constexpr int kOrderPiece = 3;

  // `zero_less`: what has been taken off each zero point before it was stored: 1 in version 1.
  GptqRows(const Sizes& sizes, int64_t n, int32_t zero_less);

 private:
  void codes(const Bases& bases, int64_t first, int32_t count, uint8_t* const* out) const override;
  float scale(const Bases& bases, int64_t row, int64_t group) const override;
  uint8_t zero(const Bases& bases, int64_t row, int64_t group) const override;

  int64_t n_;
  int32_t zero_less_;
};

}  // namespace weir::model
