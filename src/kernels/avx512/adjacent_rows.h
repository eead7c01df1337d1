// The rows of a range side by side, as tiles address them: where it has an index, rows are gathered
// first, as many at a time as the scratch holds.
//
// For files of avx512/; everything is inlined, see unroll.h.
#pragma once

#include "kernels/avx512/panel.h"

namespace weir::kernels::avx512 {

// Parts of the scratch: scales of one block, then gathered rows.
inline constexpr int64_t kPanelBytes = int64_t{kMaxLayerK} / 32 * int64_t{sizeof(GroupScales)};
inline constexpr int64_t kGatherBytes = kScratchBytes - kPanelBytes - 64;
// Rows are gathered in multiples of the most that a tile has.
inline constexpr int kGatherStep = 12;
static_assert(kGatherBytes >= kGatherStep * (int64_t{kMaxLayerK} + kMaxLayerK / 32 * 8));

// Calls gemm(w, rows of x, range of those rows without an index, scratch for scales).
template <class F>
WEIR_INLINE void for_adjacent_rows(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                                   void* scratch, const F& gemm) {
  auto* panel = static_cast<GroupScales*>(scratch);
  if (range.index == nullptr) return gemm(w, x, range, panel);
  const int32_t groups = w.k / w.group;
  const int64_t row_bytes = int64_t{w.k} + groups * 8;
  const int32_t chunk = static_cast<int32_t>(kGatherBytes / row_bytes / kGatherStep * kGatherStep);
  for (int32_t first = 0; first < range.rows; first += chunk) {
    const int32_t rows = range.rows - first < chunk ? range.rows - first : chunk;
    QuantRows gathered = x;
    gathered.q = static_cast<int8_t*>(scratch) + kPanelBytes;
    gathered.scale = reinterpret_cast<float*>(gathered.q + int64_t{rows} * w.k);
    gathered.sum = gathered.scale + int64_t{rows} * groups;
    gather_rows(x.q, range.index + first, rows, w.k, gathered.q);
    for (int32_t m = 0; m < rows; ++m) {
      const int64_t from = int64_t{range.index[first + m]} * groups, to = int64_t{m} * groups;
      for (int32_t g = 0; g < groups; ++g) {
        gathered.scale[to + g] = x.scale[from + g];
        gathered.sum[to + g] = x.sum[from + g];
      }
    }
    asm volatile("" : : : "memory");  // The tiles' assembly reads what was just written.
    GemmRange part = range;
    part.index = nullptr;
    part.rows = rows;
    part.y += first * range.y_stride;
    gemm(w, gathered, part, panel);
  }
}

}  // namespace weir::kernels::avx512
