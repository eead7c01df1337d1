// gemm_quant_int8 for processors with four vector pipes of which two multiply (AMD): tiles of two
// blocks of 16 columns by 5 or 6 rows.
//
// Unpacking and the conversion of a dot to a float are free there, beside dots and multiply-adds.
// What tiles of 16 by 12 lack is loads: each of their dots reads an activation, two a cycle, which
// is all that there is, and scales come on top. Here one load serves two dots. Per group of 32 a
// tile costs 96 dots and 36 multiply-adds, so 8/11 of the dots' peak is the bound; 12 integer and
// 12 float accumulators, two lines or halves, one broadcast and the mask are 28 of 32 registers.
#include <immintrin.h>

#include "kernels/avx512/adjacent_rows.h"
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/panel.h"
#include "kernels/avx512/spread.h"
#include "kernels/simd/weight_fetch.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kTileRows = 6;

// One tile's operands. Rows of q are `q_stride` bytes apart, of scale and sum `groups` floats.
struct PairTile {
  const uint8_t* words[2];
  const uint8_t* scales[2];
  const int8_t* q;
  int64_t q_stride;
  const float* scale;
  const float* sum;
  int32_t groups;
  int32_t steps;  // Of 32 elements in a group; a group of 16 is half a step.
  float* y;
  int64_t y_stride;
  __mmask16 columns[2];
};

// acc0 and acc1 += the four products of each lane of u0 and u1 with the four bytes at `at`.
WEIR_INLINE void dot_pair(__m512i& acc0, __m512i& acc1, __m512i u0, __m512i u1, const int8_t* at) {
  int32_t bytes;
  __builtin_memcpy(&bytes, at, sizeof bytes);
  const __m512i q = _mm512_set1_epi32(bytes);
  acc0 = _mm512_dpbusd_epi32(acc0, u0, q);
  acc1 = _mm512_dpbusd_epi32(acc1, u1, q);
}

// How a tile reads the numbers of a step: nibbles, bytes, or bytes in groups of 16.
enum class Step { kNibbles, kBytes, kHalves };

template <int kRows, Step kStep, FloatType kType>
void run_pair(const PairTile& tile, OrderedFetch& next_weights) {
  constexpr int kLines = kStep == Step::kBytes ? 8 : 4;  // Of a step, or of half of it.
  constexpr int kElements = kStep == Step::kHalves ? 16 : 32;
  constexpr int64_t kScaleLine = kBlockRows * (kType == FloatType::kF32 ? 4 : 2);
  const int64_t stride = tile.q_stride;
  const int8_t* q = tile.q;
  const uint8_t *words0 = tile.words[0], *words1 = tile.words[1];
  const uint8_t *scales0 = tile.scales[0], *scales1 = tile.scales[1];
  const int32_t steps = kStep == Step::kHalves ? 1 : tile.steps;
  OrderedFetch fetch = next_weights;
  const __m512i low = _mm512_set1_epi8(15);
  __m512 c0[kRows], c1[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { c0[m] = c1[m] = _mm512_setzero_ps(); });

  for (int32_t g = 0; g < tile.groups; ++g) {
    __m512i acc0[kRows], acc1[kRows];
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { acc0[m] = acc1[m] = _mm512_setzero_si512(); });
    for (int32_t step = 0; step < steps; ++step) {
      repeat<kLines>([&](auto line) WEIR_INLINE_LAMBDA {
        if constexpr (line.value % 2 == 0) fetch.words();
        const __m512i x0 = _mm512_load_si512(words0 + 64 * line);
        const __m512i x1 = _mm512_load_si512(words1 + 64 * line);
        if constexpr (kStep != Step::kNibbles) {
          repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
            dot_pair(acc0[m], acc1[m], x0, x1, q + m * stride + 4 * line);
          });
        } else {
          const __m512i even0 = _mm512_and_si512(x0, low), even1 = _mm512_and_si512(x1, low);
          repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
            dot_pair(acc0[m], acc1[m], even0, even1, q + m * stride + 8 * line);
          });
          const __m512i odd0 = _mm512_and_si512(_mm512_srli_epi32(x0, 4), low);
          const __m512i odd1 = _mm512_and_si512(_mm512_srli_epi32(x1, 4), low);
          repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
            dot_pair(acc0[m], acc1[m], odd0, odd1, q + m * stride + 8 * line + 4);
          });
        }
      });
      words0 += 64 * kLines;
      words1 += 64 * kLines;
      q += kElements;
    }
    fetch.scales();
    fetch.scales();
    const __m512 scale0 = widen16(kType, scales0), scale1 = widen16(kType, scales1);
    const __m512 bias0 = widen16(kType, scales0 + kScaleLine);
    const __m512 bias1 = widen16(kType, scales1 + kScaleLine);
    scales0 += 2 * kScaleLine;
    scales1 += 2 * kScaleLine;
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const int64_t at = int64_t{m} * tile.groups + g;
      const __m512 scale = _mm512_set1_ps(tile.scale[at]), sum = _mm512_set1_ps(tile.sum[at]);
      const __m512 scaled0 = _mm512_mul_ps(_mm512_cvtepi32_ps(acc0[m]), scale0);
      const __m512 scaled1 = _mm512_mul_ps(_mm512_cvtepi32_ps(acc1[m]), scale1);
      c0[m] = _mm512_fmadd_ps(bias0, sum, _mm512_fmadd_ps(scaled0, scale, c0[m]));
      c1[m] = _mm512_fmadd_ps(bias1, sum, _mm512_fmadd_ps(scaled1, scale, c1[m]));
    });
  }
  const __m512 zero = _mm512_setzero_ps();
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    float* y = tile.y + m * tile.y_stride;
    _mm512_mask_storeu_ps(y, tile.columns[0], _mm512_add_ps(c0[m], zero));
    _mm512_mask_storeu_ps(y + kBlockRows, tile.columns[1], _mm512_add_ps(c1[m], zero));
  });
  next_weights = fetch;
}

using Run = void (*)(const PairTile&, OrderedFetch&);

template <Step kStep, FloatType kType>
Run run_of(int32_t rows) {
  switch (rows) {
    case kTileRows - 2:
      return run_pair<kTileRows - 2, kStep, kType>;
    case kTileRows - 1:
      return run_pair<kTileRows - 1, kStep, kType>;
    default:
      return run_pair<kTileRows, kStep, kType>;
  }
}

template <Step kStep>
Run run_of(FloatType type, int32_t rows) {
  switch (type) {
    case FloatType::kF16:
      return run_of<kStep, FloatType::kF16>(rows);
    case FloatType::kBF16:
      return run_of<kStep, FloatType::kBF16>(rows);
    default:
      return run_of<kStep, FloatType::kF32>(rows);
  }
}

// What reads numbers, plain or spread, with scales of `type`, plain or spread to floats.
Run run_of(const QuantMatrix& w, FloatType type, int32_t rows) {
  if (w.group < kPackStep) return run_of<Step::kHalves, FloatType::kF32>(rows);
  if (w.bits == 4 && plain_numbers(w)) return run_of<Step::kNibbles>(type, rows);
  return run_of<Step::kBytes>(type, rows);
}

// Up to 12 rows are one tile of a single block, which is faster (by a tenth at 12 rows), and two
// tiles of 8 are as fast as three of 5 and 6.
constexpr int32_t kPairRowsMin = 16;
// Balanced tiles of so many rows have kTileRows, one or two less: the others are not compiled.
static_assert(kPairRowsMin > 2 * kTileRows);

void gemm_pairs(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                const TileMemory& memory) {
  const int32_t blocks = (range.end - range.begin + kBlockRows - 1) / kBlockRows;
  const bool spread = !plain_numbers(w);
  // Scales of 16 are read as floats.
  const bool spread_floats = !plain_scales(w) || w.group < kPackStep;
  if (range.rows < kPairRowsMin || blocks < 2 || ((spread || spread_floats) && w.k > kTwoBlocksK))
    return gemm_columns<OrderedFetch>(w, x, range, memory);
  const int64_t word_bytes = block_word_bytes(w), scale_bytes = block_scale_bytes(w);
  const int32_t tiles = (range.rows + kTileRows - 1) / kTileRows;
  const int32_t single =
      range.end - (blocks % 2) * ((range.end - range.begin - 1) % kBlockRows + 1);
  OrderedFetch next(range.next, {.words = w.words + range.begin / kBlockRows * word_bytes,
                                 .bytes = blocks * word_bytes,
                                 .passes = spread ? tiles * 8 / w.bits : tiles,
                                 .stretch = 2 * word_bytes});
  for (int32_t column = range.begin; column < single; column += 2 * kBlockRows) {
    const int64_t block = column / kBlockRows;
    PairTile tile;
    for (int i = 0; i < 2; ++i) {
      tile.words[i] = w.words + (block + i) * word_bytes;
      tile.scales[i] = w.scales + (block + i) * scale_bytes;
      tile.columns[i] = column_mask(column + i * kBlockRows, range.end);
      if (spread) {
        uint8_t* to = memory.numbers + i * int64_t{kBlockRows} * w.k;
        spread_numbers(w, tile.words[i], w.k / kPackStep, to);
        tile.words[i] = to;
      }
      if (spread_floats) {
        const int32_t groups = w.k / w.group;
        auto* to = static_cast<float(*)[2][kBlockRows]>(memory.scales) + i * groups;
        spread_scales(w, tile.scales[i], 0, groups, to);
        tile.scales[i] = reinterpret_cast<const uint8_t*>(to);
      }
    }
    tile.q_stride = w.k;
    tile.groups = w.k / w.group;
    tile.steps = w.group / 32;
    tile.y_stride = range.y_stride;
    for (int32_t t = 0; t < tiles; ++t) {
      // Balanced: sizes differ by one at most.
      const int64_t first = int64_t{range.rows} * t / tiles;
      const int32_t count = static_cast<int32_t>(int64_t{range.rows} * (t + 1) / tiles - first);
      tile.q = x.q + first * w.k;
      tile.scale = x.scale + first * tile.groups;
      tile.sum = x.sum + first * tile.groups;
      tile.y = range.y + first * range.y_stride + column;
      run_of(w, spread_floats ? FloatType::kF32 : w.scale_type, count)(tile, next);
    }
  }
  if (single == range.end) return;
  GemmRange last = range;
  last.begin = single;
  last.next = {};
  gemm_columns<OrderedFetch>(w, x, last, memory);
}

// Rows at a time: each pair of blocks goes over them, so they stay in an L2 of 1 MiB beside the
// range's weights and results.
constexpr int64_t kChunkBytes = 256 << 10;

void gemm_in_chunks(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                    const TileMemory& memory) {
  const int32_t groups = w.k / w.group;
  const int64_t bytes = int64_t{range.rows} * (w.k + groups * 8);
  const int32_t chunks = static_cast<int32_t>((bytes + kChunkBytes - 1) / kChunkBytes);
  for (int32_t c = 0; c < chunks; ++c) {
    const int64_t first = int64_t{range.rows} * c / chunks;
    QuantRows rows = x;
    rows.q += first * w.k;
    rows.scale += first * groups;
    rows.sum += first * groups;
    GemmRange part = range;
    part.rows = static_cast<int32_t>(int64_t{range.rows} * (c + 1) / chunks - first);
    part.y += first * range.y_stride;
    gemm_pairs(w, rows, part, memory);
  }
}

}  // namespace

void gemm_quant_int8_pairs(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                           void* scratch) {
  for_adjacent_rows(w, x, range, scratch, gemm_in_chunks);
}

}  // namespace weir::kernels::avx512
