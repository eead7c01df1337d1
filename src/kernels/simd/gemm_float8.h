// gemm_float8_f32: float8 weights and float32 activations, of vectors whose lanes are columns of
// the result. So a block of 16 columns is one stream of bytes, activations are broadcast, and no
// sum crosses lanes.
//
// Few rows: tiles widen the numbers in registers, and wait for memory. More rows: a stretch of some
// blocks is widened once, into a panel in the cache that all tiles of rows read. Sums of a stretch
// that do not fit the registers are taken in another sweep over it.
#pragma once

#include <cstdint>

#include "kernels/float8_layout.h"
#include "kernels/ops.h"
#include "kernels/simd/weight_fetch.h"
#include "kernels/unroll.h"

namespace weir::kernels::simd {

inline constexpr int kFloat8Sums = 4;
// Vectors of a column of a block.
template <class V>
inline constexpr int kColumnVecs = kBlockRows / V::kLanes;

WEIR_INLINE const float* activation_row(const float* x, int64_t x_stride, const GemmRange& range,
                                        int64_t m) {
  return x + (range.index != nullptr ? range.index[m] : m) * x_stride;
}

// The first lanes of `y`, where only `count` are the range's.
template <class V>
WEIR_INLINE typename V::Float load_columns(const float* y, int32_t count) {
  if (count >= V::kLanes) return V::load(y);
  return V::load(y, V::first(count));
}
template <class V>
WEIR_INLINE void store_columns(float* y, typename V::Float value, int32_t count) {
  if (count >= V::kLanes)
    V::store(y, value);
  else if (count > 0)
    V::store(y, value, V::first(count));
}

// Two columns of a block, each as kColumnVecs vectors.
template <class V>
WEIR_INLINE void load_two_columns(const uint8_t* numbers, typename V::Float* out) {
  repeat<kColumnVecs<V>>([&](auto v) WEIR_INLINE_LAMBDA {
    V::load_float8(numbers + 2 * V::kLanes * v.value, out[2 * v.value], out[2 * v.value + 1]);
  });
}

// What the sums of a stretch are multiplied by, of a block.
template <class V>
WEIR_INLINE void load_scales(const Float8Matrix& w, const float* scales, int32_t scale,
                             typename V::Float* out) {
  const typename V::Float unit = V::broadcast(kFloat8Unit);
  scales += scale * scale_lanes(w);
  repeat<kColumnVecs<V>>([&](auto v) WEIR_INLINE_LAMBDA {
    out[v.value] =
        (w.row_scales ? V::load(scales + v.value * V::kLanes) : V::broadcast(*scales)) * unit;
  });
}

// --- Few rows.

template <class V>
struct Float8Tile {
  const uint8_t* numbers;  // Of the block.
  const float* scales;
  const float* x[V::kFloat8Rows];
  float* y;  // Of the first row and the block's first column.
  int64_t y_stride;
  int32_t columns;  // From there on that the range has.
};

template <class V, int kRows, class Fetch>
void run_float8_tile(const Float8Matrix& w, const Float8Tile<V>& tile, Fetch& next_weights) {
  using Float = typename V::Float;
  constexpr int kVecs = kColumnVecs<V>, kOutputs = kRows * kVecs;
  constexpr int kFetchColumns = kFetchStep / kBlockRows;
  // Where registers do not hold all sums, a second sweep takes the third and fourth of them.
  constexpr int kSweeps = kFloat8Sums * kOutputs > V::kFloat8Accumulators ? 2 : 1;
  constexpr int kAtOnce = kFloat8Sums / kSweeps;
  const uint8_t* numbers = tile.numbers;
  Fetch fetch = next_weights;
  Float c[kOutputs];
  repeat<kOutputs>([&](auto o) WEIR_INLINE_LAMBDA { c[o.value] = V::zero(); });
  for (int32_t begin = 0; begin < w.k;) {
    const Float8Stretch stretch = float8_stretch(w, begin);
    Float total[kOutputs];
    repeat<kSweeps>([&](auto sweep) WEIR_INLINE_LAMBDA {
      Float s[kAtOnce * kOutputs];
      repeat<kAtOnce * kOutputs>([&](auto i) WEIR_INLINE_LAMBDA { s[i.value] = V::zero(); });
      const uint8_t* from = numbers;
      for (int64_t i = begin; i < stretch.end; i += kFetchColumns, from += kFetchStep) {
        if constexpr (sweep.value == 0) fetch.words();
        repeat<kFetchColumns / 2 / kSweeps>([&](auto two) WEIR_INLINE_LAMBDA {
          constexpr int kFirst = 2 * (two.value * kSweeps + sweep.value);
          Float weights[2 * kVecs];
          load_two_columns<V>(from + kFirst * kBlockRows, weights);
          repeat<2 * kRows>([&](auto n) WEIR_INLINE_LAMBDA {
            constexpr int kColumn = kFirst + n.value / kRows, kRow = n.value % kRows;
            const Float x = V::broadcast(tile.x[kRow][i + kColumn]);
            repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
              Float& sum = s[kColumn % kAtOnce * kOutputs + kRow * kVecs + v.value];
              sum = V::fma(weights[n.value / kRows * kVecs + v.value], x, sum);
            });
          });
        });
      }
      repeat<kOutputs>([&](auto o) WEIR_INLINE_LAMBDA {
        total[o.value] = sweep.value == 0 ? s[o.value] : total[o.value] + s[o.value];
        repeat<kAtOnce - 1>([&](auto p) WEIR_INLINE_LAMBDA {
          total[o.value] = total[o.value] + s[(p.value + 1) * kOutputs + o.value];
        });
      });
    });
    numbers += int64_t{stretch.end - begin} * kBlockRows;
    fetch.scales();
    Float scale[kVecs];
    load_scales<V>(w, tile.scales, stretch.scale, scale);
    repeat<kOutputs>([&](auto o) WEIR_INLINE_LAMBDA {
      c[o.value] = V::fma(total[o.value], scale[o.value % kVecs], c[o.value]);
    });
    begin = stretch.end;
  }
  repeat<kOutputs>([&](auto o) WEIR_INLINE_LAMBDA {
    constexpr int kFirst = o.value % kVecs * V::kLanes;
    store_columns<V>(tile.y + o.value / kVecs * tile.y_stride + kFirst, c[o.value],
                     tile.columns - kFirst);
  });
  next_weights = fetch;
}

template <class V, int kRows, class Fetch>
void run_float8_rows(int32_t rows, const Float8Matrix& w, const Float8Tile<V>& tile, Fetch& next) {
  if (rows == kRows) return run_float8_tile<V, kRows>(w, tile, next);
  if constexpr (kRows > 1) run_float8_rows<V, kRows - 1>(rows, w, tile, next);
}

template <class V, class Fetch>
void multiply_few(const Float8Matrix& w, const float* x, int64_t x_stride, const GemmRange& range) {
  const int64_t number_bytes = block_number_bytes(w);
  const int32_t tiles = (range.rows + V::kFloat8Rows - 1) / V::kFloat8Rows;
  const int64_t first_block = range.begin / kBlockRows;
  const int64_t blocks = (range.end + kBlockRows - 1) / kBlockRows - first_block;
  Fetch none;
  Fetch next(range.next, {.words = w.numbers + first_block * number_bytes,
                          .bytes = blocks * number_bytes,
                          .passes = tiles,
                          .stretch = number_bytes});
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    const int64_t block = column / kBlockRows;
    Float8Tile<V> tile;
    tile.numbers = w.numbers + block * number_bytes;
    tile.scales = w.scales + block * block_scales(w);
    tile.y_stride = range.y_stride;
    tile.columns = range.end - column;
    for (int32_t t = 0; t < tiles; ++t) {
      // Balanced: sizes differ by one at most.
      const int64_t first = int64_t{range.rows} * t / tiles;
      const auto rows = static_cast<int32_t>(int64_t{range.rows} * (t + 1) / tiles - first);
      for (int32_t m = 0; m < rows; ++m) tile.x[m] = activation_row(x, x_stride, range, first + m);
      tile.y = range.y + first * range.y_stride + column;
      Fetch& fetch = t == 0 || Fetch::kEveryPass ? next : none;
      run_float8_rows<V, V::kFloat8Rows>(rows, w, tile, fetch);
    }
  }
}

// --- Many rows.

// 12 accumulators hide the latency of their additions and leave registers for as many totals.
inline constexpr int kPanelRows = 6;
inline constexpr int kPanelVecs = 2;
// Widened, 128 columns are 64 KiB: they stay in L2 beside what 512 rows have in the stretch.
inline constexpr int kPanelBlocks = 8;

// One stretch of some blocks, as vectors of columns.
template <class V>
struct Float8Panel {
  static constexpr int kVecs = kPanelBlocks * kColumnVecs<V>;
  float numbers[kVecs][kFloat8Stretch][V::kLanes];
  float scales[kVecs][V::kLanes];
};

// Widens a block's columns [begin, stretch.end) into vectors [vec, vec + kColumnVecs) of the panel.
template <class V>
void fill_panel(const Float8Matrix& w, int64_t block, int32_t begin, const Float8Stretch& stretch,
                int32_t vec, Float8Panel<V>& panel) {
  using Float = typename V::Float;
  constexpr int kVecs = kColumnVecs<V>, kLineColumns = 64 / kBlockRows;
  const int64_t bytes = int64_t{stretch.end - begin} * kBlockRows;
  const uint8_t* from = w.numbers + block * block_number_bytes(w) + int64_t{begin} * kBlockRows;
  for (int32_t i = 0; i < stretch.end - begin; i += kLineColumns, from += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(from + bytes), _MM_HINT_T0);  // The next stretch.
    repeat<kLineColumns / 2>([&](auto two) WEIR_INLINE_LAMBDA {
      Float weights[2 * kVecs];
      load_two_columns<V>(from + 2 * two.value * kBlockRows, weights);
      repeat<2 * kVecs>([&](auto j) WEIR_INLINE_LAMBDA {
        constexpr int kColumn = 2 * two.value + j.value / kVecs;
        V::store(panel.numbers[vec + j.value % kVecs][i + kColumn], weights[j.value]);
      });
    });
  }
  Float scale[kVecs];
  load_scales<V>(w, w.scales + block * block_scales(w), stretch.scale, scale);
  repeat<kVecs>([&](auto v)
                    WEIR_INLINE_LAMBDA { V::store(panel.scales[vec + v.value], scale[v.value]); });
}

// A few rows by kVecs vectors of the panel, from `vec` on.
template <class V>
struct Float8PanelTile {
  const Float8Panel<V>* panel;
  int32_t vec;
  int32_t length;              // Of the stretch, a multiple of 32.
  const float* x[kPanelRows];  // From the stretch's first column on.
  float* y;                    // Of the first row and the first vector's first column.
  int64_t y_stride;
  int32_t columns;  // From there on that the range has.
  bool begins;      // Else the sums of the stretches before are in y.
};

template <class V, int kRows, int kVecs>
void run_panel_tile(const Float8PanelTile<V>& tile) {
  using Float = typename V::Float;
  constexpr int kUnrolled = 4, kOutputs = kRows * kVecs;
  Float total[kOutputs];
  repeat<kFloat8Sums>([&](auto p) WEIR_INLINE_LAMBDA {
    Float s[kOutputs];
    repeat<kOutputs>([&](auto o) WEIR_INLINE_LAMBDA { s[o.value] = V::zero(); });
    for (int64_t i = p.value; i < tile.length; i += kUnrolled * kFloat8Sums) {
      repeat<kUnrolled>([&](auto u) WEIR_INLINE_LAMBDA {
        const int64_t column = i + u.value * kFloat8Sums;
        Float weights[kVecs];
        repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
          weights[v.value] = V::load(tile.panel->numbers[tile.vec + v.value][column]);
        });
        repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
          const Float x = V::broadcast(tile.x[m.value][column]);
          repeat<kVecs>([&](auto v) WEIR_INLINE_LAMBDA {
            Float& sum = s[m.value * kVecs + v.value];
            sum = V::fma(weights[v.value], x, sum);
          });
        });
      });
    }
    repeat<kOutputs>([&](auto o) WEIR_INLINE_LAMBDA {
      total[o.value] = p.value == 0 ? s[o.value] : total[o.value] + s[o.value];
    });
  });
  repeat<kOutputs>([&](auto o) WEIR_INLINE_LAMBDA {
    constexpr int kVec = o.value % kVecs;
    float* y = tile.y + o.value / kVecs * tile.y_stride + kVec * V::kLanes;
    const int32_t columns = tile.columns - kVec * V::kLanes;
    const Float c = tile.begins ? V::zero() : load_columns<V>(y, columns);
    store_columns<V>(y, V::fma(total[o.value], V::load(tile.panel->scales[tile.vec + kVec]), c),
                     columns);
  });
}

template <class V, int kRows>
void run_panel_rows(int32_t rows, bool pair, const Float8PanelTile<V>& tile) {
  if (rows == kRows)
    return pair ? run_panel_tile<V, kRows, kPanelVecs>(tile) : run_panel_tile<V, kRows, 1>(tile);
  if constexpr (kRows > 1) run_panel_rows<V, kRows - 1>(rows, pair, tile);
}

// All rows by the columns of the panel, `column` being its first.
template <class V>
void multiply_panel(const Float8Panel<V>& panel, int32_t column, int32_t begin, int32_t length,
                    const float* x, int64_t x_stride, const GemmRange& range) {
  const int32_t tiles = (range.rows + kPanelRows - 1) / kPanelRows;
  const int32_t end = column + kPanelBlocks * kBlockRows < range.end
                          ? column + kPanelBlocks * kBlockRows
                          : range.end;
  const int32_t vecs = (end - column + V::kLanes - 1) / V::kLanes;
  Float8PanelTile<V> tile;
  tile.panel = &panel;
  tile.length = length;
  tile.y_stride = range.y_stride;
  tile.begins = begin == 0;
  for (int32_t vec = 0; vec < vecs; vec += kPanelVecs) {
    tile.vec = vec;
    tile.columns = end - column - vec * V::kLanes;
    for (int32_t t = 0; t < tiles; ++t) {
      const int64_t first = int64_t{range.rows} * t / tiles;
      const auto rows = static_cast<int32_t>(int64_t{range.rows} * (t + 1) / tiles - first);
      for (int32_t m = 0; m < rows; ++m)
        tile.x[m] = activation_row(x, x_stride, range, first + m) + begin;
      tile.y = range.y + first * range.y_stride + column + vec * V::kLanes;
      run_panel_rows<V, kPanelRows>(rows, vec + 1 < vecs, tile);
    }
  }
}

template <class V>
void multiply_many(const Float8Matrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                   Float8Panel<V>& panel) {
  static_assert(sizeof(Float8Panel<V>) <= kScratchBytes);
  for (int32_t column = range.begin; column < range.end; column += kPanelBlocks * kBlockRows) {
    for (int32_t begin = 0; begin < w.k;) {
      const Float8Stretch stretch = float8_stretch(w, begin);
      for (int32_t b = 0; b < kPanelBlocks && column + b * kBlockRows < range.end; ++b)
        fill_panel<V>(w, column / kBlockRows + b, begin, stretch, b * kColumnVecs<V>, panel);
      multiply_panel<V>(panel, column, begin, stretch.end - begin, x, x_stride, range);
      begin = stretch.end;
    }
  }
}

template <class V, class Fetch>
void gemm_float8_f32(const Float8Matrix& w, const float* x, int64_t x_stride,
                     const GemmRange& range, void* scratch) {
  if (range.rows >= V::kFloat8PanelRows)
    multiply_many<V>(w, x, x_stride, range, *static_cast<Float8Panel<V>*>(scratch));
  else if (range.rows > 0)
    multiply_few<V, Fetch>(w, x, x_stride, range);
}

}  // namespace weir::kernels::simd
