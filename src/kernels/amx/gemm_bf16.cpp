// gemm_quant_bf16, gemm_float_bf16 and gemm_float8_bf16 on AMX tiles: weights are widened (or
// rounded) to bf16, so that sums stay in tiles over all of k and no scale is applied to a product.
//
// A tile of weights is 32 elements of k by 16 columns as [16 pairs][16 columns][2]. A word of the
// packed matrix holds 8 elements of one column, the 16 columns side by side, so a line of 16 words
// gives 4 rows of such a tile without a permutation: for each pair of nibbles 4 places apart one
// shift and one merge make the bf16 bits of (128 + q, 128 + q'), two fma and two more operations
// the pair of weights: 7 operations for 32 weights.
//
// A panel of 128 columns is widened once and multiplied with all rows, two tiles of rows by two of
// columns at a time: four products from four loads. The rows' own tiles are loaded as they lie, 16
// rows by 64 bytes; they come from L2 for the first pair of columns and from L1 for the others,
// the panel streams through from L2. From L1 alone the loads overlap with the products (2.25 of
// 2.55 TFLOPS on Sapphire Rapids), from L2 they do not quite: 1.5 with either loop inside.
#include <immintrin.h>

#include "kernels/amx/product.h"
#include "kernels/avx512/panel.h"
#include "kernels/avx512/spread.h"
#include "kernels/avx512bf16/transpose.h"
#include "kernels/float8_layout.h"
#include "kernels/isa.h"

namespace weir::kernels::amx {
namespace {

// The panel: 256 KiB, an eighth of L2, which holds the rows too.
constexpr int32_t kPanelBlocks = 8;
constexpr int32_t kPanelK = 1024;
constexpr int32_t kPanelSteps = kPanelK / kStep;
// The tiles that a product reads together lie together: side by side in the panel they would fall
// into the same sets of the cache.
constexpr int32_t kPanelStep = kColumnTiles * kTileElements;
constexpr int64_t kPanelBytes = int64_t{kPanelBlocks} * kPanelSteps * kTileElements * 2;
// Rows at a time: results of the last block of a matrix whose n is no multiple of 16 wait in a
// buffer of this many.
constexpr int32_t kRowsMax = 512;
// Parts of the scratch: panel; results at the edge; what a stretch of a block is widened from where
// the block is not plain; gathered rows.
struct Spread {
  float scales[kPanelK / 16][2][kBlockRows];
  uint8_t numbers[kPanelK * kBlockRows];
};
constexpr int64_t kEdgeAt = kPanelBytes;
constexpr int64_t kSpreadAt = kEdgeAt + int64_t{kRowsMax} * kBlockRows * 4;
constexpr int64_t kGatheredAt = kSpreadAt + int64_t{sizeof(Spread)};
constexpr int64_t kGatheredBytes = kScratchBytes - kGatheredAt;
static_assert(kGatheredBytes >= kTileRows * (int64_t{kMaxLayerK} + kStep) * 2);

// What turns a number into a weight, of 16 columns and one group.
struct Factors {
  __m512 scale;
  __m512 first, second;  // Biases less magic * scale, for the first and second of a pair.
};

template <bool kWide>
WEIR_INLINE Factors load_factors(FloatType type, const uint8_t* scales) {
  constexpr float kMagic = kWide ? 256.0f : 128.0f;
  constexpr float kMagicSecond = kWide ? kMagic : kMagic + 0x4300 / 65536.0f;
  const __m512 unbias = _mm512_set1_ps(kUnbias);
  const __m512 scale = _mm512_mul_ps(avx512::widen16(type, scales), unbias);
  const __m512 bias =
      _mm512_mul_ps(avx512::widen16(type, scales + kBlockRows * avx512::float_bytes(type)), unbias);
  return {scale, _mm512_fnmadd_ps(_mm512_set1_ps(kMagic), scale, bias),
          _mm512_fnmadd_ps(_mm512_set1_ps(kMagicSecond), scale, bias)};
}

// (value & mask) | bits.
WEIR_INLINE __m512i merge(__m512i value, __m512i mask, __m512i bits) {
  return _mm512_ternarylogic_epi32(value, mask, bits, 0xea);
}

// A row of a tile: the upper halves of two floats, the second's above the first's.
WEIR_INLINE void store_pair(uint16_t* out, __m512 first, __m512 second) {
  const __m512i upper = _mm512_set1_epi32(static_cast<int32_t>(0xffff0000));
  _mm512_store_si512(out, merge(_mm512_castps_si512(second), upper,
                                _mm512_srli_epi32(_mm512_castps_si512(first), 16)));
}

// 8 elements of 16 columns, one line of words: 4 rows of a tile.
WEIR_INLINE void widen_nibbles(__m512i words, const Factors& f, uint16_t* out) {
  const __m512i mask = _mm512_set1_epi32(0x000f000f), magic = _mm512_set1_epi32(0x43004300);
  repeat<4>([&](auto i) WEIR_INLINE_LAMBDA {
    const __m512i pair =
        merge(i.value == 0 ? words : _mm512_srli_epi32(words, 4 * i.value), mask, magic);
    const __m512 first = _mm512_castsi512_ps(_mm512_slli_epi32(pair, 16));
    const __m512 second = _mm512_castsi512_ps(pair);
    store_pair(out + 32 * i.value, _mm512_fmadd_ps(first, f.scale, f.first),
               _mm512_fmadd_ps(second, f.scale, f.second));
  });
}

// Bytes kByte and kByte + 2 of each word as a row of a tile.
template <int kByte>
WEIR_INLINE void widen_bytes(__m512i words, const Factors& f, uint16_t* out) {
  // Eight bits below the exponent of 256.
  const __m512i mask = _mm512_set1_epi32(0x007f8000), magic = _mm512_set1_epi32(0x43800000);
  const __m512i first = _mm512_slli_epi32(words, 15 - 8 * kByte);
  const __m512i second = _mm512_srli_epi32(words, 1 + 8 * kByte);
  store_pair(out, _mm512_fmadd_ps(_mm512_castsi512_ps(merge(first, mask, magic)), f.scale, f.first),
             _mm512_fmadd_ps(_mm512_castsi512_ps(merge(second, mask, magic)), f.scale, f.second));
}

// 32 elements of k of one block, 16 by each of the factors: a tile of weights.
template <bool kWide>
WEIR_INLINE void widen_tile(const uint8_t* words, const Factors& low_half, const Factors& high_half,
                            uint16_t* out) {
  constexpr int kLines = kWide ? 2 : 1;  // Of 8 elements.
  repeat<4>([&](auto eighth) WEIR_INLINE_LAMBDA {
    const Factors& f = eighth.value < 2 ? low_half : high_half;
    uint16_t* rows = out + 4 * 32 * eighth.value;
    const uint8_t* line = words + eighth.value * 64 * kLines;
    const __m512i low = _mm512_load_si512(line);
    if constexpr (kWide) {
      const __m512i high = _mm512_load_si512(line + 64);  // Elements 1 3 5 7.
      widen_bytes<0>(low, f, rows);
      widen_bytes<0>(high, f, rows + 32);
      widen_bytes<1>(low, f, rows + 64);
      widen_bytes<1>(high, f, rows + 96);
    } else {
      widen_nibbles(low, f, rows);
    }
  });
}

// `steps` tiles of the panel from plain words and scales. Elements are counted from the first of a
// group.
template <bool kWide>
void widen_block(const uint8_t* words, const uint8_t* scales, FloatType type, int32_t group,
                 int32_t first, int32_t steps, uint16_t* out) {
  constexpr int kTileWords = kStep * kBlockRows * (kWide ? 8 : 4) / 8;  // Bytes.
  const int32_t line = 2 * kBlockRows * avx512::float_bytes(type);
  int32_t last = -1;
  Factors f{};
  for (int32_t step = 0; step < steps; ++step) {
    const int32_t now = (first + step * kStep) / group;
    if (now != last) f = load_factors<kWide>(type, scales + int64_t{now} * line);
    last = now;
    widen_tile<kWide>(words + int64_t{step} * kTileWords, f, f, out + step * kPanelStep);
  }
}

// The same of bytes in groups of 16.
void widen_sixteens(const Spread& spread, int32_t steps, uint16_t* out) {
  for (int32_t step = 0; step < steps; ++step) {
    const auto factors = [&](int32_t g) WEIR_INLINE_LAMBDA {
      return load_factors<true>(FloatType::kF32,
                                reinterpret_cast<const uint8_t*>(spread.scales[g]));
    };
    widen_tile<true>(spread.numbers + int64_t{step} * kStep * kBlockRows, factors(2 * step),
                     factors(2 * step + 1), out + step * kPanelStep);
  }
}

// 32 stored numbers, of which those of `lanes` are the row's, as bf16, each 8 in the order of
// Bf16Rows.
template <FloatType kType>
WEIR_INLINE __m512i load_row(const uint8_t* at, __mmask32 lanes, __m512i order) {
  const __m512i both = _mm512_maskz_loadu_epi16(lanes, at);
  if constexpr (kType == FloatType::kBF16) return _mm512_permutexvar_epi16(order, both);
  const __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(both));
  const __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1));
  return _mm512_permutexvar_epi16(order, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
}

// Each 8 in the order 0 4 1 5 2 6 3 7, 16 bits each.
WEIR_INLINE __m512i pair_order() {
  return _mm512_add_epi16(
      _mm512_broadcast_i32x4(_mm_setr_epi16(0, 4, 1, 5, 2, 6, 3, 7)),
      _mm512_inserti64x4(
          _mm512_castsi256_si512(_mm256_setr_m128i(_mm_set1_epi16(0), _mm_set1_epi16(8))),
          _mm256_setr_m128i(_mm_set1_epi16(16), _mm_set1_epi16(24)), 1));
}

// The numbers of a row from element `i` on, of 32.
WEIR_INLINE __mmask32 lanes_from(int32_t i, int32_t k) {
  return k - i >= kStep ? ~__mmask32{0} : (__mmask32{1} << (k - i)) - 1;
}

// Likewise of 16 rows of a float matrix, those that it has; beyond k zeros.
template <FloatType kType>
void round_block(const FloatMatrix& w, int32_t column, int32_t first, int32_t steps,
                 uint16_t* out) {
  const __m512i order = pair_order();
  const int64_t stride = 2 * int64_t{w.k};
  const int32_t columns = w.n - column < kBlockRows ? w.n - column : kBlockRows;
  const uint8_t* at = static_cast<const uint8_t*>(w.rows) + column * stride + 2 * int64_t{first};
  for (int32_t step = 0; step < steps; ++step, at += 2 * kStep, out += kPanelStep) {
    const __mmask32 lanes = lanes_from(first + step * kStep, w.k);
    __m512i rows[kBlockRows];
    repeat<kBlockRows>([&](auto c) WEIR_INLINE_LAMBDA {
      rows[c.value] = c.value < columns ? load_row<kType>(at + c.value * stride, lanes, order)
                                        : _mm512_setzero_si512();
    });
    avx512bf16::transpose16(rows);
    repeat<kBlockRows>(
        [&](auto p) WEIR_INLINE_LAMBDA { _mm512_store_si512(out + 32 * p.value, rows[p.value]); });
  }
}

// A block's stretch of k to the panel: elements [first, first + steps * kStep).
void fill_panel(const QuantMatrix& w, int32_t column, int32_t first, int32_t steps, Spread& spread,
                uint16_t* out) {
  const int64_t block = column / kBlockRows;
  const uint8_t* words = w.words + block * block_word_bytes(w) + int64_t{first} / 8 * 16 * w.bits;
  const uint8_t* scales = w.scales + block * block_scale_bytes(w);
  if (plain_numbers(w) && plain_scales(w)) {
    if (w.bits == 8)
      widen_block<true>(words, scales, w.scale_type, w.group, first, steps, out);
    else
      widen_block<false>(words, scales, w.scale_type, w.group, first, steps, out);
    return;
  }
  avx512::spread_scales(w, scales, first / w.group, (first + steps * kStep) / w.group,
                        spread.scales);
  const auto* floats = reinterpret_cast<const uint8_t*>(spread.scales);
  if (w.bits == 4 && plain_numbers(w))
    return widen_block<false>(words, floats, FloatType::kF32, w.group, 0, steps, out);
  avx512::spread_numbers(w, words, steps, spread.numbers);
  if (w.group < kStep) return widen_sixteens(spread, steps, out);
  widen_block<true>(spread.numbers, floats, FloatType::kF32, w.group, 0, steps, out);
}
void fill_panel(const FloatMatrix& w, int32_t column, int32_t first, int32_t steps, Spread&,
                uint16_t* out) {
  if (w.type == FloatType::kBF16)
    round_block<FloatType::kBF16>(w, column, first, steps, out);
  else
    round_block<FloatType::kF16>(w, column, first, steps, out);
}
// A pair of columns, 4 apart, of the block's 16 rows is a row of a tile.
void fill_panel(const Float8Matrix& w, int32_t column, int32_t first, int32_t steps, Spread&,
                uint16_t* out) {
  const int64_t block = column / kBlockRows;
  const uint8_t* numbers = w.numbers + block * block_number_bytes(w) + int64_t{first} * kBlockRows;
  const float* scales = w.scales + block * block_scales(w);
  const __m512i order = _mm512_add_epi16(
      _mm512_cvtepu8_epi16(_mm256_setr_epi8(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9,
                                            9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15)),
      _mm512_set1_epi32(16 << 16));  // Lane c of both halves.
  for (int32_t step = 0; step < steps; ++step, out += kPanelStep) {
    const float* at = scales + (first + step * kStep) / w.scale_columns * scale_lanes(w);
    const __m512 scale = _mm512_mul_ps(w.row_scales ? _mm512_loadu_ps(at) : _mm512_set1_ps(*at),
                                       _mm512_set1_ps(kFloat8Unit));
    const auto column_at = [&](int32_t i) WEIR_INLINE_LAMBDA {
      const auto* bytes = reinterpret_cast<const __m128i*>(numbers + i * kBlockRows);
      return _mm512_mul_ps(avx512::widen_e4m3(_mm_loadu_si128(bytes)), scale);
    };
    repeat<kTileRows>([&](auto p) WEIR_INLINE_LAMBDA {
      constexpr int kFirst = p.value / 4 * 8 + p.value % 4;
      const auto both =
          reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(column_at(kFirst + 4), column_at(kFirst)));
      _mm512_store_si512(out + 32 * p.value, _mm512_permutexvar_epi16(order, both));
    });
    numbers += kStep * kBlockRows;
  }
}

// Up to kPanelBlocks blocks of columns, from `column` on, for rows that lie x_stride bytes apart.
struct Panel {
  const uint16_t* x;
  int64_t x_stride;
  int32_t rows;  // At most kRowsMax.
  int32_t column;
  int32_t blocks;
  bool edge;  // The last block has fewer than 16 columns.
  float* y;   // Of the first row and column 0.
  int64_t y_stride;
  uint8_t* scratch;

  // The first tile of a block; its next is kPanelStep numbers on.
  uint16_t* weights(int32_t block) const {
    return reinterpret_cast<uint16_t*>(scratch) + block / kColumnTiles * kPanelSteps * kPanelStep +
           block % kColumnTiles * kTileElements;
  }
  float* edge_sums() const { return reinterpret_cast<float*>(scratch + kEdgeAt); }
  Spread& spread() const { return *reinterpret_cast<Spread*>(scratch + kSpreadAt); }
};

// The rows [row, row + 32), or what is left of them, by all blocks.
template <int kUsedTiles, class Tiles>
void run_rows(Tiles& tiles, const Panel& panel, Product p, int32_t row) {
  const auto* x = reinterpret_cast<const uint8_t*>(p.x) + row * p.x_stride;
  p.x = reinterpret_cast<const uint16_t*>(x);
  for (int32_t block = 0; block < panel.blocks; block += kColumnTiles) {
    p.panel = panel.weights(block);
    for (int b = 0; b < kColumnTiles; ++b) {
      const bool edge = panel.edge && block + b == panel.blocks - 1;
      p.y[b] = edge ? panel.edge_sums() + row * kBlockRows
                    : panel.y + row * panel.y_stride + panel.column + (block + b) * kBlockRows;
      p.y_stride[b] = 4 * (edge ? kBlockRows : panel.y_stride);
    }
    if (block + 1 < panel.blocks)
      run_product<kUsedTiles, kColumnTiles>(tiles, p);
    else
      run_product<kUsedTiles, 1>(tiles, p);
  }
}

// Elements [first, first + kPanelK) of k, as far as there are any.
template <class Tiles, class Matrix>
void run_stretch(const Matrix& w, const Panel& panel, int32_t first) {
  const int32_t length = w.k - first < kPanelK ? w.k - first : kPanelK;
  const int32_t steps = (length + kStep - 1) / kStep;
  for (int32_t block = 0; block < panel.blocks; ++block)
    fill_panel(w, panel.column + block * kBlockRows, first, steps, panel.spread(),
               panel.weights(block));
  Product p{};
  p.panel_step = kPanelStep;
  p.panel_tile = kTileElements;
  p.x = panel.x + first;
  p.x_stride = panel.x_stride;
  p.steps = steps;
  p.resume = first > 0;
  p.far = true;
  constexpr int32_t kHeight = kRowTiles * kTileRows;
  const int32_t rest = panel.rows % kHeight, whole = panel.rows - rest;
  if (whole > 0) {
    const TileShapes shapes = shapes_for(kTileRows, kTileRows);
    Tiles tiles(shapes);
    for (int32_t row = 0; row < whole; row += kHeight) run_rows<kRowTiles>(tiles, panel, p, row);
  }
  if (rest == 0) return;
  const TileShapes shapes =
      rest > kTileRows ? shapes_for(kTileRows, rest - kTileRows) : shapes_for(rest, rest);
  Tiles tiles(shapes);
  if (rest > kTileRows)
    run_rows<kRowTiles>(tiles, panel, p, whole);
  else
    run_rows<1>(tiles, panel, p, whole);
}

// `rows` rows, at most kRowsMax, that lie x_stride numbers apart; y is the first one's.
template <class Tiles, class Matrix>
void run_columns(const Matrix& w, const uint16_t* x, int64_t x_stride, const GemmRange& range,
                 int32_t rows, float* y, uint8_t* scratch) {
  constexpr int32_t kWidth = kPanelBlocks * kBlockRows;
  for (int32_t column = range.begin; column < range.end; column += kWidth) {
    const int32_t columns = range.end - column < kWidth ? range.end - column : kWidth;
    const Panel panel = {.x = x,
                         .x_stride = 2 * x_stride,
                         .rows = rows,
                         .column = column,
                         .blocks = (columns + kBlockRows - 1) / kBlockRows,
                         .edge = columns % kBlockRows != 0,
                         .y = y,
                         .y_stride = range.y_stride,
                         .scratch = scratch};
    for (int32_t first = 0; first < w.k; first += kPanelK) run_stretch<Tiles>(w, panel, first);
    if (!panel.edge) continue;
    const int32_t last = column + (panel.blocks - 1) * kBlockRows;
    for (int32_t m = 0; m < rows; ++m)
      _mm512_mask_storeu_ps(y + m * range.y_stride + last, avx512::column_mask(last, range.end),
                            _mm512_load_ps(panel.edge_sums() + m * kBlockRows));
  }
}

// Rows of an index side by side, 64 bytes more than their length apart, so that the rows of a tile
// do not all fall into one set of the cache.
void gather(const Bf16Rows& x, const int32_t* index, int32_t rows, int64_t stride, uint16_t* out) {
  for (int32_t m = 0; m < rows; ++m, out += stride)
    for (int32_t i = 0; i < x.k; i += kStep)
      _mm512_storeu_si512(out + i, _mm512_loadu_si512(x.x + index[m] * x.stride + i));
}

template <class Tiles, class Matrix>
void gemm_bf16(const Matrix& w, const Bf16Rows& x, const GemmRange& range, void* scratch) {
  auto* bytes = static_cast<uint8_t*>(scratch);
  auto* gathered = reinterpret_cast<uint16_t*>(bytes + kGatheredAt);
  const int64_t stride = int64_t{w.k + kStep - 1} / kStep * kStep + kStep;
  int32_t chunk = kRowsMax;
  if (range.index != nullptr && kGatheredBytes / (2 * stride) < chunk)
    chunk = static_cast<int32_t>(kGatheredBytes / (2 * stride));
  for (int32_t first = 0; first < range.rows; first += chunk) {
    const int32_t rows = range.rows - first < chunk ? range.rows - first : chunk;
    float* y = range.y + first * range.y_stride;
    if (range.index == nullptr) {
      run_columns<Tiles>(w, x.x + first * x.stride, x.stride, range, rows, y, bytes);
    } else {
      gather(x, range.index + first, rows, stride, gathered);
      run_columns<Tiles>(w, gathered, stride, range, rows, y, bytes);
    }
  }
}

void round_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, Bf16Rows out) {
  const __m512i order = pair_order();
  for (int32_t m = 0; m < rows; ++m) {
    for (int32_t i = 0; i < columns; i += kStep) {
      const float* from = x + m * x_stride + i;
      const __mmask32 lanes = lanes_from(i, columns);
      const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes), from);
      const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes >> 16), from + 16);
      const auto both = reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
      _mm512_storeu_si512(out.x + m * out.stride + i, _mm512_permutexvar_epi16(order, both));
    }
  }
}

}  // namespace

void fill_gemm_bf16(Ops& ops) {
  ops.prompts_in_bf16 = true;
  ops.round_rows = round_rows;
  ops.gemm_quant_bf16 = gemm_bf16<HardwareTiles, QuantMatrix>;
  ops.gemm_float_bf16 = gemm_bf16<HardwareTiles, FloatMatrix>;
  ops.gemm_float8_bf16 = gemm_bf16<HardwareTiles, Float8Matrix>;
}
void fill_gemm_bf16_emulated(Ops& ops) {
  ops.round_rows = round_rows;
  ops.gemm_quant_bf16 = gemm_bf16<EmulatedTiles, QuantMatrix>;
  ops.gemm_float_bf16 = gemm_bf16<EmulatedTiles, FloatMatrix>;
  ops.gemm_float8_bf16 = gemm_bf16<EmulatedTiles, Float8Matrix>;
}

}  // namespace weir::kernels::amx
