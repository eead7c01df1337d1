// gemm_quant_int8 with VNNI: tiles of 16 columns by 1 to 12 rows.
//
// One kernel serves GEMV and GEMM: a line of the packed matrix is one register, its two nibbles two
// dot instructions per row with the activations as broadcast memory operand. 12 integer and 12
// float accumulators, one line, its halves and the group's scales fill the 32 registers.
//
// Ports decide (Intel: two for all 512-bit arithmetic): per group of 32 a tile of 12 costs 96 dots,
// 36 multiply-adds of the definition and 12 operations of unpacking, so 2/3 of the dots' peak is
// the bound; 2 columns by 6 rows would unpack twice as often, 24 integer accumulators would spill.
#include <immintrin.h>

#include "kernels/avx512/adjacent_rows.h"
#include "kernels/avx512/gemm.h"
#include "kernels/avx512/panel.h"
#include "kernels/simd/weight_fetch.h"

namespace weir::kernels::avx512 {
namespace {

constexpr int kTileRows = 12;
// One tile's operands. Rows of q are `q_stride` bytes apart, of scale and sum `groups` floats.
struct Tile {
  const uint8_t* words;
  const GroupScales* panel;
  const uint8_t* f16_scales;
  const int8_t* q;
  int64_t q_stride;
  const int8_t* next_q;  // The rows of the tile that comes next, which lie side by side.
  const float* scale;
  const float* sum;
  int32_t groups;
  int32_t steps;  // Of 32 elements in a group.
  float* y;
  int64_t y_stride;
  __mmask16 columns;
};

// acc += the four products of each lane of `u8` with the four bytes of row kRow at `kOffset`. Rows
// are addressed as one of four pointers, three rows apart, plus 0, 1 or 2 strides: twelve pointers
// would not fit the general registers.
template <int kRow, int kOffset>
WEIR_INLINE void dot(__m512i& acc, __m512i u8, const int8_t* base, int64_t stride) {
  if constexpr (kRow % 3 == 0)
    asm("vpdpbusd %c[offset](%[base])%{1to16%}, %[u8], %[acc]"
        : [acc] "+v"(acc)
        : [u8] "v"(u8), [base] "r"(base), [offset] "i"(kOffset));
  else
    asm("vpdpbusd %c[offset](%[base],%[stride],%c[scale])%{1to16%}, %[u8], %[acc]"
        : [acc] "+v"(acc)
        : [u8] "v"(u8), [base] "r"(base), [stride] "r"(stride), [scale] "i"(kRow % 3),
          [offset] "i"(kOffset));
}

// Where a tile's scales come from, and how a dot becomes a float.
enum class Scaling { kStoredF16, kPanelMagic, kPanelConverted };

// Group `g`'s scales, -kMagic * scales and biases.
template <Scaling kScaling>
WEIR_INLINE void load_scales(const Tile& tile, int32_t g, __m512& scale, __m512& minus_magic,
                             __m512& bias) {
  if constexpr (kScaling == Scaling::kStoredF16) {
    const uint8_t* at = tile.f16_scales + int64_t{g} * 4 * kBlockRows;
    scale = widen16(FloatType::kF16, at);
    bias = widen16(FloatType::kF16, at + 2 * kBlockRows);
    minus_magic = _mm512_mul_ps(scale, _mm512_set1_ps(-kMagic));
  } else {
    scale = _mm512_load_ps(tile.panel[g].scale);
    minus_magic = _mm512_load_ps(tile.panel[g].minus_magic);
    bias = _mm512_load_ps(tile.panel[g].bias);
  }
}

template <int kRows, bool kWide, Scaling kScaling, class Fetch>
void run_tile(const Tile& tile, Fetch& next_weights) {
  constexpr bool kUseMagic = kScaling != Scaling::kPanelConverted;
  constexpr int kBases = (kRows + 2) / 3;
  constexpr int kLines = kWide ? 8 : 4;  // Of 32 elements.
  const int8_t* base[kBases];
  repeat<kBases>([&](auto i)
                     WEIR_INLINE_LAMBDA { base[i.value] = tile.q + 3 * i.value * tile.q_stride; });
  const int64_t stride = tile.q_stride;
  const uint8_t* words = tile.words;
  Fetch fetch = next_weights;
  const __m512i low = _mm512_set1_epi8(15);
  const char* next = reinterpret_cast<const char*>(tile.next_q);
  __m512 c[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { c[m.value] = _mm512_setzero_ps(); });

  for (int32_t g = 0; g < tile.groups; ++g) {
    __m512i acc[kRows];
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      acc[m.value] = kUseMagic ? _mm512_set1_epi32(kMagicBits) : _mm512_setzero_si512();
    });
    for (int32_t step = 0; step < tile.steps; ++step) {
      repeat<kLines>([&](auto line) WEIR_INLINE_LAMBDA {
        if constexpr (line.value % 4 == 0) fetch.words();
        const __m512i x = _mm512_load_si512(words + 64 * line.value);
        if constexpr (kWide) {
          repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
            dot<m.value, 4 * line.value>(acc[m.value], x, base[m.value / 3], stride);
          });
        } else {
          const __m512i even = _mm512_and_si512(x, low);
          const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(x, 4), low);
          repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
            dot<m.value, 8 * line.value>(acc[m.value], even, base[m.value / 3], stride);
          });
          repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
            dot<m.value, 8 * line.value + 4>(acc[m.value], odd, base[m.value / 3], stride);
          });
        }
      });
      words += 64 * kLines;
      // As many bytes of the next rows as these have read: their lines come from L2, in streams too
      // short for the processor to foresee.
      if constexpr (kRows >= 8)
        repeat<(kRows + 1) / 2>(
            [&](auto i) WEIR_INLINE_LAMBDA { _mm_prefetch(next + 64 * i.value, _MM_HINT_T0); });
      next += 32 * kRows;
      repeat<kBases>([&](auto i) WEIR_INLINE_LAMBDA { base[i.value] += 32; });
    }
    fetch.scales();
    __m512 scale, minus_magic, bias;
    load_scales<kScaling>(tile, g, scale, minus_magic, bias);
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      const int64_t at = int64_t{m.value} * tile.groups + g;
      const __m512 scaled =
          kUseMagic ? _mm512_fmadd_ps(_mm512_castsi512_ps(acc[m.value]), scale, minus_magic)
                    : _mm512_mul_ps(_mm512_cvtepi32_ps(acc[m.value]), scale);
      c[m.value] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(tile.scale[at]), c[m.value]);
      c[m.value] = _mm512_fmadd_ps(bias, _mm512_set1_ps(tile.sum[at]), c[m.value]);
    });
  }
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    _mm512_mask_storeu_ps(tile.y + m.value * tile.y_stride, tile.columns,
                          _mm512_add_ps(c[m.value], _mm512_setzero_ps()));
  });
  next_weights = fetch;
}

template <bool kWide, Scaling kScaling, class Fetch>
void run_rows(int32_t rows, const Tile& tile, Fetch& next) {
  using Run = void (*)(const Tile&, Fetch&);
  static constexpr Run kRun[kTileRows + 1] = {
      nullptr,
      run_tile<1, kWide, kScaling, Fetch>,
      run_tile<2, kWide, kScaling, Fetch>,
      run_tile<3, kWide, kScaling, Fetch>,
      run_tile<4, kWide, kScaling, Fetch>,
      run_tile<5, kWide, kScaling, Fetch>,
      run_tile<6, kWide, kScaling, Fetch>,
      run_tile<7, kWide, kScaling, Fetch>,
      run_tile<8, kWide, kScaling, Fetch>,
      run_tile<9, kWide, kScaling, Fetch>,
      run_tile<10, kWide, kScaling, Fetch>,
      run_tile<11, kWide, kScaling, Fetch>,
      run_tile<12, kWide, kScaling, Fetch>,
  };
  kRun[rows](tile, next);
}

template <bool kWide, class Fetch>
void run_scaled(Scaling scaling, int32_t rows, const Tile& tile, Fetch& next) {
  switch (scaling) {
    case Scaling::kStoredF16:
      return run_rows<kWide, Scaling::kStoredF16>(rows, tile, next);
    case Scaling::kPanelMagic:
      return run_rows<kWide, Scaling::kPanelMagic>(rows, tile, next);
    case Scaling::kPanelConverted:
      return run_rows<kWide, Scaling::kPanelConverted>(rows, tile, next);
  }
}

}  // namespace

template <class Fetch>
void gemm_columns(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                  GroupScales* panel) {
  const int32_t rows = range.rows;
  const int64_t word_bytes = block_word_bytes(w), scale_bytes = block_scale_bytes(w);
  const int32_t tiles = (rows + kTileRows - 1) / kTileRows;
  const int32_t blocks = (range.end - range.begin + kBlockRows - 1) / kBlockRows;
  Fetch none;
  Fetch next(range.next, {.words = w.words + range.begin / kBlockRows * word_bytes,
                          .bytes = blocks * word_bytes,
                          .passes = tiles,
                          .stretch = word_bytes});
  for (int32_t column = range.begin; column < range.end; column += kBlockRows) {
    const int64_t block = column / kBlockRows;
    // One tile reads each scale once: straight from the matrix.
    const bool stored = tiles == 1 && w.scale_type == FloatType::kF16;
    const uint8_t* scales = w.scales + block * scale_bytes;
    const bool magic = !stored && widen_scales(w, scales, panel);
    Tile tile;
    tile.words = w.words + block * word_bytes;
    tile.panel = panel;
    tile.f16_scales = scales;
    tile.q_stride = w.k;
    tile.groups = w.k / w.group;
    tile.steps = w.group / 32;
    tile.y_stride = range.y_stride;
    tile.columns = column_mask(column, range.end);
    for (int32_t t = 0; t < tiles; ++t) {
      // Balanced: sizes differ by one at most.
      const int64_t first = int64_t{rows} * t / tiles;
      const int32_t count = static_cast<int32_t>(int64_t{rows} * (t + 1) / tiles - first);
      tile.q = x.q + first * w.k;
      tile.next_q = x.q + (t + 1 < tiles ? first + count : 0) * w.k;
      tile.scale = x.scale + first * tile.groups;
      tile.sum = x.sum + first * tile.groups;
      tile.y = range.y + first * range.y_stride + column;
      const Scaling scaling = stored  ? Scaling::kStoredF16
                              : magic ? Scaling::kPanelMagic
                                      : Scaling::kPanelConverted;
      Fetch& fetch = t == 0 || Fetch::kEveryPass ? next : none;
      w.bits == 8 ? run_scaled<true>(scaling, count, tile, fetch)
                  : run_scaled<false>(scaling, count, tile, fetch);
    }
  }
}

template void gemm_columns<OrderedFetch>(const QuantMatrix&, const QuantRows&, const GemmRange&,
                                         GroupScales*);

void gemm_quant_int8(const QuantMatrix& w, const QuantRows& x, const GemmRange& range,
                     void* scratch) {
  for_adjacent_rows(w, x, range, scratch, gemm_columns<PageFetch>);
}

}  // namespace weir::kernels::avx512
