// Where Float8Matrix (ops.h) keeps its numbers and scales, and the stretches of its columns that
// are summed before they are scaled.
//
// Included by files with ISA flags: everything is inlined, see unroll.h.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/unroll.h"

namespace weir::kernels {

// Bytes of 16 rows' numbers.
WEIR_INLINE int64_t block_number_bytes(const Float8Matrix& w) { return int64_t{kBlockRows} * w.k; }
// Scales that a row has, or shares with its block.
WEIR_INLINE int32_t scales_of_row(const Float8Matrix& w) {
  return (w.k + w.scale_columns - 1) / w.scale_columns;
}
// Floats from the scales of one stretch of columns to those of the next.
WEIR_INLINE int32_t scale_lanes(const Float8Matrix& w) { return w.row_scales ? kBlockRows : 1; }
WEIR_INLINE int64_t block_scales(const Float8Matrix& w) {
  return int64_t{scales_of_row(w)} * scale_lanes(w);
}

// The columns from `begin` on whose products are summed together: which end they have, and which
// of its scales a row has there.
struct Float8Stretch {
  int32_t end = 0;
  int32_t scale = 0;
};
WEIR_INLINE Float8Stretch float8_stretch(const Float8Matrix& w, int32_t begin) {
  const int32_t scale = begin / w.scale_columns;
  int32_t end = (scale + 1) * w.scale_columns;
  if (end > begin + kFloat8Stretch) end = begin + kFloat8Stretch;
  return {end < w.k ? end : w.k, scale};
}

}  // namespace weir::kernels
