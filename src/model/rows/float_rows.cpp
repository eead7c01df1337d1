#include "model/rows/float_rows.h"

#include <string>

#include "base/check.h"
#include "model/rows/stored_numbers.h"

namespace weir::model {

FloatRows::FloatRows(DType type, int32_t k, int64_t turned)
    : RowSource(dtype_name(type), std::to_string(turned), std::nullopt),
      type_(type),
      k_(k),
      turned_(turned) {}

void FloatRows::rows(const Bases&, int64_t, int32_t, kernels::RowNumbers*) const {
  CHECK(!"floats have no codes");
}

void FloatRows::floats(const Bases& bases, int64_t first, int32_t count, float* out) const {
  const int64_t row_step = turned_ == 0 ? k_ : 1, column_step = turned_ == 0 ? 1 : turned_;
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t c = 0; c < k_; ++c)
      *out++ = load_float(type_, bases[0], row * row_step + c * column_step);
}

}  // namespace weir::model
