// gemm_quant_int8 on AMX tiles, with the bits of the other ISAs: the integer dots of a group are
// exact whoever adds them, and the floats follow in the order of ops.h.
//
// A line of the packed matrix, its nibbles spread to bytes, is a row of the tile that holds the
// weights ([k / 4][16 columns][4]); 16 activation rows are the other operand as they lie. One tile
// instruction does what 64 dots do; then the epilogue is the cost: per group and row a load of the
// sums, a conversion and three multiply-adds, where the tile instruction takes one cycle a row. So
// the sums of some groups are under way while those of the ones before are scaled.
#include <immintrin.h>

#include "kernels/amx/tile.h"
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/panel.h"
#include "kernels/isa.h"

namespace weir::kernels::amx {
namespace {

using avx512::GroupScales;

constexpr int kTileRows = 16;
// Below these counts VNNI is as fast: a tile costs the same for one row as for 16, twice as much
// per weight at group 32, whose tiles are half filled.
constexpr int32_t kRowsMin = 8;
constexpr int32_t kRowsMinGroup32 = 12;

// Parts of the scratch: scales of one block, its numbers as bytes, gathered rows.
constexpr int64_t kPanelBytes = int64_t{kMaxLayerK} / 32 * int64_t{sizeof(GroupScales)};
constexpr int64_t kNumberBytes = int64_t{kMaxLayerK} * kBlockRows;
constexpr int64_t kGatherBytes = kScratchBytes - kPanelBytes - kNumberBytes - 64;
static_assert(kGatherBytes >= kTileRows * (int64_t{kMaxLayerK} + kMaxLayerK / 32 * 8));

// Groups whose dots are under way or stored and not yet scaled. A load does not see what a tile
// store holds until the store has left the processor's queue, when everything before it is done:
// with two groups in flight each waits for the other, some 140 cycles a group (Sapphire Rapids).
constexpr int kInFlight = 4;
// Tile numbers: sums, one per group in flight; activations; weights.
constexpr int kActivations = kInFlight, kWeights = kInFlight + 1;
static_assert(kWeights < kTileCount);

struct Tile {
  const uint8_t* numbers;  // [k / 4][16][4]
  const GroupScales* panel;
  const int8_t* q;
  int64_t q_stride;
  const float* scale;
  const float* sum;
  int32_t groups;
  int32_t group;
  float* y;
  int64_t y_stride;
  __mmask16 columns;
};

TileShapes shapes_for(int32_t rows, int32_t group) {
  TileShapes shapes;
  const int32_t depth = group < 64 ? group : 64;  // Elements of k in a tile.
  for (int sums = 0; sums < kInFlight; ++sums) {
    shapes.rows[sums] = static_cast<uint8_t>(rows);
    shapes.row_bytes[sums] = 64;
  }
  shapes.rows[kActivations] = static_cast<uint8_t>(rows);
  shapes.row_bytes[kActivations] = static_cast<uint16_t>(depth);
  shapes.rows[kWeights] = static_cast<uint8_t>(depth / 4);
  shapes.row_bytes[kWeights] = 64;
  return shapes;
}

// The dots of group `g`, 16 rows by 16 columns, to `out`.
template <int kSums, class Tiles>
WEIR_INLINE void dot_group(Tiles& tiles, const Tile& tile, int32_t g, int32_t* out) {
  const int64_t first = int64_t{g} * tile.group;
  tiles.template zero<kSums>();
  for (int32_t i = 0; i < tile.group; i += 64) {
    tiles.template load<kActivations>(tile.q + first + i, tile.q_stride);
    tiles.template load<kWeights>(tile.numbers + (first + i) * kBlockRows, 64);
    tiles.template multiply_s8_u8<kSums, kActivations, kWeights>();
  }
  tiles.template store<kSums>(out, 64);
}

template <int kRows>
WEIR_INLINE void scale_group(const Tile& tile, int32_t g, const int32_t* dots, __m512* c) {
  const __m512 scale = _mm512_load_ps(tile.panel[g].scale);
  const __m512 bias = _mm512_load_ps(tile.panel[g].bias);
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    const int64_t at = int64_t{m.value} * tile.groups + g;
    const __m512 dot = _mm512_cvtepi32_ps(_mm512_load_si512(dots + m.value * kBlockRows));
    __m512& sum = c[m.value];
    sum = _mm512_fmadd_ps(_mm512_mul_ps(dot, scale), _mm512_set1_ps(tile.scale[at]), sum);
    sum = _mm512_fmadd_ps(bias, _mm512_set1_ps(tile.sum[at]), sum);
  });
}

template <int kRows, class Tiles>
void run_tile(Tiles& tiles, const Tile& tile) {
  alignas(64) int32_t dots[kInFlight][kTileRows * kBlockRows];
  __m512 c[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { c[m.value] = _mm512_setzero_ps(); });
  repeat<kInFlight>([&](auto i) WEIR_INLINE_LAMBDA {
    if (i.value < tile.groups) dot_group<i.value>(tiles, tile, i.value, dots[i.value]);
  });
  int32_t g = 0;
  for (; g + kInFlight <= tile.groups; g += kInFlight) {
    repeat<kInFlight>([&](auto i) WEIR_INLINE_LAMBDA {
      scale_group<kRows>(tile, g + i.value, dots[i.value], c);
      const int32_t next = g + i.value + kInFlight;
      if (next < tile.groups) dot_group<i.value>(tiles, tile, next, dots[i.value]);
    });
  }
  for (int32_t i = 0; g < tile.groups; ++g, ++i) scale_group<kRows>(tile, g, dots[i], c);
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    _mm512_mask_storeu_ps(tile.y + m.value * tile.y_stride, tile.columns,
                          _mm512_add_ps(c[m.value], _mm512_setzero_ps()));
  });
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

template <class Tiles, int kRows = kTileRows>
void run_rows(int32_t rows, Tiles& tiles, const Tile& tile) {
  if constexpr (kRows > kRowsMin) {
    if (rows < kRows) return run_rows<Tiles, kRows - 1>(rows, tiles, tile);
  }
  run_tile<kRows>(tiles, tile);
}

// Rows [first, first + count * tiles of `height`) of x, all columns of the range.
template <class Tiles>
void gemm_tiles(const QuantMatrix& w, const QuantRows& x, int32_t first, int32_t rows,
                int32_t height, const GemmRange& range, float* y, uint8_t* scratch) {
  auto* panel = reinterpret_cast<GroupScales*>(scratch);
  uint8_t* numbers = scratch + kPanelBytes;
  const TileShapes shapes = shapes_for(height, w.group);
  Tiles tiles(shapes);
  Tile tile;
  tile.panel = panel;
  tile.q_stride = w.k;
  tile.groups = w.k / w.group;
  tile.group = w.group;
  tile.y_stride = range.y_stride;
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    const int64_t block = column / kBlockRows;
    avx512::widen_scales(w, w.scales + block * avx512::block_scale_bytes(w), panel);
    tile.numbers = spread_block(w, w.words + block * avx512::block_word_bytes(w), numbers);
    tile.columns = avx512::column_mask(column, range.end);
    for (int64_t row = first; row < first + rows; row += height) {
      tile.q = x.q + row * w.k;
      tile.scale = x.scale + row * tile.groups;
      tile.sum = x.sum + row * tile.groups;
      tile.y = y + row * range.y_stride + column;
      run_rows(height, tiles, tile);
    }
  }
}

// Rows that lie side by side: whole tiles, then the rest as a lower tile or by VNNI.
template <class Tiles>
void gemm_rows(const QuantMatrix& w, const QuantRows& x, int32_t rows, const GemmRange& range,
               float* y, uint8_t* scratch) {
  const int32_t rows_min = w.group == 32 ? kRowsMinGroup32 : kRowsMin;
  const int32_t rest = rows % kTileRows, whole = rows - rest;
  if (whole > 0) gemm_tiles<Tiles>(w, x, 0, whole, kTileRows, range, y, scratch);
  if (rest >= rows_min) {
    gemm_tiles<Tiles>(w, x, whole, rest, rest, range, y, scratch);
  } else if (rest > 0) {
    QuantRows last = x;
    last.q += int64_t{whole} * w.k;
    last.scale += int64_t{whole} * (w.k / w.group);
    last.sum += int64_t{whole} * (w.k / w.group);
    GemmRange few = range;
    few.index = nullptr;
    few.rows = rest;
    few.y = y + whole * range.y_stride;
    avx512::gemm_quant_int8(w, last, few, scratch);
  }
}

template <class Tiles>
void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                     void* scratch) {
  auto* bytes = static_cast<uint8_t*>(scratch);
  if (range.rows < kRowsMin) return avx512::gemm_quant_int8(w, x, range, scratch);
  if (range.index == nullptr) return gemm_rows<Tiles>(w, x, range.rows, range, range.y, bytes);
  const int32_t groups = w.k / w.group;
  const int64_t row_bytes = int64_t{w.k} + groups * 8;
  const int32_t chunk = static_cast<int32_t>(kGatherBytes / row_bytes / kTileRows * kTileRows);
  for (int32_t first = 0; first < range.rows; first += chunk) {
    const int32_t rows = range.rows - first < chunk ? range.rows - first : chunk;
    QuantRows gathered = x;
    gathered.q = reinterpret_cast<int8_t*>(bytes + kPanelBytes + kNumberBytes);
    gathered.scale = reinterpret_cast<float*>(gathered.q + int64_t{rows} * w.k);
    gathered.sum = gathered.scale + int64_t{rows} * groups;
    avx512::gather_rows(x, range.index + first, rows, gathered);
    gemm_rows<Tiles>(w, gathered, rows, range, range.y + first * range.y_stride, bytes);
  }
}

}  // namespace

void fill_gemm(Ops& ops) { ops.gemm_quant_int8 = gemm_quant_int8<HardwareTiles>; }
void fill_gemm_emulated(Ops& ops) { ops.gemm_quant_int8 = gemm_quant_int8<EmulatedTiles>; }

}  // namespace weir::kernels::amx
