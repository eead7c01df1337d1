// Products of pairs by vdpbf16ps. A block of 32 columns is laid out as a panel first, pairs of k by
// columns, which then meets all rows, 12 at a time: 24 sums in registers, for which each pair of k
// takes two loads of the panel and twelve pairs of x, broadcast. That keeps two products a cycle
// busy, and laying out costs as much as 6 rows.
#include "kernels/pair_ops.h"

// g++ 12 warns of the undefined vectors within its own intrinsics (GCC bug 105593).
#if !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif

#include "kernels/avx512bf16/transpose.h"
#include "kernels/avx512bf16/vector_product.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512bf16 {
namespace {

constexpr int kLanes = 16;
constexpr int kVectors = 2;  // Of columns in a panel.
constexpr int kColumns = kLanes * kVectors;
constexpr int kRows = 12;
static_assert(int64_t{kMaxLayerK} * kColumns * 2 <= kScratchBytes, "a panel fits the scratch");

// Sixteen pairs of a weight's row from element `i` on; beyond k zeros.
template <FloatType kType>
WEIR_INLINE __m512i load_pairs(const uint16_t* row, int32_t i, int32_t k) {
  const int32_t left = k - i;
  const __mmask32 lanes = left >= 32 ? ~__mmask32{0} : (__mmask32{1} << left) - 1;
  const __m512i bits = _mm512_maskz_loadu_epi16(lanes, row + i);
  if constexpr (kType == FloatType::kBF16) return bits;
  const __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(bits));
  const __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(bits, 1));
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// Columns [column, column + count) as [pairs of k][32 columns][2]; further columns are zeros.
template <FloatType kType>
void lay_out(const FloatMatrix& w, int32_t column, int32_t count, uint16_t* panel) {
  const auto* rows = static_cast<const uint16_t*>(w.rows) + int64_t{column} * w.k;
  for (int32_t i = 0; i < w.k; i += kPairStep)
    for (int32_t b = 0; b < kVectors; ++b) {
      __m512i v[kLanes];
      repeat<kLanes>([&](auto c) WEIR_INLINE_LAMBDA {
        const int32_t at = b * kLanes + c;
        v[c] = at < count ? load_pairs<kType>(rows + int64_t{at} * w.k, i, w.k)
                          : _mm512_setzero_si512();
      });
      transpose16(v);
      uint16_t* to = panel + int64_t{i} * kColumns + b * 2 * kLanes;
      repeat<kLanes>([&](auto p)
                         WEIR_INLINE_LAMBDA { _mm512_store_si512(to + p * 2 * kColumns, v[p]); });
    }
}

struct Tile {
  const uint16_t* panel;
  int32_t pairs;
  const uint16_t* x[kRows];
  float* y[kRows];
  __mmask16 columns[kVectors];
};

template <int kUsed>
void run_tile(const Tile& tile) {
  __m512 sums[kUsed][kVectors];
  repeat<kUsed>([&](auto m) WEIR_INLINE_LAMBDA {
    repeat<kVectors>([&](auto b) WEIR_INLINE_LAMBDA { sums[m][b] = _mm512_setzero_ps(); });
  });
  const uint16_t* panel = tile.panel;
  for (int64_t pair = 0; pair < tile.pairs; ++pair, panel += 2 * kColumns) {
    __m512bh columns[kVectors];
    repeat<kVectors>([&](auto b) WEIR_INLINE_LAMBDA {
      columns[b] = as_bf16(_mm512_load_si512(panel + b * 2 * kLanes));
    });
    repeat<kUsed>([&](auto m) WEIR_INLINE_LAMBDA {
      int32_t two;
      __builtin_memcpy(&two, tile.x[m] + 2 * pair, sizeof two);
      const __m512bh both = as_bf16(_mm512_set1_epi32(two));
      repeat<kVectors>([&](auto b) WEIR_INLINE_LAMBDA {
        sums[m][b] = _mm512_dpbf16_ps(sums[m][b], columns[b], both);
      });
    });
  }
  repeat<kUsed>([&](auto m) WEIR_INLINE_LAMBDA {
    repeat<kVectors>([&](auto b) WEIR_INLINE_LAMBDA {
      _mm512_mask_storeu_ps(tile.y[m] + b * kLanes, tile.columns[b], sums[m][b]);
    });
  });
}

void gemm(const FloatMatrix& w, const PairRows& x, const GemmRange& range, void* scratch) {
  using Run = void (*)(const Tile&);
  static constexpr Run kRun[kRows + 1] = {
      nullptr,     run_tile<1>, run_tile<2>, run_tile<3>,  run_tile<4>,  run_tile<5>, run_tile<6>,
      run_tile<7>, run_tile<8>, run_tile<9>, run_tile<10>, run_tile<11>, run_tile<12>};
  auto* panel = static_cast<uint16_t*>(scratch);
  Tile tile;
  tile.panel = panel;
  tile.pairs = (w.k + 1) / 2;
  for (int32_t column = range.begin; column < range.end; column += kColumns) {
    const int32_t left = range.end - column, count = left < kColumns ? left : kColumns;
    w.type == FloatType::kBF16 ? lay_out<FloatType::kBF16>(w, column, count, panel)
                               : lay_out<FloatType::kF16>(w, column, count, panel);
    for (int b = 0; b < kVectors; ++b) {
      const int32_t used = count - b * kLanes;
      tile.columns[b] = static_cast<__mmask16>(used >= kLanes ? 0xffff
                                               : used <= 0    ? 0
                                                              : (1 << used) - 1);
    }
    for (int32_t row = 0; row < range.rows; row += kRows) {
      const int32_t used = range.rows - row < kRows ? range.rows - row : kRows;
      for (int32_t m = 0; m < used; ++m) {
        const int64_t source = range.index != nullptr ? range.index[row + m] : row + m;
        tile.x[m] = x.x + source * x.stride;
        tile.y[m] = range.y + (row + m) * range.y_stride + column;
      }
      kRun[used](tile);
    }
  }
}

void round(const float* x, int64_t x_stride, int32_t rows, PairRows out) {
  for (int32_t m = 0; m < rows; ++m, x += x_stride) {
    uint16_t* to = out.x + m * out.stride;
    for (int32_t i = 0; i < out.k; i += kPairStep) {
      const int32_t left = out.k - i;
      const uint32_t lanes = left >= 32 ? ~uint32_t{0} : (uint32_t{1} << left) - 1;
      const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes), x + i);
      const __m512 high =
          _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes >> 16), x + i + kLanes);
      _mm512_store_si512(to + i, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
    }
  }
}

}  // namespace

void fill_pairs(PairOps& ops) {
  ops.fast = true;
  ops.round = round;
  ops.gemm = gemm;
}

}  // namespace weir::kernels::avx512bf16
