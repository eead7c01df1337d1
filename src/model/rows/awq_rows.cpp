#include "model/rows/awq_rows.h"

#include <string>

#include "model/rows/stored_numbers.h"

namespace weir::model {

namespace {

// Nibble i of a word is of row 0 2 4 6 1 3 5 7 [i]; so row r is in nibble:
int32_t awq_nibble(int64_t row) {
  const auto r = static_cast<int32_t>(row % 8);
  return r / 2 + r % 2 * 4;
}

}  // namespace

AwqRows::AwqRows(const Sizes& sizes, int64_t n)
    : GroupedRows("AWQ", std::to_string(n), sizes), n_(n) {}

void AwqRows::codes(const Bases& bases, int64_t first, int32_t count, uint8_t* const* out) const {
  const int64_t words = n_ / 8;
  for (int32_t c = 0; c < sizes().k; ++c)
    for (int32_t i = 0; i < count; ++i) {
      const int64_t row = first + i;
      const uint32_t word = load_u32(bases[0], c * words + row / 8);
      out[i][c] = word >> (4 * awq_nibble(row)) & 15;
    }
}

float AwqRows::scale(const Bases& bases, int64_t row, int64_t group) const {
  return load_float(sizes().scale_type, bases[2], group * n_ + row);
}

uint8_t AwqRows::zero(const Bases& bases, int64_t row, int64_t group) const {
  return load_u32(bases[1], group * (n_ / 8) + row / 8) >> (4 * awq_nibble(row)) & 15;
}

}  // namespace weir::model
