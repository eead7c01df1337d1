// One tile of gemm_quant_int8: a block of 16 columns by a few rows.
//
// One kernel serves GEMV and GEMM: a line of bytes is one register, one dot instruction per row
// with the activations as broadcast memory operand. 12 integer and 12 float accumulators, one line,
// its halves and the group's scales fill the 32 registers.
//
// Ports decide (Intel: two for all 512-bit arithmetic): per group of 32 a tile of 12 costs 96 dots,
// 36 multiply-adds of the definition and 12 operations of unpacking, so 2/3 of the dots' peak is
// the bound; 2 columns by 6 rows would unpack twice as often, 24 integer accumulators would spill.
//
// For files of avx512/; everything is inlined or a template over Fetch.
#pragma once

#include <immintrin.h>

#include "kernels/avx512/numbers.h"
#include "kernels/avx512/panel.h"
#include "kernels/simd/weight_fetch.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512 {

// One tile's operands. Rows of q are `q_stride` bytes apart, of scale and sum `groups` floats.
struct Tile {
  const uint8_t* words;
  // The block's scales, one of these: see Scaling.
  const uint8_t* f16_scales;
  const GroupScales* panel;
  const float (*f32_scales)[2][kBlockRows];
  Grid grid;
  const int8_t* q;
  int64_t q_stride;
  const int8_t* next_q;  // The rows of the tile that comes next, which lie side by side.
  const float* scale;
  const float* sum;
  int32_t groups;
  int32_t steps;  // Of 32 elements in a group; a group of 16 has half a step.
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
enum class Scaling { kStoredF16, kPanelMagic, kF32 };

// Group `g`'s scales, -kMagic * scales and biases.
template <Scaling kScaling>
WEIR_INLINE void load_scales(const Tile& tile, int32_t g, __m512& scale, __m512& minus_magic,
                             __m512& bias) {
  if constexpr (kScaling == Scaling::kStoredF16) {
    const uint8_t* at = tile.f16_scales + int64_t{g} * 4 * kBlockRows;
    scale = widen16(FloatType::kF16, at);
    bias = widen16(FloatType::kF16, at + 2 * kBlockRows);
    minus_magic = _mm512_mul_ps(scale, _mm512_set1_ps(-kMagic));
  } else if constexpr (kScaling == Scaling::kPanelMagic) {
    scale = _mm512_load_ps(tile.panel[g].scale);
    minus_magic = _mm512_load_ps(tile.panel[g].minus_magic);
    bias = _mm512_load_ps(tile.panel[g].bias);
  } else {
    scale = _mm512_loadu_ps(tile.f32_scales[g][0]);
    bias = _mm512_loadu_ps(tile.f32_scales[g][1]);
  }
}

// Calls fetch.words() once for each kFetchStep of words, a step of 32 elements at a time.
template <int kBytes, class Fetch>
WEIR_INLINE void fetch_step(Fetch& fetch, int32_t& due) {
  if constexpr (kBytes % kFetchStep != 0) {
    due += kBytes;
    if (due >= kFetchStep) {
      due -= kFetchStep;
      fetch.words();
    }
    if (kBytes > kFetchStep && due >= kFetchStep) {
      due -= kFetchStep;
      fetch.words();
    }
  }
}

// As many bytes of the next rows as a step has read: their lines come from L2, in streams too short
// for the processor to foresee.
template <int kRows>
WEIR_INLINE void prefetch_rows(const char* next) {
  if constexpr (kRows >= 8)
    repeat<(kRows + 1) / 2>(
        [&](auto i) WEIR_INLINE_LAMBDA { _mm_prefetch(next + 64 * i.value, _MM_HINT_T0); });
}

// Adds the scaled dots of group `g` to the sums.
template <int kRows, Scaling kScaling>
WEIR_INLINE void scale_group(const Tile& tile, int32_t g, const __m512i* acc, __m512* c) {
  __m512 scale, minus_magic, bias;
  load_scales<kScaling>(tile, g, scale, minus_magic, bias);
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    const int64_t at = int64_t{m.value} * tile.groups + g;
    const __m512 scaled =
        kScaling != Scaling::kF32
            ? _mm512_fmadd_ps(_mm512_castsi512_ps(acc[m.value]), scale, minus_magic)
            : _mm512_mul_ps(_mm512_cvtepi32_ps(acc[m.value]), scale);
    c[m.value] = _mm512_fmadd_ps(scaled, _mm512_set1_ps(tile.scale[at]), c[m.value]);
    c[m.value] = _mm512_fmadd_ps(bias, _mm512_set1_ps(tile.sum[at]), c[m.value]);
  });
}

template <int kRows>
WEIR_INLINE void store_sums(const Tile& tile, const __m512* c) {
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
    _mm512_mask_storeu_ps(tile.y + m.value * tile.y_stride, tile.columns,
                          _mm512_add_ps(c[m.value], _mm512_setzero_ps()));
  });
}

template <int kRows, Numbers kNumbers, bool kSixteen, Scaling kScaling, class Fetch>
void run_tile(const Tile& tile, Fetch& next_weights) {
  constexpr bool kUseMagic = kScaling != Scaling::kF32;
  constexpr int kBases = (kRows + 2) / 3;
  constexpr int kBytes = kStepBytes<kNumbers>;
  const int8_t* base[kBases];
  repeat<kBases>([&](auto i)
                     WEIR_INLINE_LAMBDA { base[i.value] = tile.q + 3 * i.value * tile.q_stride; });
  const int64_t stride = tile.q_stride;
  const uint8_t* words = tile.words;
  Fetch fetch = next_weights;
  int32_t due = 0;
  const __m512i table = kNumbers == Numbers::kTable ? byte_table(tile.grid) : __m512i{};
  const char* next = reinterpret_cast<const char*>(tile.next_q);
  __m512 c[kRows];
  __m512i acc[kRows];
  repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA { c[m.value] = _mm512_setzero_ps(); });

  const auto begin_group = [&]() WEIR_INLINE_LAMBDA {
    repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
      acc[m.value] = kUseMagic ? _mm512_set1_epi32(kMagicBits) : _mm512_setzero_si512();
    });
  };
  // Eighths [first, first + count) of the step's 4.
  const auto add_eighths = [&](auto first, auto count) WEIR_INLINE_LAMBDA {
    repeat<count.value>([&](auto i) WEIR_INLINE_LAMBDA {
      constexpr int kEighth = first.value + i.value;
      if constexpr (kBytes % kFetchStep == 0 && kEighth % (4 * kFetchStep / kBytes) == 0)
        fetch.words();
      const Eighth x = load_eighth<kNumbers, kEighth>(words, table);
      repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
        dot<m.value, 8 * kEighth>(acc[m.value], x.even, base[m.value / 3], stride);
      });
      repeat<kRows>([&](auto m) WEIR_INLINE_LAMBDA {
        dot<m.value, 8 * kEighth + 4>(acc[m.value], x.odd, base[m.value / 3], stride);
      });
    });
  };
  const auto end_step = [&]() WEIR_INLINE_LAMBDA {
    fetch_step<kBytes>(fetch, due);
    words += kBytes;
    prefetch_rows<kRows>(next);
    next += 32 * kRows;
    repeat<kBases>([&](auto i) WEIR_INLINE_LAMBDA { base[i.value] += 32; });
  };
  const auto end_group = [&](int32_t g) WEIR_INLINE_LAMBDA {
    fetch.scales();
    scale_group<kRows, kScaling>(tile, g, acc, c);
  };

  if constexpr (kSixteen) {
    for (int32_t g = 0; g < tile.groups; g += 2) {
      repeat<2>([&](auto half) WEIR_INLINE_LAMBDA {
        begin_group();
        add_eighths(Index<2 * half.value>{}, Index<2>{});
        end_group(g + half.value);
      });
      end_step();
    }
  } else {
    for (int32_t g = 0; g < tile.groups; ++g) {
      begin_group();
      for (int32_t step = 0; step < tile.steps; ++step) {
        add_eighths(Index<0>{}, Index<4>{});
        end_step();
      }
      end_group(g);
    }
  }
  store_sums<kRows>(tile, c);
  next_weights = fetch;
}

// Rows from which on numbers that are not plain are spread to bytes for all tiles, instead of being
// unpacked by each (gemm_int8_few.cpp).
inline constexpr int kSpreadRowsMin = 5;

// A tile of `rows` rows, fewer than kSpreadRowsMin, whose numbers are not plain, with F32 scales.
template <class Fetch>
void run_unpacking(Numbers numbers, bool sixteen, int32_t rows, const Tile& tile, Fetch& next);

}  // namespace weir::kernels::avx512
