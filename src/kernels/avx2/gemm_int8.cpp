// gemm_quant_int8 without VNNI: half blocks of 8 columns by 1 to 4 rows.
//
// vpmaddubsw adds two products of an unsigned and a signed byte in 16 bits and saturates: 2 * 255 *
// 127 would not fit, 2 * 15 * 127 does, and so does the sum of the 8 such pairs of 32 elements,
// 30,480 (30,720 with -128, which only a row that is not finite has). So 4-bit numbers go straight
// through, and 8-bit numbers as two nibbles, the higher one weighted by 16 where the 16-bit sums
// widen to 32. Numbers that are not plain are spread to bytes first, a block at a time.
#include <immintrin.h>

#include "kernels/avx2/gemm.h"
#include "kernels/avx2/spread.h"
#include "kernels/avx2/widen.h"
#include "kernels/simd/weight_fetch.h"

namespace weir::kernels::avx2 {
namespace {

constexpr int kTileRows = 4;
constexpr int kLanes = 8;

struct Tile {
  const uint8_t* words;   // Of the half block: 32 bytes of each line.
  const uint8_t* scales;  // The same: 8 scales; the biases lie a line further.
  FloatType scale_type;
  const int8_t* q[kTileRows];
  const float* scale[kTileRows];
  const float* sum[kTileRows];
  int32_t groups;
  int32_t steps;      // Of 32 elements in a group; a group of 16 is half a step.
  bool high_nibbles;  // Of bytes: some are not 0.
  float* y;
  int64_t y_stride;
  __m256i columns;
};

WEIR_INLINE __m256i four_bytes(const int8_t* at) {
  int32_t word;
  __builtin_memcpy(&word, at, sizeof word);
  return _mm256_set1_epi32(word);
}

// How a tile reads the numbers of a step: nibbles, bytes, or bytes in groups of 16.
enum class Step { kNibbles, kBytes, kHalves };

// sums[m] += the dots of a step with one nibble of 8-bit numbers, or both nibbles of 4-bit ones,
// weighted.
template <int kRows, Step kStep, bool kHigh>
WEIR_INLINE void dot_nibbles(const uint8_t* words, const Tile& tile, int64_t first, int16_t weight,
                             __m256i* sums) {
  constexpr bool kWide = kStep != Step::kNibbles;
  const __m256i low = _mm256_set1_epi8(15);
  __m256i acc[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { acc[m.value] = _mm256_setzero_si256(); });
  const auto add = [&](__m256i numbers, int32_t offset) WEIR_INLINE_LAMBDA {
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const __m256i a = four_bytes(tile.q[m.value] + first + offset);
      const __m256i products = _mm256_maddubs_epi16(numbers, a);
      __m256i& sum = acc[m.value];
      // Assembly, or g++ adds the products as a tree and spills its leaves.
      asm("vpaddw %1, %0, %0" : "+x"(sum) : "x"(products));
    });
  };
  repeat<kStep == Step::kBytes ? 8 : 4>([&](auto line) WEIR_INLINE_LAMBDA {
    const __m256i x = _mm256_load_si256(reinterpret_cast<const __m256i*>(words + 64 * line.value));
    if constexpr (!kWide || !kHigh) add(_mm256_and_si256(x, low), (kWide ? 4 : 8) * line.value);
    if constexpr (!kWide || kHigh)
      add(_mm256_and_si256(_mm256_srli_epi16(x, 4), low),
          kWide ? 4 * line.value : 8 * line.value + 4);
  });
  const __m256i weights = _mm256_set1_epi16(weight);
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    sums[m.value] = _mm256_add_epi32(sums[m.value], _mm256_madd_epi16(acc[m.value], weights));
  });
}

template <int kRows, Step kStep, class Fetch>
void run_tile(const Tile& tile, Fetch& next_weights) {
  constexpr int kStepBytes = kStep == Step::kBytes ? 512 : 256;
  constexpr int kElements = kStep == Step::kHalves ? 16 : 32;
  const int32_t steps = kStep == Step::kHalves ? 1 : tile.steps;
  const int32_t scale_line = kBlockRows * float_bytes(tile.scale_type);
  const uint8_t* words = tile.words;
  const uint8_t* scales = tile.scales;
  Fetch fetch = next_weights;
  int64_t first = 0;
  __m256 c[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { c[m.value] = _mm256_setzero_ps(); });
  for (int32_t g = 0; g < tile.groups; ++g, scales += 2 * scale_line) {
    __m256i sums[kRows];
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { sums[m.value] = _mm256_setzero_si256(); });
    for (int32_t step = 0; step < steps; ++step, first += kElements, words += kStepBytes) {
      repeat<kStepBytes / kFetchStep>([&](auto) WEIR_INLINE_LAMBDA { fetch.words(); });
      dot_nibbles<kRows, kStep, false>(words, tile, first, 1, sums);
      if constexpr (kStep != Step::kNibbles) {
        if (tile.high_nibbles) dot_nibbles<kRows, kStep, true>(words, tile, first, 16, sums);
      }
    }
    fetch.scales();
    const __m256 scale = widen8(tile.scale_type, scales);
    const __m256 bias = widen8(tile.scale_type, scales + scale_line);
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums[m.value]), scale);
      c[m.value] =
          _mm256_fmadd_ps(scaled, _mm256_broadcast_ss(tile.scale[m.value] + g), c[m.value]);
      c[m.value] = _mm256_fmadd_ps(bias, _mm256_broadcast_ss(tile.sum[m.value] + g), c[m.value]);
    });
  }
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    _mm256_maskstore_ps(tile.y + m.value * tile.y_stride, tile.columns,
                        _mm256_add_ps(c[m.value], _mm256_setzero_ps()));
  });
  next_weights = fetch;
}

template <class Fetch>
using Run = void (*)(const Tile&, Fetch&);
template <Step kStep, class F>
constexpr Run<F> kRun[kTileRows + 1] = {nullptr, run_tile<1, kStep, F>, run_tile<2, kStep, F>,
                                        run_tile<3, kStep, F>, run_tile<4, kStep, F>};

// Parts of the scratch: a block's scales as floats, and its numbers as bytes.
constexpr int64_t kNumbersAt = int64_t{kMaxLayerK} / 16 * 2 * 4 * kBlockRows;
static_assert(kNumbersAt + int64_t{kMaxLayerK} * kBlockRows <= kScratchBytes);

template <class Fetch>
void gemm(const QuantMatrix& w, const QuantRows& x, const GemmRange& range, void* scratch) {
  const int32_t tiles = (range.rows + kTileRows - 1) / kTileRows;
  const bool spread = !plain_numbers(w), spread_floats = !plain_scales(w);
  auto* const floats = static_cast<float(*)[2][kBlockRows]>(scratch);
  auto* const numbers = static_cast<uint8_t*>(scratch) + kNumbersAt;
  Tile tile;
  tile.scale_type = spread_floats ? FloatType::kF32 : w.scale_type;
  tile.groups = w.k / w.group;
  tile.steps = w.group / kPackStep;
  tile.high_nibbles = w.bits > 4 || w.grid != Grid::kUniform;
  const Run<Fetch>* run = kRun<Step::kNibbles, Fetch>;
  if (w.group < kPackStep)
    run = kRun<Step::kHalves, Fetch>;
  else if (spread || w.bits == 8)
    run = kRun<Step::kBytes, Fetch>;
  tile.y_stride = range.y_stride;
  // The second half of a block finds its lines in the cache, and fetches none; so do later tiles.
  const int32_t blocks = (range.end - range.begin + kBlockRows - 1) / kBlockRows;
  Fetch none;
  Fetch next(range.next, {.words = w.words + range.begin / kBlockRows * block_word_bytes(w),
                          .bytes = blocks * block_word_bytes(w),
                          .passes = spread ? 8 / w.bits : 1});
  for (int32_t column = range.begin; column < range.end; column += kLanes) {
    const int64_t block = column / kBlockRows;
    const int32_t lane = column % kBlockRows;
    tile.words = w.words + block * block_word_bytes(w);
    tile.scales = w.scales + block * block_scale_bytes(w);
    if (spread) {
      if (lane == 0) spread_numbers(w, tile.words, w.k / kPackStep, numbers);
      tile.words = numbers;
    }
    if (spread_floats) {
      if (lane == 0) spread_scales(w, tile.scales, 0, tile.groups, floats);
      tile.scales = static_cast<const uint8_t*>(scratch);
    }
    tile.words += 4 * lane;
    tile.scales += lane * float_bytes(tile.scale_type);
    tile.columns = lanes_below(range.end - column);
    for (int32_t t = 0; t < tiles; ++t) {
      const int32_t first = static_cast<int32_t>(int64_t{range.rows} * t / tiles);
      const int32_t end = static_cast<int32_t>(int64_t{range.rows} * (t + 1) / tiles);
      for (int32_t m = first; m < end; ++m) {
        const int64_t row = range.index != nullptr ? range.index[m] : m;
        tile.q[m - first] = x.q + row * w.k;
        tile.scale[m - first] = x.scale + row * tile.groups;
        tile.sum[m - first] = x.sum + row * tile.groups;
      }
      tile.y = range.y + first * range.y_stride + column;
      run[end - first](tile, t == 0 && lane == 0 ? next : none);
    }
  }
}

}  // namespace

void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                     void* scratch) {
  gemm<PageFetch>(w, x, range, scratch);
}

void gemm_quant_int8_in_order(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                              void* scratch) {
  gemm<OrderedFetch>(w, x, range, scratch);
}

}  // namespace weir::kernels::avx2
