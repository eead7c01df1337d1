// Stored numbers to float32, one at a time. For scalar/ only: the other folders must not include
// the standard library.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/dtype.h"
#include "kernels/ops.h"

namespace weir::kernels::scalar {

inline int float_type_bytes(FloatType type) { return type == FloatType::kF32 ? 4 : 2; }

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

// One row of a QuantMatrix: where its numbers lie among its block's.
class QuantRow {
 public:
  QuantRow(const QuantMatrix& w, int32_t row)
      : bits_(w.bits), type_(w.scale_type), lane_(row % kBlockRows) {
    const int64_t block = row / kBlockRows;
    const int64_t groups = w.k / w.group;
    words_ = w.words + block * kBlockRows * (int64_t{w.k} * w.bits / 8);
    scales_ = w.scales + block * groups * 2 * kBlockRows * float_type_bytes(type_);
  }

  // Element `i` in the permuted order of QuantMatrix: 0 2 4 6 1 3 5 7 within each 8.
  int32_t permuted(int32_t i) const {
    const uint8_t* words = words_ + 4 * lane_;
    if (bits_ == 8) return words[int64_t{i / 4} * 64 + i % 4];
    return words[int64_t{i / 8} * 64 + i % 4] >> (i % 8 < 4 ? 0 : 4) & 15;
  }
  // Element `i` of the row as the model numbers it.
  int32_t at(int32_t i) const { return permuted(i / 8 * 8 + (i % 2) * 4 + i % 8 / 2); }
  float scale(int32_t group) const { return widen(type_, scales_, group * 2 * kBlockRows + lane_); }
  float bias(int32_t group) const {
    return widen(type_, scales_, (group * 2 + 1) * kBlockRows + lane_);
  }

 private:
  int32_t bits_;
  FloatType type_;
  int32_t lane_;
  const uint8_t* words_;
  const uint8_t* scales_;
};

}  // namespace weir::kernels::scalar
