// Where QuantMatrix (ops.h) keeps its numbers and scales.
//
// Numbers: each 32 elements of a block are 64 * bits bytes, in lines of 64, 4 for each of the 16
// rows; an eighth is 8 elements, e the number of an eighth among the 32. Byte j (0 to 3) of a row's
// four holds, of each eighth that the line covers, elements 2 j (even) and 2 j + 1 (odd):
//   8 bits  lines of even elements and of odd ones in turn, a byte each
//   4 bits  a line for each eighth: even in the low nibble, odd in the high one
//   2 bits  a line for two eighths: from bit 0 up: even of e = 0, even of 1, odd of 0, odd of 1
//   3 bits  the two lines of the low 2 bits, then a line of third bits: bit e even, bit 4 + e odd
//   5 bits  the four lines of the low 4 bits, then a line of fifth bits, the same
//   6 bits  the four lines of the low 4 bits, then two lines of the high 2 bits, as 2 bits are
//
// Included by files with ISA flags: everything is inlined, see unroll.h.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels {

inline constexpr int32_t kPackStep = 32;  // Elements whose words lie together.

WEIR_INLINE constexpr int32_t float_type_bytes(FloatType type) {
  return type == FloatType::kF32 ? 4 : 2;
}

// What ops.h calls `off`.
WEIR_INLINE int32_t total_offset(const QuantMatrix& w) {
  return w.offset + (w.grid == Grid::kIq4 ? kIq4Shift : w.grid == Grid::kE2m1 ? kE2m1Shift : 0);
}

// Bytes of 16 rows' numbers.
WEIR_INLINE int64_t block_word_bytes(const QuantMatrix& w) {
  return int64_t{kBlockRows} * w.k * w.bits / 8;
}
// Bytes of one group's scales.
WEIR_INLINE int32_t group_scale_bytes(const QuantMatrix& w) {
  if (w.form == ScaleForm::kPairs) return 2 * kBlockRows * float_type_bytes(w.scale_type);
  if (w.form == ScaleForm::kScales) return kBlockRows * float_type_bytes(w.scale_type);
  if (w.form == ScaleForm::kZeros) return kBlockRows * (float_type_bytes(w.scale_type) + 1);
  return kBlockRows * (w.mins ? 2 : 1);
}
// Bytes of d and dmin before the groups of a run of kSuperGroup numbers.
WEIR_INLINE int32_t run_head_bytes(const QuantMatrix& w) {
  if (w.form != ScaleForm::kTwoLevel) return 0;
  return kBlockRows * (w.mins ? 8 : 4);
}
WEIR_INLINE int64_t block_scale_bytes(const QuantMatrix& w) {
  const int64_t runs = (w.k + kSuperGroup - 1) / kSuperGroup;
  return int64_t{w.k / w.group} * group_scale_bytes(w) + runs * run_head_bytes(w);
}
// Where group `g`'s scales begin in its block's, and where the d that they go with does.
WEIR_INLINE int64_t group_scales_at(const QuantMatrix& w, int32_t g) {
  const int64_t runs = int64_t{g} * w.group / kSuperGroup + 1;
  return int64_t{g} * group_scale_bytes(w) + runs * run_head_bytes(w);
}
WEIR_INLINE int64_t run_head_at(const QuantMatrix& w, int32_t g) {
  const int32_t run = g * w.group / kSuperGroup;
  return int64_t{run} * (run_head_bytes(w) + int64_t{kSuperGroup / w.group} * group_scale_bytes(w));
}

// Whether kernels read the numbers as they lie: bytes, or nibbles that are numbers in groups of 32
// or more. Others are spread to bytes.
WEIR_INLINE bool plain_numbers(const QuantMatrix& w) {
  if (w.grid != Grid::kUniform || w.group < kPackStep) return false;
  return w.bits == 4 || w.bits == 8;
}
// Whether scales and biases are stored as ops.h wants them, as floats of scale_type.
WEIR_INLINE bool plain_scales(const QuantMatrix& w) {
  return w.form == ScaleForm::kPairs && total_offset(w) == 0;
}

}  // namespace weir::kernels
