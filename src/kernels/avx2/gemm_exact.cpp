// gemm_quant_f32: a block of 16 columns is widened into a panel in the cache, which tiles of up to
// 6 rows then read; one accumulator per output, k ascending.
#include <immintrin.h>

#include "kernels/avx2/gemm.h"
#include "kernels/avx2/spread.h"
#include "kernels/avx2/widen.h"

namespace weir::kernels::avx2 {
namespace {

// 12 accumulators, 2 panel vectors and an activation fill the 16 registers.
constexpr int kTileRows = 6;
// 64 KiB of floats: it stays in L2 beside the activations.
constexpr int32_t kPanelLength = 1024;
// Parts of the scratch: the panel; what a stretch of it is made of where its block is not plain.
struct Memory {
  float panel[kPanelLength * kBlockRows];
  float scales[kPanelLength / 16][2][kBlockRows];
  uint8_t numbers[kPanelLength * kBlockRows];
};
static_assert(sizeof(Memory) <= kScratchBytes);

// Element kElement of the 8 that begin at `words`, of the 8 rows of a half block, as float.
template <int kElement, bool kWide>
WEIR_INLINE __m256 number(const uint8_t* words) {
  constexpr int kWord = kWide ? kElement % 2 : 0;
  constexpr int kShift = kWide ? 8 * (kElement / 2) : 4 * kElement;
  const __m256i line = _mm256_load_si256(reinterpret_cast<const __m256i*>(words + 64 * kWord));
  const __m256i mask = _mm256_set1_epi32(kWide ? 255 : 15);
  return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(line, kShift), mask));
}

// Widens `length` elements of a block, whose words and scales are plain, into [length][16].
template <bool kWide>
void widen_block(const uint8_t* words, const uint8_t* scales, FloatType type, int32_t group,
                 int32_t length, float* panel) {
  constexpr int kLineBytes = kWide ? 128 : 64;  // Of 8 elements.
  const int32_t half_bytes = 8 * float_bytes(type);
  for (int32_t i = 0; i < length; i += group, scales += 4 * half_bytes) {
    const __m256 scale[2] = {widen8(type, scales), widen8(type, scales + half_bytes)};
    const __m256 bias[2] = {widen8(type, scales + 2 * half_bytes),
                            widen8(type, scales + 3 * half_bytes)};
    for (int32_t j = 0; j < group; j += 8, words += kLineBytes, panel += 8 * kBlockRows) {
      repeat<8>([&](auto e) WEIR_INLINE_LAMBDA {
        repeat<2>([&](auto half) WEIR_INLINE_LAMBDA {
          const __m256 q = number<e.value, kWide>(words + 32 * half.value);
          _mm256_store_ps(panel + e.value * kBlockRows + 8 * half.value,
                          _mm256_fmadd_ps(scale[half.value], q, bias[half.value]));
        });
      });
    }
  }
}

// Widens elements [first, first + length) of the block at `column` into the panel.
void fill_panel(const QuantMatrix& w, int32_t column, int32_t first, int32_t length,
                Memory& memory) {
  const int64_t block = column / kBlockRows;
  const uint8_t* words = w.words + block * block_word_bytes(w) + int64_t{first} * 2 * w.bits;
  const uint8_t* scales = w.scales + block * block_scale_bytes(w);
  const int32_t group = first / w.group;
  if (!plain_numbers(w) || !plain_scales(w)) {
    spread_numbers(w, words, length / kPackStep, memory.numbers);
    spread_scales(w, scales, group, group + length / w.group, memory.scales);
    return widen_block<true>(memory.numbers, reinterpret_cast<const uint8_t*>(memory.scales),
                             FloatType::kF32, w.group, length, memory.panel);
  }
  scales += int64_t{group} * group_scale_bytes(w);
  if (w.bits == 8)
    widen_block<true>(words, scales, w.scale_type, w.group, length, memory.panel);
  else
    widen_block<false>(words, scales, w.scale_type, w.group, length, memory.panel);
}

struct Tile {
  const float* panel;
  int32_t length;
  const float* x[kTileRows];
  float* y;
  int64_t y_stride;
  __m256i columns[2];
  bool begins;  // Else the sums of the panels before are in y.
};

template <int kRows>
void run_tile(const Tile& tile) {
  __m256 c[2 * kRows];
  repeat<2 * kRows>([&](auto i) WEIR_INLINE_LAMBDA {
    constexpr int kHalf = i.value % 2;
    c[i.value] = tile.begins ? _mm256_setzero_ps()
                             : _mm256_maskload_ps(tile.y + i.value / 2 * tile.y_stride + 8 * kHalf,
                                                  tile.columns[kHalf]);
  });
  for (int32_t i = 0; i < tile.length; ++i) {
    const __m256 v0 = _mm256_load_ps(tile.panel + int64_t{i} * kBlockRows);
    const __m256 v1 = _mm256_load_ps(tile.panel + int64_t{i} * kBlockRows + 8);
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const __m256 x = _mm256_broadcast_ss(tile.x[m.value] + i);
      c[2 * m.value] = _mm256_fmadd_ps(v0, x, c[2 * m.value]);
      c[2 * m.value + 1] = _mm256_fmadd_ps(v1, x, c[2 * m.value + 1]);
    });
  }
  repeat<2 * kRows>([&](auto i) WEIR_INLINE_LAMBDA {
    constexpr int kHalf = i.value % 2;
    _mm256_maskstore_ps(tile.y + i.value / 2 * tile.y_stride + 8 * kHalf, tile.columns[kHalf],
                        c[i.value]);
  });
}

using Run = void (*)(const Tile&);
constexpr Run kRun[kTileRows + 1] = {nullptr,     run_tile<1>, run_tile<2>, run_tile<3>,
                                     run_tile<4>, run_tile<5>, run_tile<6>};

}  // namespace

void gemm_quant_f32(const QuantMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void* scratch) {
  Memory& memory = *static_cast<Memory*>(scratch);
  const int32_t tiles = (range.rows + kTileRows - 1) / kTileRows;
  Tile tile;
  tile.panel = memory.panel;
  tile.y_stride = range.y_stride;
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    tile.columns[0] = lanes_below(range.end - column);
    tile.columns[1] = lanes_below(range.end - column - 8);
    for (int32_t first = 0; first < w.k; first += kPanelLength) {
      tile.length = w.k - first < kPanelLength ? w.k - first : kPanelLength;
      tile.begins = first == 0;
      fill_panel(w, column, first, tile.length, memory);
      for (int32_t t = 0; t < tiles; ++t) {
        const int32_t row = static_cast<int32_t>(int64_t{range.rows} * t / tiles);
        const int32_t end = static_cast<int32_t>(int64_t{range.rows} * (t + 1) / tiles);
        for (int32_t m = row; m < end; ++m)
          tile.x[m - row] = x + (range.index != nullptr ? range.index[m] : m) * x_stride + first;
        tile.y = range.y + row * range.y_stride + column;
        kRun[end - row](tile);
      }
    }
  }
}

}  // namespace weir::kernels::avx2
