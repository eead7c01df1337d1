// gemm_quant_int8 on AMX tiles, with the bits of the other ISAs: the integer dots of a group are
// exact whoever adds them, and the floats follow in the order of ops.h.
//
// A line of the packed matrix, its nibbles spread to bytes, is a row of the tile that holds the
// weights ([k / 4][16 columns][4]); 16 activation rows are the other operand as they lie. Two tiles
// of either kind make four products from four loads. The dots of a few groups are stored, then
// scaled and added with the sums in registers: for each group and row a conversion and three
// multiply-adds, where the tile instruction takes one cycle. So the epilogue is the cost: the
// scales and sums of 16 rows are brought side by side first, as 32 strided loads a group cost 8
// of its 20 ns a group and tile (Sapphire Rapids).
#include <immintrin.h>

#include "kernels/amx/tile.h"
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/panel.h"
#include "kernels/isa.h"

namespace weir::kernels::amx {
namespace {

using avx512::GroupScales;

constexpr int kTileRows = 16;
// Scaling the dots costs the same for a group of 32 as for one of 128, and bounds the tiles: at
// group 32, whose tiles are also half filled, VNNI is faster at every number of rows; at 64 up to
// about 64 rows and at 128 up to about 24 (Sapphire Rapids, k = n = 2048; bench/README.md).
constexpr int32_t kGroupMin = 64;
constexpr int32_t rows_min(int32_t group) { return group < 128 ? 64 : 24; }
// The rows after the last whole tile: a tile costs the same for one row as for 16.
constexpr int32_t kLastRowsMin = 8;

// A product's shape: blocks of 16 columns by tiles of 16 rows.
constexpr int kBlocks = 2;
constexpr int kRowTiles = 2;
constexpr int kTileFloats = kTileRows * kBlockRows;
// Groups whose dots are stored before they are scaled: sums leave the registers that rarely, and
// the dots, 16 KiB, still leave most of L1 to the operands.
constexpr int kChunk = 4;

// Parts of the scratch: scales of the blocks, their numbers as bytes; then rows: their factors, and
// copies of them where they are indexed.
constexpr int64_t kPanelBytes = int64_t{kMaxLayerK} / kGroupMin * int64_t{sizeof(GroupScales)};
constexpr int64_t kNumberBytes = int64_t{kMaxLayerK} * kBlockRows;
constexpr int64_t kRowsAt = kBlocks * (kPanelBytes + kNumberBytes);
constexpr int64_t kRowsBytes = kScratchBytes - kRowsAt;
static_assert(kRowsBytes >= kTileRows * (int64_t{kMaxLayerK} + kMaxLayerK / kGroupMin * 8));

// Tile numbers: sums of row tile r and block b at 2 r + b; activations; weights.
constexpr int kActivations = 4, kWeights = 6;

struct Block {
  const uint8_t* numbers;  // [k / 4][16][4]
  const GroupScales* panel;
  __mmask16 columns;
};

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

struct Product {
  Block block[kBlocks];
  Rows rows;
  int64_t k;
  int32_t groups;
  int32_t group;
  float* y;
  int64_t y_stride;
};

// Dots by row tile, block and group; sums between chunks.
struct Buffers {
  alignas(64) int32_t dots[kRowTiles * kBlocks][kChunk][kTileFloats];
  alignas(64) float sums[kRowTiles * kBlocks][kTileFloats];
};

TileShapes shapes_for(int32_t rows) {
  TileShapes shapes;
  for (int i = 0; i < kActivations; ++i) {
    shapes.rows[i] = static_cast<uint8_t>(rows);
    shapes.row_bytes[i] = 64;
  }
  for (int i = 0; i < 2; ++i) {
    shapes.rows[kActivations + i] = static_cast<uint8_t>(rows);
    shapes.row_bytes[kActivations + i] = 64;
    shapes.rows[kWeights + i] = 16;
    shapes.row_bytes[kWeights + i] = 64;
  }
  return shapes;
}

// The dots of group `g` to slot `slot` of `dots`.
template <int kUsedTiles, int kUsedBlocks, class Tiles>
WEIR_INLINE void dot_group(Tiles& tiles, const Product& p, int32_t g, int32_t slot,
                           int32_t (*dots)[kChunk][kTileFloats]) {
  repeat<kUsedTiles * kUsedBlocks>([&](auto t) WEIR_INLINE_LAMBDA {
    tiles.template zero<t.value / kUsedBlocks * kBlocks + t.value % kUsedBlocks>();
  });
  for (int32_t i = 0; i < p.group; i += 64) {
    const int64_t first = int64_t{g} * p.group + i;
    repeat<kUsedBlocks>([&](auto b) WEIR_INLINE_LAMBDA {
      tiles.template load<kWeights + b.value>(p.block[b.value].numbers + first * kBlockRows, 64);
    });
    repeat<kUsedTiles>([&](auto r) WEIR_INLINE_LAMBDA {
      tiles.template load<kActivations + r.value>(p.rows.q + r.value * kTileRows * p.k + first,
                                                  p.k);
      repeat<kUsedBlocks>([&](auto b) WEIR_INLINE_LAMBDA {
        tiles.template multiply_s8_u8<kBlocks * r.value + b.value, kActivations + r.value,
                                      kWeights + b.value>();
      });
    });
  }
  repeat<kUsedTiles * kUsedBlocks>([&](auto t) WEIR_INLINE_LAMBDA {
    constexpr int kSums = t.value / kUsedBlocks * kBlocks + t.value % kUsedBlocks;
    tiles.template store<kSums>(dots[kSums][slot], 64);
  });
}

// Adds the scaled dots of groups [first, first + count) to one tile's sums, or begins them; the
// last chunk writes y.
template <int kRows>
void scale_tile(const Product& p, int32_t tile, int32_t first, int32_t count,
                const int32_t (*dots)[kTileFloats], float* sums) {
  const Block& block = p.block[tile % kBlocks];
  const Factors* factors = p.rows.factors + int64_t{tile / kBlocks} * p.groups;
  __m512 c[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    c[m.value] = first == 0 ? _mm512_setzero_ps() : _mm512_load_ps(sums + m.value * kBlockRows);
  });
  for (int32_t g = first; g < first + count; ++g) {
    const __m512 scale = _mm512_load_ps(block.panel[g].scale);
    const __m512 bias = _mm512_load_ps(block.panel[g].bias);
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const __m512 dot =
          _mm512_cvtepi32_ps(_mm512_load_si512(dots[g - first] + m.value * kBlockRows));
      __m512& sum = c[m.value];
      sum = _mm512_fmadd_ps(_mm512_mul_ps(dot, scale), _mm512_set1_ps(factors[g].scale[m.value]),
                            sum);
      sum = _mm512_fmadd_ps(bias, _mm512_set1_ps(factors[g].sum[m.value]), sum);
    });
  }
  if (first + count < p.groups) {
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      _mm512_store_ps(sums + m.value * kBlockRows, c[m.value]);
    });
    return;
  }
  float* y = p.y + tile / kBlocks * kTileRows * p.y_stride + tile % kBlocks * kBlockRows;
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    _mm512_mask_storeu_ps(y + m.value * p.y_stride, block.columns,
                          _mm512_add_ps(c[m.value], _mm512_setzero_ps()));
  });
}

template <int kRows, int kUsedTiles, int kUsedBlocks, class Tiles>
void run_product(Tiles& tiles, const Product& p) {
  Buffers buffers;
  for (int32_t g = 0; g < p.groups; g += kChunk) {
    const int32_t count = p.groups - g < kChunk ? p.groups - g : kChunk;
    for (int32_t i = 0; i < count; ++i)
      dot_group<kUsedTiles, kUsedBlocks>(tiles, p, g + i, i, buffers.dots);
    for (int32_t r = 0; r < kUsedTiles; ++r) {
      for (int32_t b = 0; b < kUsedBlocks; ++b) {
        const int32_t tile = r * kBlocks + b;
        scale_tile<kRows>(p, tile, g, count, buffers.dots[tile], buffers.sums[tile]);
      }
    }
  }
}

// One block's words as bytes. 8-bit words are bytes already.
const uint8_t* spread_block(const QuantMatrix& w, const uint8_t* words, uint8_t* numbers) {
  if (w.bits == 8) return words;
  const __m512i low = _mm512_set1_epi8(15);
  const int64_t bytes = avx512::block_word_bytes(w);
  for (int64_t i = 0; i < bytes; i += 64) {
    _mm_prefetch(reinterpret_cast<const char*>(words + bytes + i), _MM_HINT_T1);
    const __m512i line = _mm512_load_si512(words + i);
    _mm512_store_si512(numbers + 2 * i, _mm512_and_si512(line, low));
    _mm512_store_si512(numbers + 2 * i + 64, _mm512_and_si512(_mm512_srli_epi32(line, 4), low));
  }
  return numbers;
}

// One product of `height` rows (16, or fewer at the end).
template <int kUsedBlocks, class Tiles, int kRows = kTileRows>
void run_low_product(int32_t height, Tiles& tiles, const Product& p) {
  if constexpr (kRows > kLastRowsMin) {
    if (height < kRows) return run_low_product<kUsedBlocks, Tiles, kRows - 1>(height, tiles, p);
  }
  run_product<kRows, 1, kUsedBlocks>(tiles, p);
}

// Rows in tiles of `height`, one or two blocks of columns.
template <int kUsedBlocks, class Tiles>
void run_rows(const Rows& all, int32_t count, int32_t height, float* y, Tiles& tiles, Product& p) {
  for (int32_t row = 0; row < count;) {
    p.rows.q = all.q + row * p.k;
    p.rows.factors = all.factors + int64_t{row} / kTileRows * p.groups;
    p.y = y + row * p.y_stride;
    if (count - row >= kRowTiles * kTileRows) {
      run_product<kTileRows, kRowTiles, kUsedBlocks>(tiles, p);
      row += kRowTiles * kTileRows;
    } else {
      run_low_product<kUsedBlocks>(height, tiles, p);
      row += height;
    }
  }
}

// `count` rows in tiles of `height`, all columns of the range; y is the first row's.
template <class Tiles>
void gemm_tiles(const QuantMatrix& w, const Rows& rows, int32_t count, int32_t height,
                const GemmRange& range, float* y, uint8_t* scratch) {
  const TileShapes shapes = shapes_for(height);
  Tiles tiles(shapes);
  Product p;
  p.k = w.k;
  p.groups = w.k / w.group;
  p.group = w.group;
  p.y_stride = range.y_stride;
  for (int32_t column = range.begin; column < range.end; column += kBlocks * kBlockRows) {
    int used = 0;
    for (; used < kBlocks && column + used * kBlockRows < range.end; ++used) {
      const int64_t block = column / kBlockRows + used;
      auto* panel = reinterpret_cast<GroupScales*>(scratch + used * kPanelBytes);
      avx512::widen_scales(w, w.scales + block * avx512::block_scale_bytes(w), panel);
      p.block[used].panel = panel;
      p.block[used].numbers = spread_block(w, w.words + block * avx512::block_word_bytes(w),
                                           scratch + kBlocks * kPanelBytes + used * kNumberBytes);
      p.block[used].columns = avx512::column_mask(column + used * kBlockRows, range.end);
    }
    if (used == kBlocks)
      run_rows<kBlocks>(rows, count, height, y + column, tiles, p);
    else
      run_rows<1>(rows, count, height, y + column, tiles, p);
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
// rows nothing is written: nobody reads them.
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
  if (w.group < kGroupMin || range.rows < rows_min(w.group))
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
    if (whole > 0) gemm_tiles<Tiles>(w, rows, whole, kTileRows, range, y, bytes);
    if (low > 0) {
      rows.q += int64_t{whole} * w.k;
      rows.factors += int64_t{whole} / kTileRows * groups;
      gemm_tiles<Tiles>(w, rows, low, low, range, y + whole * range.y_stride, bytes);
    }
  }
  if (tiled < range.rows) gemm_few(w, x, range, tiled, scratch);
}

}  // namespace

void fill_gemm(Ops& ops) { ops.gemm_quant_int8 = gemm_quant_int8<HardwareTiles>; }
void fill_gemm_emulated(Ops& ops) { ops.gemm_quant_int8 = gemm_quant_int8<EmulatedTiles>; }

}  // namespace weir::kernels::amx
