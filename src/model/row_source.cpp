#include "model/row_source.h"

#include "base/check.h"

namespace weir::model {

void RowSource::floats(const Bases& bases, int64_t first, int32_t count, float* out) const {
  CHECK(shape_.has_value());
  kernels::RowBuffer buffer(*shape_, 1);
  for (int32_t i = 0; i < count; ++i) {
    rows(bases, first + i, 1, buffer.rows());
    kernels::dequantise_row(*shape_, buffer.row(0), out + int64_t{i} * shape_->k);
  }
}

void RowSource::float8_rows(const Bases&, int64_t, int32_t, uint8_t*, float*) const {
  CHECK(!"these rows are not of float8 numbers");
}

int32_t common_group(int32_t k, int64_t group) {
  for (const int32_t size : {128, 64, 32, 16})
    if (k % size == 0 && group % size == 0) return size;
  return 0;
}

}  // namespace weir::model
