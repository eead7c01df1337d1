// quantise_rows: a group at a time, all in registers.
#include <immintrin.h>

#include "kernels/avx512/gemm.h"
#include "kernels/unroll.h"

namespace weir::kernels::avx512 {
namespace {

// One group of kVectors * 16 values, 1 or an even number of vectors. Magnitudes are compared as
// integers: see scalar/quantise.cpp.
template <int kVectors>
WEIR_INLINE void quantise_group(const float* x, int8_t* q, float* scale, float* sum) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  // Within each 8 bytes: elements 0 2 4 6 1 3 5 7.
  const __m256i order = _mm256_set_epi8(15, 13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0, 15,
                                        13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0);
  __m512 values[kVectors];
  __m512i largest = _mm512_setzero_si512();
  repeat<kVectors>([&](auto v) WEIR_INLINE_LAMBDA {
    values[v.value] = _mm512_loadu_ps(x + 16 * v.value);
    largest = _mm512_max_epi32(largest,
                               _mm512_and_si512(_mm512_castps_si512(values[v.value]), magnitude));
  });
  const __m128 absmax = _mm_castsi128_ps(_mm_cvtsi32_si128(_mm512_reduce_max_epi32(largest)));
  const __m128 levels = _mm_set_ss(127.0f);
  // A tiny group's scale and inverse are masked to 0.
  const __mmask8 keep = _mm_cmp_ss_mask(absmax, _mm_set_ss(kTinyGroup), _CMP_NLT_UQ);
  const __m128 group_scale = _mm_maskz_div_ss(keep, absmax, levels);
  const __m512 inverse = _mm512_broadcastss_ps(_mm_maskz_div_ss(keep, levels, absmax));
  __m512i total = _mm512_setzero_si512();
  repeat<kVectors / 2>([&](auto pair) WEIR_INLINE_LAMBDA {
    const __m512i a = _mm512_cvtps_epi32(_mm512_mul_ps(values[2 * pair.value], inverse));
    const __m512i b = _mm512_cvtps_epi32(_mm512_mul_ps(values[2 * pair.value + 1], inverse));
    total = _mm512_add_epi32(total, _mm512_add_epi32(a, b));
    const __m256i bytes = _mm256_set_m128i(_mm512_cvtsepi32_epi8(b), _mm512_cvtsepi32_epi8(a));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + 32 * pair.value),
                        _mm256_shuffle_epi8(bytes, order));
  });
  if constexpr (kVectors == 1) {
    total = _mm512_cvtps_epi32(_mm512_mul_ps(values[0], inverse));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(q),
                     _mm_shuffle_epi8(_mm512_cvtsepi32_epi8(total), _mm256_castsi256_si128(order)));
  }
  *scale = _mm_cvtss_f32(group_scale);
  *sum = *scale * static_cast<float>(_mm512_reduce_add_epi32(total));
}

}  // namespace

void quantise_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, QuantRows out) {
  const int32_t stride = out.k / out.group, groups = columns / out.group;
  for (int32_t m = 0; m < rows; ++m) {
    const float* values = x + m * x_stride;
    int8_t* q = out.q + int64_t{m} * out.k;
    float* scale = out.scale + int64_t{m} * stride;
    float* sum = out.sum + int64_t{m} * stride;
    for (int32_t g = 0; g < groups; ++g, values += out.group, q += out.group) {
      if (out.group == 16)
        quantise_group<1>(values, q, scale + g, sum + g);
      else if (out.group == 32)
        quantise_group<2>(values, q, scale + g, sum + g);
      else if (out.group == 64)
        quantise_group<4>(values, q, scale + g, sum + g);
      else
        quantise_group<8>(values, q, scale + g, sum + g);
    }
  }
}

}  // namespace weir::kernels::avx512
