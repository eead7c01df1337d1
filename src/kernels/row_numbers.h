// RowNumbers: one row of a quantised matrix, unpacked to a number a byte. Every stored format is
// read as such rows, whatever it packs how; from them repack.h makes what kernels read.
//
// Threads: plain data, and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels/ops.h"

namespace weir::kernels {

// What is known of a quantised matrix before its numbers.
struct QuantShape {
  int32_t n = 0;
  int32_t k = 0;
  int32_t group = 0;  // 16, 32, 64 or 128; k is a multiple of it.
  int32_t bits = 0;   // Of a code.
  Grid grid = Grid::kUniform;
  ScaleForm scales = ScaleForm::kPairs;
  ByteScale byte_scale = ByteScale::kUnsigned;
  FloatType scale_type = FloatType::kF32;  // Holds the floats of all forms but kTwoLevel exactly.
  bool mins = false;                       // kTwoLevel: there are group_mins and dmin.
  int32_t offset = 0;                      // What stands for 0: kScales, kTwoLevel without mins.
};

// One row. What its shape's form does not have is not looked at:
//   kPairs:    w = scales * value(code) + biases
//   kScales:   w = scales * (value(code) - offset)
//   kZeros:    w = scales * (value(code) - zeros)
//   kTwoLevel: w = (d * S(group_scales)) * value(code) - dmin * group_mins with mins, else
//              w = (d * S(group_scales)) * (value(code) - offset)
struct RowNumbers {
  uint8_t* codes = nullptr;         // [k], below 2^bits.
  uint8_t* scales = nullptr;        // [k / group] of scale_type, unaligned: they stay as stored.
  uint8_t* biases = nullptr;        // The same.
  uint8_t* zeros = nullptr;         // [k / group]
  uint8_t* group_scales = nullptr;  // [k / group]
  uint8_t* group_mins = nullptr;    // [k / group]
  float* d = nullptr;               // [ceil(k / kSuperGroup)]
  float* dmin = nullptr;            // [ceil(k / kSuperGroup)]
};

// Number `i` of scales or biases; put_number() rounds to the nearest even.
float number_at(FloatType type, const uint8_t* numbers, int64_t i);
void put_number(FloatType type, float value, uint8_t* numbers, int64_t i);

// Memory for some rows of one shape, of every kind.
class RowBuffer {
 public:
  RowBuffer(const QuantShape& shape, int32_t rows);

  RowNumbers& row(int32_t i) { return rows_[static_cast<size_t>(i)]; }
  RowNumbers* rows() { return rows_.data(); }

 private:
  std::vector<uint8_t> bytes_;
  std::vector<float> floats_;
  std::vector<RowNumbers> rows_;
};

// E8M0: 2^(byte - 127), NaN for 255. E4M3 "fn": no infinities, NaN for 0x7f and 0xff.
float e8m0_to_float(uint8_t byte);
float e4m3_to_float(uint8_t byte);

// In which form kernels hold such a matrix without loss; nothing where only float rows do.
std::optional<QuantShape> container_of(const QuantShape& stored);

// Whether all that a row's numbers are multiplied by and shifted by is finite.
bool all_finite(const QuantShape& shape, const RowNumbers& row);

// The numbers themselves, [k]: v = fma(scale, value, bias), as gemm_quant_f32 has them.
void dequantise_row(const QuantShape& stored, const RowNumbers& row, float* out);

}  // namespace weir::kernels
