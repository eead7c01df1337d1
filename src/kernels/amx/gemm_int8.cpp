// gemm_quant_int8 on AMX tiles, with the bits of the other ISAs: the integer dots of a group are
// exact whichever ISA adds them, and the floats follow in the order of ops.h.
//
// A line of the packed matrix, its nibbles spread to bytes, is a row of the tile that holds the
// weights ([k / 4][16 columns][4]); 16 activation rows are the other operand as they lie. The dots
// of a group are stored, then scaled and added to the sums, which stay in registers: for each row a
// conversion and three multiply-adds, where the tile instruction takes one cycle. So scaling is the
// cost (9 ns for a group of 16 rows; its tiles take 9, to spread the nibbles 4), and nothing should
// wait: while the dots of a group are computed, those of the one before leave their tile, and one
// further back is scaled. A group of 32 half fills its tiles, at the same cost.
#include <immintrin.h>

#include "kernels/amx/tile.h"
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/panel.h"
#include "kernels/avx512/spread.h"
#include "kernels/isa.h"
#include "kernels/simd/weight_fetch.h"

namespace weir::kernels::amx {
namespace {

constexpr int kTileRows = 16;
constexpr int32_t kGroupMin = 32;
// From so many rows on tiles are faster than VNNI (Sapphire Rapids at rest, k = n = 2048: 16 rows
// +22 % at group 32 and +35 % at 64, 32 rows +33 and +50 %; 12 rows -7 % at group 32).
constexpr int32_t kRowsMin = 13;
// The rows after the last whole tile: their numbers would be read and spread again either way.
constexpr int32_t kLastRowsMin = 6;

// Parts of the scratch: a block's numbers as bytes; its scales as floats where they are not stored
// so; then rows: their factors, and copies of them where they are indexed.
constexpr int64_t kNumberBytes = int64_t{kMaxLayerK} * kBlockRows;
constexpr int64_t kScalesBytes = int64_t{kMaxLayerK} / kGroupMin * 2 * 4 * kBlockRows;
constexpr int64_t kRowsAt = kNumberBytes + kScalesBytes;
constexpr int64_t kRowsBytes = kScratchBytes - kRowsAt;
static_assert(kRowsBytes >= kTileRows * (int64_t{kMaxLayerK} + kMaxLayerK / kGroupMin * 8));

// Tile numbers, two of each kind, which groups take in turns.
constexpr int kDots = 0, kActivations = 2, kWeights = 4;
// Groups between the one whose dots are stored and the one that is scaled: a load does not get what
// a tile's store has still in its buffer, but waits until it has reached L1.
constexpr int kScaleBehind = 6;
constexpr int kStored = 8;  // Groups whose dots are kept, a power of two.
static_assert(kStored > kScaleBehind);
// Groups whose nibbles are spread before their turn comes, for the same reason.
constexpr int32_t kSpreadAhead = 4;
// Bytes of numbers that are kept where one tile of rows is all: they stay in L1. A power of two and
// a multiple of what a group takes, at most 2 KiB.
constexpr int64_t kRingBytes = 16 << 10;
static_assert(kRingBytes >= 2 * kSpreadAhead * 128 * kBlockRows);

// What the epilogue multiplies by, of one row tile and group.
struct Factors {
  float scale[kTileRows];
  float sum[kTileRows];
};

// Rows side by side, k bytes apart, and the factors of each 16, group by group.
struct Rows {
  const int8_t* q;
  const Factors* factors;
};

// One block of 16 columns by one tile of rows.
struct Product {
  const uint8_t* words;    // 4-bit words that are still to be spread, or null.
  uint8_t* spread;         // Where to.
  const uint8_t* numbers;  // [k / 4][16][4]: what they give, or 8-bit words as they are.
  int64_t ring;            // Offsets into the numbers are taken modulo this; a power of two.
  const uint8_t* scales;
  FloatType scale_type;
  Rows rows;
  int64_t k;
  int32_t groups;
  int32_t group;
  int32_t fetches;  // PageFetch::words() a group.
  float* y;
  int64_t y_stride;
  __mmask16 columns;
};

// Elements of k that a tile takes.
int32_t tile_depth(int32_t group) { return group < 64 ? group : 64; }

TileShapes shapes_for(int32_t rows, int32_t group) {
  const int32_t depth = tile_depth(group);
  TileShapes shapes;
  for (int i = 0; i < 2; ++i) {
    shapes.rows[kDots + i] = static_cast<uint8_t>(rows);
    shapes.row_bytes[kDots + i] = 64;
    shapes.rows[kActivations + i] = static_cast<uint8_t>(rows);
    shapes.row_bytes[kActivations + i] = static_cast<uint16_t>(depth);
    shapes.rows[kWeights + i] = static_cast<uint8_t>(depth / 4);
    shapes.row_bytes[kWeights + i] = 64;
  }
  return shapes;
}

// The dots of group `g` into tile kDots + kTurn.
template <int kTurn, class Tiles>
WEIR_INLINE void dot_group(Tiles& tiles, const Product& p, int32_t g) {
  tiles.template zero<kDots + kTurn>();
  const int32_t depth = tile_depth(p.group);
  const int64_t first = int64_t{g} * p.group;
  for (int64_t i = first; i < first + p.group; i += depth) {
    tiles.template load<kWeights + kTurn>(p.numbers + (i * kBlockRows & (p.ring - 1)), 64);
    tiles.template load<kActivations + kTurn>(p.rows.q + i, p.k);
    tiles.template multiply_s8_u8<kDots + kTurn, kActivations + kTurn, kWeights + kTurn>();
  }
}

// The 4-bit words of group `g` as bytes.
WEIR_INLINE void spread_group(const Product& p, int32_t g) {
  const __m512i low = _mm512_set1_epi8(15);
  const int64_t first = int64_t{g} * p.group * kBlockRows;
  const uint8_t* words = p.words + first / 2;
  uint8_t* to = p.spread + (first & (p.ring - 1));
  for (int32_t i = 0; i < p.group / 8; ++i, words += 64, to += 128) {
    const __m512i line = _mm512_load_si512(words);
    _mm512_store_si512(to, _mm512_and_si512(line, low));
    _mm512_store_si512(to + 64, _mm512_and_si512(_mm512_srli_epi32(line, 4), low));
  }
}

// sums += the scaled dots of group `g`.
template <int kRows>
WEIR_INLINE void scale_group(const Product& p, int32_t g, const int32_t* dots, __m512* sums) {
  const int32_t line = kBlockRows * avx512::float_bytes(p.scale_type);
  const uint8_t* scales = p.scales + int64_t{g} * 2 * line;
  const __m512 scale = avx512::widen16(p.scale_type, scales);
  const __m512 bias = avx512::widen16(p.scale_type, scales + line);
  const Factors& factors = p.rows.factors[g];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    const __m512 dot = _mm512_cvtepi32_ps(_mm512_load_si512(dots + m.value * kBlockRows));
    __m512& sum = sums[m.value];
    sum = _mm512_fmadd_ps(_mm512_mul_ps(dot, scale), _mm512_set1_ps(factors.scale[m.value]), sum);
    sum = _mm512_fmadd_ps(bias, _mm512_set1_ps(factors.sum[m.value]), sum);
  });
}

template <int kRows, class Tiles>
void run_product(Tiles& tiles, const Product& p, PageFetch& next) {
  alignas(64) int32_t dots[kStored][kTileRows * kBlockRows];
  PageFetch fetch = next;
  __m512 sums[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { sums[m.value] = _mm512_setzero_ps(); });
  const int32_t to_spread = p.words != nullptr ? p.groups : 0;
  for (int32_t g = 0; g < kSpreadAhead && g < to_spread; ++g) spread_group(p, g);
  for (int32_t begin = 0; begin < p.groups + 1 + kScaleBehind; begin += 2) {
    repeat<2>([&](auto turn) WEIR_INLINE_LAMBDA {
      const int32_t g = begin + turn.value, stored = g - 1, scaled = stored - kScaleBehind;
      if (g + kSpreadAhead < to_spread) spread_group(p, g + kSpreadAhead);
      if (g < p.groups) {
        dot_group<turn.value>(tiles, p, g);
        for (int32_t i = 0; i < p.fetches; ++i) fetch.words();
        fetch.scales();
      }
      if (stored >= 0 && stored < p.groups)
        tiles.template store<kDots + 1 - turn.value>(dots[stored % kStored], 64);
      if (scaled >= 0 && scaled < p.groups)
        scale_group<kRows>(p, scaled, dots[scaled % kStored], sums);
    });
  }
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    _mm512_mask_storeu_ps(p.y + m.value * p.y_stride, p.columns,
                          _mm512_add_ps(sums[m.value], _mm512_setzero_ps()));
  });
  next = fetch;
}

// One product of `height` rows.
template <class Tiles, int kRows = kTileRows>
void run_height(int32_t height, Tiles& tiles, const Product& p, PageFetch& next) {
  if constexpr (kRows > kLastRowsMin) {
    if (height < kRows) return run_height<Tiles, kRows - 1>(height, tiles, p, next);
  }
  run_product<kRows>(tiles, p, next);
}

// `count` rows in tiles of `height`, all columns of the range; y is the first row's.
template <class Tiles>
void gemm_tiles(const QuantMatrix& w, const Rows& rows, int32_t count, int32_t height,
                const GemmRange& range, const NextWeights& next_weights, float* y,
                uint8_t* scratch) {
  const TileShapes shapes = shapes_for(height, w.group);
  Tiles tiles(shapes);
  const int64_t word_bytes = block_word_bytes(w);
  const int32_t blocks = (range.end - range.begin + kBlockRows - 1) / kBlockRows;
  PageFetch none;
  PageFetch next(next_weights, {.bytes = blocks * word_bytes});
  Product p;
  const bool plain = plain_numbers(w), wide = plain && w.bits == 8;
  p.spread = scratch;
  // Numbers that are not plain are spread to bytes before all products.
  p.ring = wide || !plain || count > height ? int64_t{1} << 62 : kRingBytes;
  p.scale_type = plain_scales(w) ? w.scale_type : FloatType::kF32;
  p.k = w.k;
  p.groups = w.k / w.group;
  p.group = w.group;
  p.fetches = static_cast<int32_t>(word_bytes / p.groups / kFetchStep);
  p.y_stride = range.y_stride;
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    const int64_t block = column / kBlockRows;
    const uint8_t* words = w.words + block * word_bytes;
    p.scales = w.scales + block * block_scale_bytes(w);
    if (!plain_scales(w)) {
      auto* to = reinterpret_cast<float(*)[2][kBlockRows]>(scratch + kNumberBytes);
      avx512::spread_scales(w, p.scales, 0, p.groups, to);
      p.scales = scratch + kNumberBytes;
    }
    if (!plain) avx512::spread_numbers(w, words, w.k / kPackStep, scratch);
    p.numbers = wide ? words : scratch;
    p.columns = avx512::column_mask(column, range.end);
    for (int32_t row = 0; row < count; row += height) {
      p.rows.q = rows.q + row * p.k;
      p.rows.factors = rows.factors + int64_t{row} / kTileRows * p.groups;
      p.y = y + row * p.y_stride + column;
      p.words = wide || !plain || row > 0 ? nullptr : words;
      run_height(height, tiles, p, row == 0 ? next : none);
    }
  }
}

// Four rows of four groups each, to four groups of `to`.
void transpose4(const float* const from[4], float* to) {
  __m128 a = _mm_loadu_ps(from[0]), b = _mm_loadu_ps(from[1]);
  __m128 c = _mm_loadu_ps(from[2]), d = _mm_loadu_ps(from[3]);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  constexpr int64_t kStep = sizeof(Factors) / sizeof(float);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + kStep, b);
  _mm_storeu_ps(to + 2 * kStep, c);
  _mm_storeu_ps(to + 3 * kStep, d);
}

// Scales and sums of `count` rows beginning at row `first` of the range. Of the last tile's missing
// rows nothing is written: no product reads them.
void gather_factors(const QuantRows& x, const int32_t* index, int32_t first, int32_t count,
                    int32_t groups, Factors* factors) {
  const auto source = [&](int32_t m) {
    return (index != nullptr ? index[first + m] : int64_t{first} + m) * groups;
  };
  for (int32_t m = 0; m < count; m += 4) {
    Factors* to = factors + int64_t{m} / kTileRows * groups;
    const int32_t lane = m % kTileRows;
    int32_t g = 0;
    for (; m + 4 <= count && g + 4 <= groups; g += 4) {
      const float* scales[4];
      const float* sums[4];
      for (int32_t i = 0; i < 4; ++i) {
        scales[i] = x.scale + source(m + i) + g;
        sums[i] = x.sum + source(m + i) + g;
      }
      transpose4(scales, to[g].scale + lane);
      transpose4(sums, to[g].sum + lane);
    }
    for (; g < groups; ++g) {
      for (int32_t i = 0; i < 4 && m + i < count; ++i) {
        to[g].scale[lane + i] = x.scale[source(m + i) + g];
        to[g].sum[lane + i] = x.sum[source(m + i) + g];
      }
    }
  }
}

// Rows that tiles do not pay for.
void gemm_few(const QuantMatrix& w, const QuantRows& x, const GemmRange& range, int32_t first,
              void* scratch) {
  const int64_t groups = w.k / w.group;
  QuantRows last = x;
  GemmRange few = range;
  few.rows = range.rows - first;
  few.y = range.y + first * range.y_stride;
  few.next = {};
  if (range.index != nullptr) {
    few.index = range.index + first;
  } else {
    last.q += int64_t{first} * w.k;
    last.scale += first * groups;
    last.sum += first * groups;
  }
  avx512::gemm_quant_int8(w, last, few, scratch);
}

template <class Tiles>
void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                     void* scratch) {
  if (range.rows < kRowsMin || w.group < kGroupMin)
    return avx512::gemm_quant_int8(w, x, range, scratch);
  auto* bytes = static_cast<uint8_t*>(scratch);
  const int32_t groups = w.k / w.group;
  const int32_t rest = range.rows % kTileRows;
  const int32_t tiled = rest >= kLastRowsMin ? range.rows : range.rows - rest;
  // As many rows at a time as the scratch holds, all of them in most models.
  const int64_t row_bytes = groups * int64_t{8} + (range.index != nullptr ? w.k : 0);
  const int64_t fit = kRowsBytes / row_bytes / kTileRows * kTileRows;
  const int32_t chunk = static_cast<int32_t>(fit < tiled ? fit : tiled);
  for (int32_t first = 0; first < tiled; first += chunk) {
    const int32_t count = tiled - first < chunk ? tiled - first : chunk;
    const int32_t low = count % kTileRows, whole = count - low;
    auto* factors = reinterpret_cast<Factors*>(bytes + kRowsAt);
    gather_factors(x, range.index, first, count, groups, factors);
    Rows rows = {x.q + int64_t{first} * w.k, factors};
    if (range.index != nullptr) {
      auto* q =
          reinterpret_cast<int8_t*>(factors + int64_t{count + kTileRows - 1} / kTileRows * groups);
      avx512::gather_rows(x.q, range.index + first, count, w.k, q);
      rows.q = q;
    }
    float* y = range.y + first * range.y_stride;
    const NextWeights next = first == 0 ? range.next : NextWeights{};
    if (whole > 0) gemm_tiles<Tiles>(w, rows, whole, kTileRows, range, next, y, bytes);
    if (low > 0) {
      rows.q += int64_t{whole} * w.k;
      rows.factors += int64_t{whole} / kTileRows * groups;
      gemm_tiles<Tiles>(w, rows, low, low, range, whole > 0 ? NextWeights{} : next,
                        y + whole * range.y_stride, bytes);
    }
  }
  if (tiled < range.rows) gemm_few(w, x, range, tiled, scratch);
}

}  // namespace

void fill_gemm(Ops& ops) { ops.gemm_quant_int8 = gemm_quant_int8<HardwareTiles>; }
void fill_gemm_emulated(Ops& ops) { ops.gemm_quant_int8 = gemm_quant_int8<EmulatedTiles>; }

}  // namespace weir::kernels::amx
