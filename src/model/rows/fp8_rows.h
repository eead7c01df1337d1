// Fp8Rows: E4M3 numbers, a byte each [n, k], times a scale for the matrix, a row, a block or a
// group of columns.
//
// Pieces: numbers, scales.
#pragma once

#include "model/row_source.h"
#include "model/rows/stored_numbers.h"

namespace weir::model {

class Fp8Rows final : public RowSource {
 public:
  // The scale of row r and column c is number (r / rows) * row_step + c / columns.
  struct Scales {
    DType type = DType::kF32;  // Or kU8: E8M0.
    int64_t rows = 1;
    int64_t columns = 1;
    int64_t row_step = 0;
  };

  // `name`: what shares a scale.
  Fp8Rows(const std::string& name, int32_t k, const Scales& scales);

  void rows(const Bases& bases, int64_t first, int32_t count,
            kernels::RowNumbers* out) const override;
  std::optional<Float8Scales> float8() const override;
  void float8_rows(const Bases& bases, int64_t first, int32_t count, uint8_t* numbers,
                   float* scales) const override;
  void floats(const Bases& bases, int64_t first, int32_t count, float* out) const override;

 private:
  float scale(const Bases& bases, int64_t row, int64_t column) const;

  int32_t k_;
  Scales scales_;
};

}  // namespace weir::model
