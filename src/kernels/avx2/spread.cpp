#include "kernels/avx2/spread.h"

#include <immintrin.h>

#include "kernels/avx2/widen.h"
#include "kernels/quant_layout.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx2 {
namespace {

// Bit kFrom of each byte to bit kTo; what crosses into other bytes is for the caller to mask.
template <int kFrom, int kTo>
WEIR_INLINE __m256i move_bit(__m256i x) {
  if constexpr (kTo > kFrom) return _mm256_slli_epi32(x, kTo - kFrom);
  if constexpr (kTo < kFrom) return _mm256_srli_epi32(x, kFrom - kTo);
  return x;
}

// `low` and the bits of kMask of `x`.
template <char kMask>
WEIR_INLINE __m256i merge(__m256i x, __m256i low) {
  return _mm256_or_si256(_mm256_and_si256(x, _mm256_set1_epi8(kMask)), low);
}

// Elements of the 32 that begin at `step`, of 8 rows: quad 2 e is the even ones of eighth e,
// 2 e + 1 the odd ones. Numbers of kBits, of which those of 4 may stand for those of a table.
template <int kBits, int kQuad>
WEIR_INLINE __m256i quad(const uint8_t* step, __m256i table) {
  constexpr int e = kQuad / 2, odd = kQuad % 2;
  const auto line = [&](int i) WEIR_INLINE_LAMBDA {
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(step + 64 * i));
  };
  if constexpr (kBits == 8) {
    return line(kQuad);
  } else if constexpr (kBits <= 3) {
    const __m256i low = merge<3>(move_bit<2 * (e % 2) + 4 * odd, 0>(line(e / 2)), __m256i{});
    if constexpr (kBits == 2) return low;
    return merge<4>(move_bit<e + 4 * odd, 2>(line(2)), low);
  } else {
    const __m256i low = merge<15>(move_bit<4 * odd, 0>(line(e)), __m256i{});
    if constexpr (kBits == 5) return merge<16>(move_bit<e + 4 * odd, 4>(line(4)), low);
    if constexpr (kBits == 6)
      return merge<48>(move_bit<2 * (e % 2) + 4 * odd, 4>(line(4 + e / 2)), low);
    return _mm256_shuffle_epi8(table, low);
  }
}

template <int kBits>
void spread(const uint8_t* words, int32_t steps, __m256i table, uint8_t* out) {
  for (int32_t i = 0; i < steps; ++i, words += 64 * kBits, out += 512)
    repeat<8>([&](auto q) WEIR_INLINE_LAMBDA {
      repeat<2>([&](auto half) WEIR_INLINE_LAMBDA {
        _mm256_store_si256(reinterpret_cast<__m256i*>(out + 64 * q.value + 32 * half.value),
                           quad<kBits, q.value>(words + 32 * half.value, table));
      });
    });
}

// A grid's values as bytes without a sign, in each 16 bytes.
__m256i byte_table(Grid grid) {
  alignas(16) uint8_t bytes[16];
  for (int i = 0; i < 16; ++i)
    bytes[i] = static_cast<uint8_t>(grid == Grid::kIq4    ? kIq4Values[i] + kIq4Shift
                                    : grid == Grid::kE2m1 ? kE2m1Values[i] + kE2m1Shift
                                                          : i);
  return _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(bytes)));
}

WEIR_INLINE __m128i bytes8(const uint8_t* at) {
  return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(at));
}

WEIR_INLINE __m256 unsigned8(const uint8_t* at) {
  return _mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes8(at)));
}

WEIR_INLINE __m256 byte_scales8(ByteScale kind, const uint8_t* at) {
  switch (kind) {
    case ByteScale::kUnsigned:
      return unsigned8(at);
    case ByteScale::kSigned:
      return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes8(at)));
    case ByteScale::kE8m0:  // 0 stands for 2^-127, a denormal.
      return _mm256_castsi256_ps(_mm256_max_epu32(
          _mm256_slli_epi32(_mm256_cvtepu8_epi32(bytes8(at)), 23), _mm256_set1_epi32(0x00400000)));
    default:
      return _mm256_mul_ps(widen_e4m3(bytes8(at)), _mm256_set1_ps(kFloat8Unit));
  }
}

// Of half `half` of a block: scales and bias of group `g`.
void spread_half(const QuantMatrix& w, const uint8_t* scales, int32_t g, int32_t half, float* scale,
                 float* bias) {
  const uint8_t* at = scales + group_scales_at(w, g);
  __m256 off = _mm256_set1_ps(static_cast<float>(total_offset(w))), s, b = _mm256_setzero_ps();
  if (w.form == ScaleForm::kTwoLevel) {
    const auto* head = reinterpret_cast<const float*>(scales + run_head_at(w, g)) + 8 * half;
    s = _mm256_mul_ps(_mm256_loadu_ps(head), byte_scales8(w.byte_scale, at + 8 * half));
    if (w.mins) {
      const __m256 least =
          _mm256_mul_ps(_mm256_loadu_ps(head + kBlockRows), unsigned8(at + kBlockRows + 8 * half));
      _mm256_storeu_ps(scale, s);
      _mm256_storeu_ps(bias, _mm256_xor_ps(least, _mm256_set1_ps(-0.0f)));
      return;
    }
  } else {
    const int32_t bytes = float_bytes(w.scale_type);
    s = widen8(w.scale_type, at + 8 * half * bytes);
    if (w.form == ScaleForm::kZeros)
      off = _mm256_add_ps(off, unsigned8(at + kBlockRows * bytes + 8 * half));
    else if (w.form == ScaleForm::kPairs)
      b = widen8(w.scale_type, at + (kBlockRows + 8 * half) * bytes);
  }
  _mm256_storeu_ps(scale, s);
  _mm256_storeu_ps(bias, _mm256_sub_ps(b, _mm256_mul_ps(off, s)));
}

}  // namespace

void spread_numbers(const QuantMatrix& w, const uint8_t* words, int32_t steps, uint8_t* out) {
  const __m256i table = byte_table(w.grid);
  switch (w.bits) {
    case 2:
      return spread<2>(words, steps, table, out);
    case 3:
      return spread<3>(words, steps, table, out);
    case 4:
      return spread<4>(words, steps, table, out);
    case 5:
      return spread<5>(words, steps, table, out);
    case 6:
      return spread<6>(words, steps, table, out);
    default:
      return spread<8>(words, steps, table, out);
  }
}

void spread_scales(const QuantMatrix& w, const uint8_t* scales, int32_t begin, int32_t end,
                   float (*out)[2][kBlockRows]) {
  for (int32_t g = begin; g < end; ++g, ++out)
    for (int32_t half = 0; half < 2; ++half)
      spread_half(w, scales, g, half, (*out)[0] + 8 * half, (*out)[1] + 8 * half);
}

}  // namespace weir::kernels::avx2
