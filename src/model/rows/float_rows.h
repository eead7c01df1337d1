// FloatRows: rows of floats [n, k], or the columns of [k, n].
//
// Pieces: the floats.
#pragma once

#include "base/dtype.h"
#include "model/row_source.h"

namespace weir::model {

class FloatRows final : public RowSource {
 public:
  // `turned`: 0, or the n of floats that are stored as [k, n].
  FloatRows(DType type, int32_t k, int64_t turned = 0);

  void rows(const Bases& bases, int64_t first, int32_t count,
            kernels::RowNumbers* out) const override;
  void floats(const Bases& bases, int64_t first, int32_t count, float* out) const override;

 private:
  DType type_;
  int32_t k_;
  int64_t turned_;
};

}  // namespace weir::model
