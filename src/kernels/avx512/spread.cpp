#include "kernels/avx512/spread.h"

#include <immintrin.h>

#include "kernels/avx512/numbers.h"
#include "kernels/avx512/panel.h"
#include "kernels/quant_layout.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512 {
namespace {

template <Numbers kNumbers>
void spread(const uint8_t* words, int32_t steps, __m512i table, uint8_t* out) {
  for (int32_t i = 0; i < steps; ++i, words += kStepBytes<kNumbers>, out += 512)
    repeat<4>([&](auto e) WEIR_INLINE_LAMBDA {
      const Eighth numbers = load_eighth<kNumbers, e.value>(words, table);
      _mm512_store_si512(out + 128 * e.value, numbers.even);
      _mm512_store_si512(out + 128 * e.value + 64, numbers.odd);
    });
}

WEIR_INLINE __m128i bytes16(const uint8_t* at) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
}

WEIR_INLINE __m512 unsigned16(const uint8_t* at) {
  return _mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(bytes16(at)));
}

template <ByteScale kKind>
WEIR_INLINE __m512 byte_scales16(const uint8_t* at) {
  if constexpr (kKind == ByteScale::kUnsigned) return unsigned16(at);
  if constexpr (kKind == ByteScale::kSigned)
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes16(at)));
  if constexpr (kKind == ByteScale::kE8m0)  // 0 stands for 2^-127, a denormal.
    return _mm512_castsi512_ps(_mm512_max_epu32(
        _mm512_slli_epi32(_mm512_cvtepu8_epi32(bytes16(at)), 23), _mm512_set1_epi32(0x00400000)));
  return _mm512_mul_ps(widen_e4m3(bytes16(at)), _mm512_set1_ps(kFloat8Unit));
}

template <ByteScale kKind>
void two_levels(const QuantMatrix& w, const uint8_t* scales, int32_t begin, int32_t end,
                float (*out)[2][kBlockRows]) {
  const int32_t in_run = kSuperGroup / w.group;
  const __m512 off = _mm512_set1_ps(static_cast<float>(total_offset(w)));
  for (int32_t g = begin; g < end;) {
    const int32_t run_end = (g / in_run + 1) * in_run < end ? (g / in_run + 1) * in_run : end;
    const uint8_t* head = scales + run_head_at(w, g);
    const uint8_t* at = scales + group_scales_at(w, g);
    const __m512 d = _mm512_loadu_ps(head);
    if (w.mins) {
      const __m512 dmin = _mm512_loadu_ps(head + 64);
      for (; g < run_end; ++g, ++out, at += 2 * kBlockRows) {
        _mm512_storeu_ps((*out)[0], _mm512_mul_ps(d, byte_scales16<kKind>(at)));
        const __m512 least = _mm512_mul_ps(dmin, unsigned16(at + kBlockRows));
        _mm512_storeu_ps((*out)[1], _mm512_xor_ps(least, _mm512_set1_ps(-0.0f)));
      }
    } else {
      for (; g < run_end; ++g, ++out, at += kBlockRows) {
        const __m512 scale = _mm512_mul_ps(d, byte_scales16<kKind>(at));
        _mm512_storeu_ps((*out)[0], scale);
        _mm512_storeu_ps((*out)[1], _mm512_sub_ps(_mm512_setzero_ps(), _mm512_mul_ps(off, scale)));
      }
    }
  }
}

// Pairs, scales alone, or scales with zeros.
template <FloatType kType, ScaleForm kForm>
void one_level(const QuantMatrix& w, const uint8_t* scales, int32_t begin, int32_t end,
               float (*out)[2][kBlockRows]) {
  constexpr int32_t kLine = kBlockRows * (kType == FloatType::kF32 ? 4 : 2);
  constexpr int32_t kGroup = kLine + (kForm == ScaleForm::kPairs    ? kLine
                                      : kForm == ScaleForm::kZeros ? kBlockRows
                                                                    : 0);
  const __m512 all_off = _mm512_set1_ps(static_cast<float>(total_offset(w)));
  const uint8_t* at = scales + int64_t{begin} * kGroup;
  for (int32_t g = begin; g < end; ++g, ++out, at += kGroup) {
    const __m512 scale = widen16(kType, at);
    __m512 bias = _mm512_setzero_ps(), off = all_off;
    if constexpr (kForm == ScaleForm::kZeros) off = _mm512_add_ps(off, unsigned16(at + kLine));
    if constexpr (kForm == ScaleForm::kPairs) bias = widen16(kType, at + kLine);
    _mm512_storeu_ps((*out)[0], scale);
    _mm512_storeu_ps((*out)[1], _mm512_sub_ps(bias, _mm512_mul_ps(off, scale)));
  }
}

template <FloatType kType>
void one_level(const QuantMatrix& w, const uint8_t* scales, int32_t begin, int32_t end,
               float (*out)[2][kBlockRows]) {
  if (w.form == ScaleForm::kZeros)
    one_level<kType, ScaleForm::kZeros>(w, scales, begin, end, out);
  else if (w.form == ScaleForm::kScales)
    one_level<kType, ScaleForm::kScales>(w, scales, begin, end, out);
  else
    one_level<kType, ScaleForm::kPairs>(w, scales, begin, end, out);
}

}  // namespace

void spread_numbers(const QuantMatrix& w, const uint8_t* words, int32_t steps, uint8_t* out) {
  const __m512i table = byte_table(w.grid);
  switch (numbers_of(w)) {
    case Numbers::kTwo:
      return spread<Numbers::kTwo>(words, steps, table, out);
    case Numbers::kThree:
      return spread<Numbers::kThree>(words, steps, table, out);
    case Numbers::kFour:
      return spread<Numbers::kFour>(words, steps, table, out);
    case Numbers::kTable:
      return spread<Numbers::kTable>(words, steps, table, out);
    case Numbers::kFive:
      return spread<Numbers::kFive>(words, steps, table, out);
    case Numbers::kSix:
      return spread<Numbers::kSix>(words, steps, table, out);
    case Numbers::kEight:
      return spread<Numbers::kEight>(words, steps, table, out);
  }
}

void spread_scales(const QuantMatrix& w, const uint8_t* scales, int32_t begin, int32_t end,
                   float (*out)[2][kBlockRows]) {
  if (w.form == ScaleForm::kTwoLevel) {
    switch (w.byte_scale) {
      case ByteScale::kUnsigned:
        return two_levels<ByteScale::kUnsigned>(w, scales, begin, end, out);
      case ByteScale::kSigned:
        return two_levels<ByteScale::kSigned>(w, scales, begin, end, out);
      case ByteScale::kE8m0:
        return two_levels<ByteScale::kE8m0>(w, scales, begin, end, out);
      case ByteScale::kE4m3:
        return two_levels<ByteScale::kE4m3>(w, scales, begin, end, out);
    }
  }
  if (w.scale_type == FloatType::kF32)
    return one_level<FloatType::kF32>(w, scales, begin, end, out);
  if (w.scale_type == FloatType::kF16)
    return one_level<FloatType::kF16>(w, scales, begin, end, out);
  one_level<FloatType::kBF16>(w, scales, begin, end, out);
}

}  // namespace weir::kernels::avx512
