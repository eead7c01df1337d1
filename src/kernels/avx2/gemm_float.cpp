// gemm_float_f32: weights in the checkpoint's own layout and type, widened in registers. 4 weight
// rows by 2 activation rows; 8 partial sums along k, added as lanes i and i + 4, then + 2, + 1.
#include <immintrin.h>

#include "kernels/avx2/gemm.h"
#include "kernels/avx2/widen.h"

namespace weir::kernels::avx2 {
namespace {

constexpr int kTileColumns = 4;
constexpr int kTileRows = 2;

WEIR_INLINE float sum_lanes(__m256 v) {
  const __m128 a = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 b = _mm_add_ps(a, _mm_movehl_ps(a, a));
  return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

struct Tile {
  const uint8_t* weights;  // The first of the tile's weight rows.
  int64_t weight_stride;   // In bytes.
  const float* x[kTileRows];
  int32_t k;
};

template <int kColumns, int kRows, FloatType kType>
void run_tile(const Tile& tile, float* y, int64_t y_stride) {
  constexpr int kBytes = float_type_bytes(kType);
  const int32_t k = tile.k;
  __m256 c[kRows * kColumns];
  repeat<kRows * kColumns>([&](auto i) WEIR_INLINE_LAMBDA { c[i.value] = _mm256_setzero_ps(); });
  const auto weights = [&](int n, int32_t i) WEIR_INLINE_LAMBDA {
    return tile.weights + n * tile.weight_stride + int64_t{i} * kBytes;
  };
  int32_t i = 0;
  for (; i + 8 <= k; i += 8) {
    __m256 w[kColumns];
    repeat<kColumns>([&](auto n)
                         WEIR_INLINE_LAMBDA { w[n.value] = widen8<kType>(weights(n.value, i)); });
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const __m256 x = _mm256_loadu_ps(tile.x[m.value] + i);
      repeat<kColumns>([&](auto n) WEIR_INLINE_LAMBDA {
        __m256& sum = c[m.value * kColumns + n.value];
        sum = _mm256_fmadd_ps(w[n.value], x, sum);
      });
    });
  }
  if (const int32_t left = k - i; left > 0) {
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const __m256 x = _mm256_maskload_ps(tile.x[m.value] + i, lanes_below(left));
      repeat<kColumns>([&](auto n) WEIR_INLINE_LAMBDA {
        __m256& sum = c[m.value * kColumns + n.value];
        sum = _mm256_fmadd_ps(widen_some<kType>(weights(n.value, i), left), x, sum);
      });
    });
  }
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    repeat<kColumns>([&](auto n) WEIR_INLINE_LAMBDA {
      y[m.value * y_stride + n.value] = sum_lanes(c[m.value * kColumns + n.value]);
    });
  });
}

template <int kColumns, FloatType kType>
void run_columns(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                 int32_t column) {
  Tile tile;
  tile.weight_stride = int64_t{w.k} * float_type_bytes(kType);
  tile.weights = static_cast<const uint8_t*>(w.rows) + column * tile.weight_stride;
  tile.k = w.k;
  for (int32_t row = 0; row < range.rows; row += kTileRows) {
    const int32_t count = range.rows - row < kTileRows ? range.rows - row : kTileRows;
    for (int32_t m = 0; m < count; ++m)
      tile.x[m] = x + (range.index != nullptr ? range.index[row + m] : row + m) * x_stride;
    float* y = range.y + row * range.y_stride + column;
    if (count == kTileRows)
      run_tile<kColumns, kTileRows, kType>(tile, y, range.y_stride);
    else
      run_tile<kColumns, 1, kType>(tile, y, range.y_stride);
  }
}

template <FloatType kType>
void gemm(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range) {
  int32_t column = range.begin;
  for (; column + kTileColumns <= range.end; column += kTileColumns)
    run_columns<kTileColumns, kType>(w, x, x_stride, range, column);
  for (; column < range.end; ++column) run_columns<1, kType>(w, x, x_stride, range, column);
}

}  // namespace

void gemm_float_f32(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void*) {
  switch (w.type) {
    case FloatType::kF32:
      return gemm<FloatType::kF32>(w, x, x_stride, range);
    case FloatType::kF16:
      return gemm<FloatType::kF16>(w, x, x_stride, range);
    case FloatType::kBF16:
      return gemm<FloatType::kBF16>(w, x, x_stride, range);
  }
}

}  // namespace weir::kernels::avx2
