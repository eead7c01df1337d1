// gemm_float_f32: weights in the checkpoint's own layout and type, widened in registers.
//
// Both operands run along k, so lanes are partial sums: 4 weight rows by 4 activation rows keep 16
// accumulators, 8 loads for 16 multiply-adds. An output's 16 partial sums are added as lanes
// i and i + 8, then + 4, + 2, + 1, whichever tile they come from.
#include <immintrin.h>

#include "kernels/avx512/gemm.h"
#include "kernels/avx512/panel.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kTile = 4;

// The 16 weights stored at `at`.
template <FloatType kType>
WEIR_INLINE __m512 load_weights(const uint8_t* at) {
  return widen16(kType, at);
}

// The same of elements `lanes`; the others are 0 and their memory is not touched.
template <FloatType kType>
WEIR_INLINE __m512 load_weights(const uint8_t* at, __mmask16 lanes) {
  if constexpr (kType == FloatType::kF32) {
    return _mm512_maskz_loadu_ps(lanes, at);
  } else {
    const __m256i bits = _mm256_maskz_loadu_epi16(lanes, at);
    if constexpr (kType == FloatType::kF16) return _mm512_cvtph_ps(bits);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
}

WEIR_INLINE float sum_lanes(__m512 v) {
  const __m256 a = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  const __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
  const __m128 c = _mm_add_ps(b, _mm_movehl_ps(b, b));
  return _mm_cvtss_f32(_mm_add_ss(c, _mm_movehdup_ps(c)));
}

// The lanes of four vectors, each summed in the order of sum_lanes.
WEIR_INLINE __m128 sum_lanes4(__m512 a, __m512 b, __m512 c, __m512 d) {
  const auto half = [](__m512 v) WEIR_INLINE_LAMBDA {
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  };
  const auto quarter = [](__m256 v) WEIR_INLINE_LAMBDA {
    return _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  };
  const __m128 qa = quarter(half(a)), qb = quarter(half(b));
  const __m128 qc = quarter(half(c)), qd = quarter(half(d));
  // Lanes 0 + 2 and 1 + 3 of two vectors at once, then the pairs.
  const __m128 ab = _mm_add_ps(_mm_movelh_ps(qa, qb), _mm_movehl_ps(qb, qa));
  const __m128 cd = _mm_add_ps(_mm_movelh_ps(qc, qd), _mm_movehl_ps(qd, qc));
  return _mm_add_ps(_mm_shuffle_ps(ab, cd, _MM_SHUFFLE(2, 0, 2, 0)),
                    _mm_shuffle_ps(ab, cd, _MM_SHUFFLE(3, 1, 3, 1)));
}

struct Tile {
  const uint8_t* weights;  // The first of the tile's weight rows.
  int64_t weight_stride;   // In bytes.
  const float* x[kTile];
  int32_t k;
};

// The 16 elements from `i` on, or the lanes of them that there are.
template <int kColumns, int kRows, FloatType kType, class... Lanes>
WEIR_INLINE void accumulate(const Tile& tile, int32_t i, __m512* c, Lanes... lanes) {
  constexpr int kBytes = float_type_bytes(kType);
  __m512 w[kColumns];
  repeat<kColumns>([&](auto n) WEIR_INLINE_LAMBDA {
    w[n.value] = load_weights<kType>(
        tile.weights + n.value * tile.weight_stride + int64_t{i} * kBytes, lanes...);
  });
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    __m512 x;
    if constexpr (sizeof...(lanes) == 0)
      x = _mm512_loadu_ps(tile.x[m.value] + i);
    else
      x = _mm512_maskz_loadu_ps(lanes..., tile.x[m.value] + i);
    repeat<kColumns>([&](auto n) WEIR_INLINE_LAMBDA {
      __m512& sum = c[m.value * kColumns + n.value];
      sum = _mm512_fmadd_ps(w[n.value], x, sum);
    });
  });
}

template <int kColumns, int kRows, FloatType kType>
void run_tile(const Tile& tile, float* y, int64_t y_stride) {
  const int32_t k = tile.k;
  __m512 c[kRows * kColumns];
  repeat<kRows * kColumns>([&](auto i) WEIR_INLINE_LAMBDA { c[i.value] = _mm512_setzero_ps(); });
  int32_t i = 0;
  for (; i + 16 <= k; i += 16) accumulate<kColumns, kRows, kType>(tile, i, c);
  if (i < k)
    accumulate<kColumns, kRows, kType>(tile, i, c, static_cast<__mmask16>((1u << (k - i)) - 1));
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    float* out = y + m.value * y_stride;
    const __m512* sums = c + m.value * kColumns;
    if constexpr (kColumns == 4)
      _mm_storeu_ps(out, sum_lanes4(sums[0], sums[1], sums[2], sums[3]));
    else
      repeat<kColumns>([&](auto n) WEIR_INLINE_LAMBDA { out[n.value] = sum_lanes(sums[n.value]); });
  });
}

template <int kColumns, FloatType kType>
void run_columns(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                 int32_t column) {
  using Run = void (*)(const Tile&, float*, int64_t);
  static constexpr Run kRun[kTile + 1] = {
      nullptr, run_tile<kColumns, 1, kType>, run_tile<kColumns, 2, kType>,
      run_tile<kColumns, 3, kType>, run_tile<kColumns, 4, kType>};
  Tile tile;
  tile.weight_stride = int64_t{w.k} * float_type_bytes(kType);
  tile.weights = static_cast<const uint8_t*>(w.rows) + column * tile.weight_stride;
  tile.k = w.k;
  for (int32_t row = 0; row < range.rows; row += kTile) {
    const int32_t count = range.rows - row < kTile ? range.rows - row : kTile;
    for (int32_t m = 0; m < count; ++m) {
      const int64_t source = range.index != nullptr ? range.index[row + m] : row + m;
      tile.x[m] = x + source * x_stride;
    }
    kRun[count](tile, range.y + row * range.y_stride + column, range.y_stride);
  }
}

template <FloatType kType>
void gemm(const FloatMatrix& w, const float* x, int64_t x_stride, const GemmRange& range) {
  int32_t column = range.begin;
  for (; column + kTile <= range.end; column += kTile)
    run_columns<kTile, kType>(w, x, x_stride, range, column);
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

}  // namespace weir::kernels::avx512
