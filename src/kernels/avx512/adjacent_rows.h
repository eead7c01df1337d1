// The rows of a range side by side, as tiles address them: where it has an index, rows are gathered
// first, as many at a time as the scratch holds.
//
// For files of avx512/; everything is inlined, see unroll.h.
#pragma once

#include "kernels/avx512/panel.h"

namespace weir::kernels::avx512 {

// Parts of the scratch: scales of one block, or of two; numbers of these; then gathered rows.
inline constexpr int64_t kF32ScaleBytes = 2 * 4 * kBlockRows;  // Of a group.
inline constexpr int64_t kPanelBytes = int64_t{kMaxLayerK} / 16 * kF32ScaleBytes;
static_assert(kPanelBytes >= int64_t{kMaxLayerK} / 32 * int64_t{sizeof(GroupScales)});
inline constexpr int64_t kNumberBytes = int64_t{kMaxLayerK} * kBlockRows;
inline constexpr int64_t kGatherBytes = kScratchBytes - kPanelBytes - kNumberBytes - 64;
// The longest rows of which two blocks fit.
inline constexpr int32_t kTwoBlocksK = kMaxLayerK / 2;
// Rows are gathered in multiples of the most that a tile has.
inline constexpr int kGatherStep = 12;
static_assert(kGatherBytes >= kGatherStep * (int64_t{kMaxLayerK} + kMaxLayerK / 16 * 8));

// What tiles are given of blocks that they do not read as they lie.
struct TileMemory {
  void* scales;
  uint8_t* numbers;
};

// Calls gemm(w, rows of x, range of those rows without an index, memory for blocks).
template <class F>
WEIR_INLINE void for_adjacent_rows(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                                   void* scratch, const F& gemm) {
  auto* const bytes = static_cast<uint8_t*>(scratch);
  const TileMemory memory = {scratch, bytes + kPanelBytes};
  if (range.index == nullptr) return gemm(w, x, range, memory);
  const int32_t groups = w.k / w.group;
  const int64_t row_bytes = int64_t{w.k} + groups * 8;
  const int32_t chunk = static_cast<int32_t>(kGatherBytes / row_bytes / kGatherStep * kGatherStep);
  for (int32_t first = 0; first < range.rows; first += chunk) {
    const int32_t rows = range.rows - first < chunk ? range.rows - first : chunk;
    QuantRows gathered = x;
    gathered.q = reinterpret_cast<int8_t*>(bytes + kPanelBytes + kNumberBytes);
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
    gemm(w, gathered, part, memory);
  }
}

}  // namespace weir::kernels::avx512
