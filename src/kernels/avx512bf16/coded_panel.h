// A page of codes (coded_layout.h), and one of numbers beside such pages, as panels of bf16 tiles:
// keys and values turned, each number what its code stands for times its scale, a key's with the
// page's mean, rounded once.
//
// For files of avx512bf16/ and amx/: everything is inlined or a template.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "kernels/avx512/attention.h"
#include "kernels/avx512bf16/attention_panel.h"
#include "kernels/codebook.h"
#include "kernels/coded_layout.h"

namespace weir::kernels::avx512bf16 {

// Lanes 0 0 1 1 ... 7 7 of x, and 8 8 9 9 ... 15 15: two neighbours of each lane's four codes come
// to stand side by side.
WEIR_INLINE void put_twice(__m512i x, __m512i& low, __m512i& high) {
  const __m512i order = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
  low = _mm512_permutexvar_epi32(order, x);
  high = _mm512_permutexvar_epi32(_mm512_add_epi32(order, _mm512_set1_epi32(8)), x);
}
WEIR_INLINE void put_twice(__m512 x, __m512& low, __m512& high) {
  __m512i a, b;
  put_twice(_mm512_castps_si512(x), a, b);
  low = _mm512_castsi512_ps(a);
  high = _mm512_castsi512_ps(b);
}

// A row of a tile, of 16 pairs: those of 8 lanes, then those of the other 8.
WEIR_INLINE void store_row(__m512 low, __m512 high, uint16_t* row) {
  _mm512_store_si512(row, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
}

WEIR_INLINE __m512 load_halves(const uint8_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

// x[0] x[1] x[0] x[1] ...
WEIR_INLINE __m512 pairs_of(const float* x) {
  int64_t both;
  __builtin_memcpy(&both, x, sizeof both);
  return _mm512_castsi512_ps(_mm512_set1_epi64(both));
}

// What codes of 3 or 4 bits stand for, in units of the code's own; those of 3 bits twice.
template <int kBits>
struct CodeValues {
  alignas(64) float of[kLanes] = {};
  constexpr CodeValues() {
    for (int32_t code = 0; code < kLanes; ++code)
      of[code] = 0.5f * static_cast<float>(twice_value(kBits, kBits == 3 ? code & 7 : code));
  }
};
template <int kBits>
inline constexpr CodeValues<kBits> kCodeValues;

// Of codes of 8 bits that stand twice, bytes 2 kPair and 2 kPair + 1 side by side, each as kMagic +
// code: a byte in the middle of the number 32768.
inline constexpr float kMagic = 32768;
template <int kPair>
WEIR_INLINE __m512 byte_numbers(__m512i twice) {
  // Byte 1 of even lanes is the first one, of odd lanes the second one.
  const auto from = [](int lane) { return (4 * lane + 2 * kPair + lane % 2) << 8; };
  const __m512i order = _mm512_broadcast_i32x4(_mm_set_epi32(from(3), from(2), from(1), from(0)));
  return _mm512_castsi512_ps(_mm512_mask_shuffle_epi8(_mm512_castps_si512(_mm512_set1_ps(kMagic)),
                                                      0x2222222222222222, twice, order));
}

// Keys of a page become panel [2 tiles of 16 tokens][k_dim / 32] tiles.
template <int kBits>
void decode_keys(const CodedPages& coded, const uint8_t* page, uint16_t* panel) {
  const int64_t tile = int64_t{coded.k_dim} / kStep * kTileElements;  // From 16 tokens to the next.
  alignas(64) float means[kDimsMax];
  float mean_scale;
  __builtin_memcpy(&mean_scale, page + mean_scale_at(coded), sizeof mean_scale);
  for (int32_t d = 0; d < coded.k_dim; d += kLanes) {
    const auto* const bytes = reinterpret_cast<const __m128i*>(page + means_at(coded) + d);
    const __m512 mean = _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(bytes)));
    _mm512_store_ps(means + d, _mm512_mul_ps(mean, _mm512_set1_ps(mean_scale)));
  }
  const __m512 table = _mm512_load_ps(kCodeValues<4>.of);
  const __m512 unit = _mm512_set1_ps(1 / code_unit(kBits));
  const __m512 middle = _mm512_set1_ps(kMagic + kCodeMax8);
  for (int half = 0; half < kColumnTiles; ++half) {
    __m512 low_scales, high_scales;
    put_twice(_mm512_mul_ps(load_halves(page + key_scales_at(coded) + half * 2 * kHalfPage), unit),
              low_scales, high_scales);
    const uint8_t* line = page + half * kCodedLine;
    uint16_t* const to = panel + half * tile;
    for (int32_t d = 0; d < coded.k_dim; d += key_line_dims(kBits), line += 2 * kCodedLine) {
      __m512i low, high;
      put_twice(_mm512_loadu_si512(line), low, high);
      repeat<key_line_dims(kBits) / 2>([&](auto pair) WEIR_INLINE_LAMBDA {
        constexpr int kPair = decltype(pair)::value;
        const int32_t at = d + 2 * kPair;
        const __m512 mean = pairs_of(means + at);
        const auto key = [&](__m512i twice, __m512 scales) WEIR_INLINE_LAMBDA {
          if constexpr (kBits == 8)
            return _mm512_fmadd_ps(_mm512_sub_ps(byte_numbers<kPair>(twice), middle), scales, mean);
          // Nibbles of bytes 0 to 3 come first, then the upper ones. A lookup takes 4 bits.
          constexpr int kFirst = kPair % 2 * 16 + kPair / 2 * 4;
          const __m512i shifts = _mm512_set1_epi64((int64_t{kFirst + 8} << 32) + kFirst);
          return _mm512_fmadd_ps(_mm512_permutexvar_ps(_mm512_srlv_epi32(twice, shifts), table),
                                 scales, mean);
        };
        store_row(key(low, low_scales), key(high, high_scales),
                  to + at / kStep * kTileElements + at % kStep / 2 * 32);
      });
    }
  }
}

// The codes of 3 or 4 bits of step kOf of a chunk, a byte each; of 4 bits in its lower half.
template <int kBits, int kOf>
WEIR_INLINE __m512i step_codes(const uint8_t* chunk) {
  if constexpr (kBits == 4) {
    const __m512i x = _mm512_loadu_si512(chunk + kOf / 2 * kCodedLine);
    return kOf % 2 == 0 ? x : _mm512_srli_epi32(x, 4);
  }
  const __m512i low =
      _mm512_srli_epi32(_mm512_loadu_si512(chunk + kOf / 4 * kCodedLine), kOf % 4 * 2);
  const __m512i line = _mm512_loadu_si512(chunk + 2 * kCodedLine);
  const __m512i high =
      kOf < 2 ? _mm512_slli_epi32(line, 2 - kOf) : _mm512_srli_epi32(line, kOf - 2);
  // The lower two bits of one, the third of the other.
  const __m512i three = _mm512_set1_epi8(3);
  const __m512i mixed = _mm512_ternarylogic_epi32(three, low, high, 0xca);
  return _mm512_and_si512(mixed, _mm512_set1_epi8(7));
}

// `scales`: of a page's tokens, over the unit of codes. Pairs of tokens have a table of their own,
// what codes stand for times the one's scale and times the other's.
template <int kBits>
WEIR_INLINE void look_values_up(const uint8_t* codes, int32_t chunks, const float* scales,
                                uint16_t* panel) {
  const __m512 values = _mm512_load_ps(kCodeValues<kBits>.of);
  // The words of a lane: its bytes 0 and 1.
  const __m512i order = _mm512_broadcast_i32x4(
      _mm_set_epi32(int(0x800d800c), int(0x80098008), int(0x80058004), int(0x80018000)));
  const auto look_up = [&](__m512i bytes, __m512i table) WEIR_INLINE_LAMBDA {
    // The lower half of the byte, and 16 for the second token.
    const __m512i index =
        _mm512_ternarylogic_epi32(_mm512_shuffle_epi8(bytes, order), _mm512_set1_epi32(0x000f000f),
                                  _mm512_set1_epi32(0x00100000), 0xea);
    return _mm512_permutexvar_epi16(index, table);
  };
  repeat<kPageSteps>([&](auto step) WEIR_INLINE_LAMBDA {
    constexpr int kOf = decltype(step)::value;
    __m512i tables[2];
    repeat<2>([&](auto pair) WEIR_INLINE_LAMBDA {
      const float* const scale = scales + kOf * kStepTokens + 2 * pair;
      tables[pair] = reinterpret_cast<__m512i>(
          _mm512_cvtne2ps_pbh(_mm512_mul_ps(values, _mm512_set1_ps(scale[1])),
                              _mm512_mul_ps(values, _mm512_set1_ps(scale[0]))));
    });
    uint16_t* row = panel + kOf * kStepTokens / 2 * 32;
    const uint8_t* chunk = codes;
    for (int32_t c = 0; c < chunks; ++c, chunk += kBits * kCodedLine, row += kValueTile) {
      const __m512i bytes = step_codes<kBits, kOf>(chunk);
      _mm512_store_si512(row, look_up(bytes, tables[0]));
      _mm512_store_si512(row + 32, look_up(_mm512_srli_epi32(bytes, 16), tables[1]));
    }
  });
}

// The same of 8 bits. (kMagic + code) * scale - (kMagic + kCodeMax8) * scale is off by at most a
// thousandth of a step.
WEIR_INLINE void widen_bytes(const uint8_t* codes, int32_t chunks, const float* scales,
                             uint16_t* panel) {
  const __m512 middle = _mm512_set1_ps(-(kMagic + kCodeMax8));
  for (int step = 0; step < kPageSteps; ++step) {
    __m512 scale[2], offset[2];
    repeat<2>([&](auto pair) WEIR_INLINE_LAMBDA {
      scale[pair] = pairs_of(scales + step * kStepTokens + 2 * pair);
      offset[pair] = _mm512_mul_ps(scale[pair], middle);
    });
    const uint8_t* line = codes + step * kCodedLine;
    uint16_t* row = panel + step * kStepTokens / 2 * 32;
    for (int32_t c = 0; c < chunks; ++c, line += 8 * kCodedLine, row += kValueTile) {
      __m512i low, high;
      put_twice(_mm512_xor_si512(_mm512_loadu_si512(line), _mm512_set1_epi8(-128)), low, high);
      repeat<2>([&](auto pair) WEIR_INLINE_LAMBDA {
        constexpr int kPair = decltype(pair)::value;
        const auto value = [&](__m512i twice) WEIR_INLINE_LAMBDA {
          return _mm512_fmadd_ps(byte_numbers<kPair>(twice), scale[pair], offset[pair]);
        };
        store_row(value(low), value(high), row + kPair * 32);
      });
    }
  }
}

// Values of a page become a page of panel [v_dim / 16][page] tiles. Those whose key was not finite
// are NaN: its score is lost among exponentials.
template <int kBits>
void decode_values(const CodedPages& coded, const uint8_t* page, uint16_t* panel) {
  alignas(64) float scales[kPageTokens];
  const __m512 unit = _mm512_set1_ps(1 / code_unit(kBits));
  for (int t = 0; t < kPageTokens; t += kLanes) {
    const __m512 key = load_halves(page + key_scales_at(coded) + 2 * t);
    const __m512 value = load_halves(page + value_scales_at(coded) + 2 * t);
    _mm512_store_ps(scales + t,
                    _mm512_fmadd_ps(key, _mm512_setzero_ps(), _mm512_mul_ps(value, unit)));
  }
  const uint8_t* const codes = page + value_codes_at(coded);
  const int32_t chunks = coded.v_dim / kChunkDims;
  if constexpr (kBits == 8)
    widen_bytes(codes, chunks, scales, panel);
  else
    look_values_up<kBits>(codes, chunks, scales, panel);
}

// --- Numbers, turned as what is codes is.

// kCount vectors, `step` apart, by a Walsh-Hadamard transform.
template <int kCount>
WEIR_INLINE void turn_columns(float* x, int64_t step) {
  __m512 y[kCount];
  repeat<kCount>([&](auto i) WEIR_INLINE_LAMBDA { y[i] = _mm512_load_ps(x + i * step); });
  repeat<3>([&](auto stage) WEIR_INLINE_LAMBDA {
    constexpr int kApart = 1 << decltype(stage)::value;
    if constexpr (kApart < kCount)
      repeat<kCount>([&](auto i) WEIR_INLINE_LAMBDA {
        constexpr int kI = decltype(i)::value;
        if constexpr ((kI & kApart) == 0) {
          const __m512 a = y[kI], b = y[kI + kApart];
          y[kI] = _mm512_add_ps(a, b);
          y[kI + kApart] = _mm512_sub_ps(a, b);
        }
      });
  });
  repeat<kCount>([&](auto i) WEIR_INLINE_LAMBDA { _mm512_store_ps(x + i * step, y[i]); });
}

// [dimension][16]: 16 vectors side by side. REQUIRES: r.order * r.width == r.dim.
WEIR_INLINE void rotate_columns(const Rotation& r, float* x) {
  const int64_t count = int64_t{r.dim} * kLanes;
  for (int64_t apart = kLanes, left = r.width; left > 1;) {
    const int factor = left >= 8 ? 8 : static_cast<int>(left);
    for (int64_t part = 0; part < count; part += factor * apart)
      for (int64_t i = part; i < part + apart; i += kLanes) {
        if (factor == 8)
          turn_columns<8>(x + i, apart);
        else if (factor == 4)
          turn_columns<4>(x + i, apart);
        else
          turn_columns<2>(x + i, apart);
      }
    apart *= factor;
    left /= factor;
  }
  if (r.order == 1) return;
  __m512 from[kDimsMax];
  for (int32_t b = 0; b < r.width; ++b) {
    for (int32_t c = 0; c < r.order; ++c)
      from[c] = _mm512_load_ps(x + (int64_t{c} * r.width + b) * kLanes);
    for (int32_t a = 0; a < r.order; ++a) {
      __m512 sum = _mm512_setzero_ps();
      for (int32_t c = 0; c < r.order; ++c)
        sum = _mm512_fmadd_ps(_mm512_set1_ps(r.matrix[a * r.order + c]), from[c], sum);
      _mm512_store_ps(x + (int64_t{a} * r.width + b) * kLanes, sum);
    }
  }
}

// keys [k_dim][32] become panel [2 tiles of 16 tokens][k_dim / 32] tiles, turned. `room`: floats of
// 16 keys.
WEIR_INLINE void turn_keys(const uint16_t* keys, const Rotation& rotation, float* room,
                           uint16_t* panel) {
  const int64_t tile = int64_t{rotation.dim} / kStep * kTileElements;
  const __m512 root = _mm512_sqrt_ps(_mm512_set1_ps(static_cast<float>(rotation.dim)));
  const __m512 factor = _mm512_div_ps(_mm512_set1_ps(1), root);
  for (int half = 0; half < kColumnTiles; ++half, keys += kLanes, panel += tile) {
    for (int32_t d = 0; d < rotation.dim; ++d) {
      const auto* const from = reinterpret_cast<const __m256i*>(keys + int64_t{d} * kPageTokens);
      const __m512 sign = _mm512_mul_ps(_mm512_set1_ps(rotation.signs[d]), factor);
      _mm512_store_ps(room + d * kLanes,
                      _mm512_mul_ps(_mm512_cvtph_ps(_mm256_loadu_si256(from)), sign));
    }
    rotate_columns(rotation, room);
    // a[0] b[0] a[1] b[1] ... of two dimensions' 16.
    const __m512i pairs =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    for (int32_t d = 0; d < rotation.dim; d += 2)
      _mm512_store_si512(panel + d / kStep * kTileElements + d % kStep / 2 * 32,
                         _mm512_permutexvar_epi16(pairs, round32(room + d * kLanes)));
  }
}

// values [32][v_dim] become a page of panel [v_dim / 16][page] tiles, turned; tokens outside
// [first, end) 0. `room`: floats of 16 values.
WEIR_INLINE void turn_values(const uint16_t* values, const Rotation& rotation, int32_t first,
                             int32_t end, float* room, uint16_t* panel) {
  const int32_t n = kLanes * rotation.dim;
  for (int32_t t = 0; t < kPageTokens; t += kLanes, values += n) {
    for (int32_t i = 0; i < n; i += kLanes)
      _mm512_store_ps(room + i, load_halves(reinterpret_cast<const uint8_t*>(values + i)));
    avx512::rotate(rotation, /*back=*/false, kLanes, room);
    widen_values(room, rotation.dim, kLanes, first - t, end - t, panel + t / 2 * 32);
  }
}

}  // namespace weir::kernels::avx512bf16
