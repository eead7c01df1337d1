// SignedRows: compressed-tensors' integers, w = s * (q - z) with signed q and z, held here with
// 2^(bits - 1) added to both. Stored as streams along the rows [n, words], or a byte each [n, k];
// scales [n, groups]; zero points, where they are, as streams down the rows [words, groups], or a
// byte each [n, groups].
//
// Pieces: codes, scales, then those there are of zero points and of the columns' groups.
#pragma once

#include "model/rows/grouped_rows.h"
#include "model/rows/stored_numbers.h"

namespace weir::model {

class SignedRows final : public GroupedRows {
 public:
  // How codes and zero points are stored.
  struct Layout {
    bool packed = false;  // As `stream`, 2^(bits - 1) added already; else I8.
    BitStream stream{};
    int zeros_piece = 0;  // 0: there are none, and Sizes has what stands for 0.
    bool whole = false;   // One scale, and one zero point, for the matrix.
  };

  SignedRows(const Sizes& sizes, const Layout& layout);

 private:
  void codes(const Bases& bases, int64_t first, int32_t count, uint8_t* const* out) const override;
  float scale(const Bases& bases, int64_t row, int64_t group) const override;
  uint8_t zero(const Bases& bases, int64_t row, int64_t group) const override;

  Layout layout_;
};

}  // namespace weir::model
