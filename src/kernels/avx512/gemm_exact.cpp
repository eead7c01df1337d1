// gemm_quant_f32: quantised weights, exact float32 activations. One accumulator per output, k
// ascending, so the only freedom is how many outputs run side by side.
//
// Few rows: 4 blocks of 16 columns at once, weights widened in registers. More rows: a block is
// widened into a panel in the cache, which all row tiles then read.
#include <immintrin.h>

#include "kernels/avx512/gemm.h"
#include "kernels/avx512/panel.h"
#include "kernels/avx512/spread.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kDirectRows = 4;
constexpr int kDirectBlocks = 4;
constexpr int kTileRows = 12;
// A panel of this many elements of 16 rows is 64 KiB: it stays in L2 beside the activations.
constexpr int32_t kPanelLength = 1024;
constexpr int64_t kPanelBytes = int64_t{kPanelLength} * kBlockRows * 4;
// Parts of the scratch: the panel; what a stretch of it is made of where its block is not plain;
// gathered rows.
struct Spread {
  float scales[kPanelLength / 16][2][kBlockRows];
  uint8_t numbers[kPanelLength * kBlockRows];
};
constexpr int64_t kGatheredAt = kPanelBytes + int64_t{sizeof(Spread)};
constexpr int64_t kGatherBytes = kScratchBytes - kGatheredAt;
static_assert(kGatherBytes >= int64_t{kTileRows} * kMaxLayerK * 4);

struct Rows {
  const float* x;
  int64_t stride;
  int32_t count;
};

// Where one block's numbers lie.
struct Block {
  const uint8_t* words;
  const uint8_t* scales;
};

Block block_at(const QuantMatrix& w, int32_t column) {
  const int64_t block = column / kBlockRows;
  return {w.words + block * block_word_bytes(w), w.scales + block * block_scale_bytes(w)};
}

// Element kElement of the 8 that begin at `words`, of 16 rows, as float.
template <int kElement, bool kWide>
WEIR_INLINE __m512 number(const uint8_t* words) {
  constexpr int kWord = kWide ? kElement % 2 : 0;
  constexpr int kShift = kWide ? 8 * (kElement / 2) : 4 * kElement;
  const __m512i line = _mm512_load_si512(words + 64 * kWord);
  const __m512i mask = _mm512_set1_epi32(kWide ? 255 : 15);
  return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(line, kShift), mask));
}

template <int kRows, int kBlocks, bool kWide>
void run_direct(const QuantMatrix& w, const Rows& rows, const GemmRange& range, int32_t column,
                float* y) {
  constexpr int kLineBytes = kWide ? 128 : 64;  // Of 8 elements.
  const int32_t scale_line = kBlockRows * float_bytes(w.scale_type);
  const int64_t next_words = block_word_bytes(w), next_scales = block_scale_bytes(w);
  Block block = block_at(w, column);
  __m512 c[kRows * kBlocks];
  repeat<kRows * kBlocks>([&](auto i) WEIR_INLINE_LAMBDA { c[i.value] = _mm512_setzero_ps(); });
  for (int32_t first = 0; first < w.k; first += w.group) {
    __m512 scale[kBlocks], bias[kBlocks];
    repeat<kBlocks>([&](auto b) WEIR_INLINE_LAMBDA {
      const uint8_t* at = block.scales + b.value * next_scales;
      scale[b.value] = widen16(w.scale_type, at);
      bias[b.value] = widen16(w.scale_type, at + scale_line);
    });
    block.scales += 2 * scale_line;
    for (int32_t i = first; i < first + w.group; i += 8, block.words += kLineBytes) {
      repeat<8>([&](auto e) WEIR_INLINE_LAMBDA {
        repeat<kBlocks>([&](auto b) WEIR_INLINE_LAMBDA {
          const __m512 q = number<e.value, kWide>(block.words + b.value * next_words);
          const __m512 v = _mm512_fmadd_ps(scale[b.value], q, bias[b.value]);
          repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
            const float x = rows.x[m.value * rows.stride + i + e.value];
            __m512& sum = c[m.value * kBlocks + b.value];
            sum = _mm512_fmadd_ps(v, _mm512_set1_ps(x), sum);
          });
        });
      });
    }
  }
  repeat<kRows * kBlocks>([&](auto i) WEIR_INLINE_LAMBDA {
    const int32_t at = column + i.value % kBlocks * kBlockRows;
    _mm512_mask_storeu_ps(y + i.value / kBlocks * range.y_stride + at, column_mask(at, range.end),
                          c[i.value]);
  });
}

template <int kRows, bool kWide>
void direct(const QuantMatrix& w, const Rows& rows, const GemmRange& range, float* y) {
  int32_t column = range.begin;
  for (; range.end - column > (kDirectBlocks - 1) * kBlockRows;
       column += kDirectBlocks * kBlockRows)
    run_direct<kRows, kDirectBlocks, kWide>(w, rows, range, column, y);
  for (; column < range.end; column += kBlockRows)
    run_direct<kRows, 1, kWide>(w, rows, range, column, y);
}

// Widens elements [first, first + length) of a block into [length][16].
template <bool kWide>
void fill_panel(const QuantMatrix& w, const Block& block, int32_t first, int32_t length,
                float* panel) {
  constexpr int kLineBytes = kWide ? 128 : 64;
  const int32_t scale_line = kBlockRows * float_bytes(w.scale_type);
  const uint8_t* words = block.words + int64_t{first} / 8 * kLineBytes;
  for (int32_t i = first; i < first + length; i += w.group) {
    const uint8_t* at = block.scales + int64_t{i / w.group} * 2 * scale_line;
    const __m512 scale = widen16(w.scale_type, at);
    const __m512 bias = widen16(w.scale_type, at + scale_line);
    for (int32_t j = 0; j < w.group; j += 8, words += kLineBytes, panel += 8 * kBlockRows) {
      repeat<8>([&](auto e) WEIR_INLINE_LAMBDA {
        _mm512_store_ps(panel + e.value * kBlockRows,
                        _mm512_fmadd_ps(scale, number<e.value, kWide>(words), bias));
      });
    }
  }
}

// The same of a block of any form.
void fill_panel(const QuantMatrix& w, const Block& block, int32_t first, int32_t length,
                float* panel) {
  if (!plain_numbers(w) || !plain_scales(w)) {
    auto* spread = reinterpret_cast<Spread*>(panel + kPanelBytes / 4);
    const uint8_t* words = block.words + int64_t{first} / kPackStep * 64 * w.bits;
    spread_numbers(w, words, length / kPackStep, spread->numbers);
    spread_scales(w, block.scales, first / w.group, (first + length) / w.group, spread->scales);
    const QuantMatrix plain = {.k = length, .group = w.group, .scale_type = FloatType::kF32};
    const auto* scales = reinterpret_cast<const uint8_t*>(spread->scales);
    return fill_panel<true>(plain, {spread->numbers, scales}, 0, length, panel);
  }
  if (w.bits == 8)
    fill_panel<true>(w, block, first, length, panel);
  else
    fill_panel<false>(w, block, first, length, panel);
}

// c += the panel times `length` activations of kRows rows; the sums live in y between panels.
template <int kRows>
void run_tile(const float* panel, int32_t length, const float* x, int64_t x_stride, float* y,
              int64_t y_stride, __mmask16 columns, bool begins) {
  __m512 c[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    c[m.value] =
        begins ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(columns, y + m.value * y_stride);
  });
  for (int32_t i = 0; i < length; ++i) {
    const __m512 v = _mm512_load_ps(panel + int64_t{i} * kBlockRows);
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      c[m.value] = _mm512_fmadd_ps(v, _mm512_set1_ps(x[m.value * x_stride + i]), c[m.value]);
    });
  }
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    _mm512_mask_storeu_ps(y + m.value * y_stride, columns, c[m.value]);
  });
}

using RunTile = void (*)(const float*, int32_t, const float*, int64_t, float*, int64_t, __mmask16,
                         bool);
constexpr RunTile kRunTile[kTileRows + 1] = {
    nullptr,     run_tile<1>, run_tile<2>, run_tile<3>,  run_tile<4>,  run_tile<5>, run_tile<6>,
    run_tile<7>, run_tile<8>, run_tile<9>, run_tile<10>, run_tile<11>, run_tile<12>};

void through_panel(const QuantMatrix& w, const Rows& rows, const GemmRange& range, float* y,
                   float* panel) {
  const int32_t tiles = (rows.count + kTileRows - 1) / kTileRows;
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    const Block block = block_at(w, column);
    const __mmask16 columns = column_mask(column, range.end);
    for (int32_t first = 0; first < w.k; first += kPanelLength) {
      const int32_t length = w.k - first < kPanelLength ? w.k - first : kPanelLength;
      fill_panel(w, block, first, length, panel);
      for (int32_t t = 0; t < tiles; ++t) {
        const int64_t row = int64_t{rows.count} * t / tiles;
        const int64_t end = int64_t{rows.count} * (t + 1) / tiles;
        kRunTile[end - row](panel, length, rows.x + row * rows.stride + first, rows.stride,
                            y + row * range.y_stride + column, range.y_stride, columns, first == 0);
      }
    }
  }
}

void gemm_rows(const QuantMatrix& w, const Rows& rows, const GemmRange& range, float* y,
               float* panel) {
  using Direct = void (*)(const QuantMatrix&, const Rows&, const GemmRange&, float*);
  static constexpr Direct kDirect[2][kDirectRows + 1] = {
      {nullptr, direct<1, false>, direct<2, false>, direct<3, false>, direct<4, false>},
      {nullptr, direct<1, true>, direct<2, true>, direct<3, true>, direct<4, true>}};
  if (rows.count > kDirectRows || !plain_numbers(w) || !plain_scales(w))
    through_panel(w, rows, range, y, panel);
  else if (rows.count > 0)
    kDirect[w.bits == 8][rows.count](w, rows, range, y);
}

}  // namespace

void gemm_quant_f32(const QuantMatrix& w, const float* x, int64_t x_stride, const GemmRange& range,
                    void* scratch) {
  auto* panel = static_cast<float*>(scratch);
  if (range.index == nullptr) {
    gemm_rows(w, {x, x_stride, range.rows}, range, range.y, panel);
    return;
  }
  float* gathered = panel + kGatheredAt / 4;
  const int32_t chunk = static_cast<int32_t>(kGatherBytes / 4 / w.k / kTileRows * kTileRows);
  for (int32_t first = 0; first < range.rows; first += chunk) {
    const int32_t count = range.rows - first < chunk ? range.rows - first : chunk;
    for (int32_t m = 0; m < count; ++m) {
      const float* from = x + range.index[first + m] * x_stride;
      for (int32_t i = 0; i < w.k; i += 16)
        _mm512_storeu_ps(gathered + int64_t{m} * w.k + i, _mm512_loadu_ps(from + i));
    }
    gemm_rows(w, {gathered, w.k, count}, range, range.y + first * range.y_stride, panel);
  }
}

}  // namespace weir::kernels::avx512
