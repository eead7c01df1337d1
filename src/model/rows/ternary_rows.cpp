#include "model/rows/ternary_rows.h"

#include <string>

#include "model/rows/stored_numbers.h"

namespace weir::model {

TernaryRows::TernaryRows(int32_t k, int64_t n, DType scale_type, bool divides)
    : GroupedRows("BitNet", std::to_string(n) + (divides ? " divides" : ""),
                  {.k = k,
                   .bits = 2,
                   .group = k,
                   .groups = 1,
                   .scale_type = divides ? DType::kF32 : scale_type,
                   .zero = 1}),
      n_(n),
      type_(scale_type),
      divides_(divides) {}

void TernaryRows::codes(const Bases& bases, int64_t first, int32_t count,
                        uint8_t* const* out) const {
  const int64_t quarter = n_ / 4;
  const int32_t k = sizes().k;
  for (int32_t i = 0; i < count; ++i) {
    const int64_t row = first + i;
    const std::byte* packed = bases[0] + row % quarter * k;
    const auto shift = static_cast<int32_t>(2 * (row / quarter));
    for (int32_t c = 0; c < k; ++c)
      out[i][c] = static_cast<uint8_t>(load_u8(packed, c) >> shift & 3);
  }
}

float TernaryRows::scale(const Bases& bases, int64_t, int64_t) const {
  const float stored = load_float(type_, bases[1], 0);
  return divides_ ? 1 / stored : stored;
}

}  // namespace weir::model
