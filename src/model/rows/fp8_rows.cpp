#include "model/rows/fp8_rows.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "base/check.h"
#include "kernels/quant_layout.h"

namespace weir::model {

namespace {

// By byte.
const std::array<float, 256>& e4m3_table() {
  static const std::array<float, 256> table = [] {
    std::array<float, 256> t{};
    for (size_t byte = 0; byte < t.size(); ++byte)
      t[byte] = kernels::e4m3_to_float(static_cast<uint8_t>(byte));
    return t;
  }();
  return table;
}

}  // namespace

Fp8Rows::Fp8Rows(const std::string& name, int32_t k, const Scales& scales)
    : RowSource("FP8 " + name,
                std::string(dtype_name(scales.type)) + " " + std::to_string(scales.rows) + " " +
                    std::to_string(scales.columns) + " " + std::to_string(scales.row_step),
                std::nullopt),
      k_(k),
      scales_(scales) {}

void Fp8Rows::rows(const Bases&, int64_t, int32_t, kernels::RowNumbers*) const {
  CHECK(!"FP8 has no codes in groups");
}

float Fp8Rows::scale(const Bases& bases, int64_t row, int64_t column) const {
  const int64_t at = row / scales_.rows * scales_.row_step + column / scales_.columns;
  return scales_.type == DType::kU8 ? kernels::e8m0_to_float(load_u8(bases[1], at))
                                    : load_float(scales_.type, bases[1], at);
}

std::optional<RowSource::Float8Scales> Fp8Rows::float8() const {
  const int64_t columns = std::min<int64_t>(scales_.columns, k_);
  if (k_ % kernels::kPackStep != 0 || columns % kernels::kPackStep != 0) return {};
  // A scale for the matrix is that of any number of rows.
  const int64_t rows = scales_.row_step == 0 ? kernels::kBlockRows : scales_.rows;
  return Float8Scales{.rows = rows, .columns = static_cast<int32_t>(columns)};
}

void Fp8Rows::float8_rows(const Bases& bases, int64_t first, int32_t count, uint8_t* numbers,
                          float* scales) const {
  std::memcpy(numbers, bases[0] + first * k_, static_cast<size_t>(count) * static_cast<size_t>(k_));
  for (int64_t row = first; row < first + count; ++row)
    for (int64_t column = 0; column < k_; column += scales_.columns)
      *scales++ = scale(bases, row, column);
}

void Fp8Rows::floats(const Bases& bases, int64_t first, int32_t count, float* out) const {
  const std::array<float, 256>& table = e4m3_table();
  for (int64_t row = first; row < first + count; ++row) {
    const std::byte* numbers = bases[0] + row * k_;
    for (int64_t begin = 0; begin < k_; begin += scales_.columns) {
      const float factor = scale(bases, row, begin);
      const int64_t end = std::min<int64_t>(begin + scales_.columns, k_);
      for (int64_t c = begin; c < end; ++c) *out++ = table[load_u8(numbers, c)] * factor;
    }
  }
}

}  // namespace weir::model
