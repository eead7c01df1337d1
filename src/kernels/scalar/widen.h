// Stored numbers to float32, one at a time. For scalar/ only: the other folders must not include
// the standard library.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "kernels/float8_layout.h"
#include "kernels/ops.h"
#include "kernels/quant_layout.h"

namespace weir::kernels::scalar {

// Float8 e4m3, divided by kFloat8Unit: as f16 it is that, denormals included.
inline float e4m3_half(uint8_t bits) {
  return half_to_float(static_cast<uint16_t>((bits & 0x80) << 8 | (bits & 0x7f) << 7));
}

// Element `i` of an array of `type`, which need not be aligned.
inline float widen(FloatType type, const void* array, int64_t i) {
  const uint8_t* at = static_cast<const uint8_t*>(array) + i * float_type_bytes(type);
  if (type == FloatType::kF32) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return type == FloatType::kF16 ? half_to_float(bits) : bf16_to_float(bits);
}

// One weight of a FloatMatrix.
inline float widen_weight(const FloatMatrix& w, int32_t row, int32_t column) {
  return widen(w.type, w.rows, int64_t{row} * w.k + column);
}

// One row of a Float8Matrix.
class Float8Row {
 public:
  Float8Row(const Float8Matrix& w, int32_t row)
      : w_(w),
        numbers_(w.numbers + row / kBlockRows * block_number_bytes(w) + row % kBlockRows),
        scales_(w.scales + row / kBlockRows * block_scales(w)) {
    if (w.row_scales) scales_ += row % kBlockRows;
  }

  // Divided by kFloat8Unit.
  float number(int32_t column) const { return e4m3_half(numbers_[int64_t{column} * kBlockRows]); }
  // What such a number is multiplied by.
  float scale(int32_t column) const {
    return scales_[column / w_.scale_columns * scale_lanes(w_)] * kFloat8Unit;
  }

 private:
  const Float8Matrix& w_;
  const uint8_t* numbers_;
  const float* scales_;
};

// What a byte of a group's scale stands for.
inline float byte_scale_value(ByteScale kind, uint8_t byte) {
  switch (kind) {
    case ByteScale::kUnsigned:
      return byte;
    case ByteScale::kSigned:
      return static_cast<int8_t>(byte);
    case ByteScale::kE8m0:  // 2^-127 is a denormal.
      return std::bit_cast<float>(byte == 0 ? 0x00400000u : uint32_t{byte} << 23);
    case ByteScale::kE4m3:
      break;
  }
  return e4m3_half(byte) * kFloat8Unit;
}

// One row of a QuantMatrix: where its numbers lie among its block's.
class QuantRow {
 public:
  QuantRow(const QuantMatrix& w, int32_t row)
      : w_(w), lane_(row % kBlockRows), off_(total_offset(w)) {
    const int64_t block = row / kBlockRows;
    words_ = w.words + block * block_word_bytes(w) + 4 * lane_;
    scales_ = w.scales + block * block_scale_bytes(w);
  }

  // Element `i` in the permuted order of QuantMatrix, 0 2 4 6 1 3 5 7 within each 8, as what
  // kernels multiply by: an unsigned byte.
  int32_t permuted(int32_t i) const {
    const int32_t code = code_at(i);
    if (w_.grid == Grid::kIq4) return kIq4Values[code] + kIq4Shift;
    if (w_.grid == Grid::kE2m1) return kE2m1Values[code] + kE2m1Shift;
    return code;
  }
  // Element `i` of the row as the model numbers it.
  int32_t at(int32_t i) const { return permuted(i / 8 * 8 + (i % 2) * 4 + i % 8 / 2); }
  float scale(int32_t group) const {
    const uint8_t* at = scales_ + group_scales_at(w_, group);
    if (w_.form != ScaleForm::kTwoLevel) return widen(w_.scale_type, at, lane_);
    return head(group, 0) * byte_scale_value(w_.byte_scale, at[lane_]);
  }
  float bias(int32_t group) const {
    const uint8_t* at = scales_ + group_scales_at(w_, group);
    if (w_.mins) return -(head(group, 1) * static_cast<float>(at[kBlockRows + lane_]));
    float bias = 0;
    int32_t off = off_;
    if (w_.form == ScaleForm::kPairs) bias = widen(w_.scale_type, at, kBlockRows + lane_);
    if (w_.form == ScaleForm::kZeros)
      off += at[kBlockRows * float_type_bytes(w_.scale_type) + lane_];
    return off == 0 ? bias : bias - static_cast<float>(off) * scale(group);
  }

 private:
  // d (0) or dmin (1).
  float head(int32_t group, int32_t which) const {
    return widen(FloatType::kF32, scales_ + run_head_at(w_, group), which * kBlockRows + lane_);
  }
  // Bits [shift, shift + bits) of the byte of line `line` that holds the permuted element `i`.
  int32_t field(const uint8_t* step, int32_t line, int32_t i, int32_t shift, int32_t bits) const {
    return step[64 * line + i % 4] >> shift & ((1 << bits) - 1);
  }
  int32_t code_at(int32_t i) const {
    const uint8_t* step = words_ + int64_t{i / kPackStep} * 64 * w_.bits;
    const int32_t eighth = i % kPackStep / 8, odd = i % 8 / 4;
    const auto nibble = [&] { return field(step, eighth, i, 4 * odd, 4); };
    const auto two = [&](int32_t line) {
      return field(step, line + eighth / 2, i, 2 * (eighth % 2) + 4 * odd, 2);
    };
    const auto one = [&](int32_t line) { return field(step, line, i, eighth + 4 * odd, 1); };
    switch (w_.bits) {
      case 2:
        return two(0);
      case 3:
        return two(0) | one(2) << 2;
      case 4:
        return nibble();
      case 5:
        return nibble() | one(4) << 4;
      case 6:
        return nibble() | two(4) << 4;
      default:
        return field(step, 2 * eighth + odd, i, 0, 8);
    }
  }

  const QuantMatrix& w_;
  int32_t lane_;
  int32_t off_;
  const uint8_t* words_;
  const uint8_t* scales_;
};

}  // namespace weir::kernels::scalar
