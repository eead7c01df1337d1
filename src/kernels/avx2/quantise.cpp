// Rows into int8 groups, and rows of weights back into float32.
#include <immintrin.h>

#include "kernels/avx2/gemm.h"
#include "kernels/avx2/widen.h"

namespace weir::kernels::avx2 {
namespace {

WEIR_INLINE int32_t max_lane(__m256i v) {
  __m128i m = _mm_max_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, _MM_SHUFFLE(1, 0, 3, 2)));
  m = _mm_max_epi32(m, _mm_shuffle_epi32(m, _MM_SHUFFLE(2, 3, 0, 1)));
  return _mm_cvtsi128_si32(m);
}

WEIR_INLINE int32_t sum_lanes(__m256i v) {
  __m128i s = _mm_add_epi32(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, _MM_SHUFFLE(1, 0, 3, 2)));
  s = _mm_add_epi32(s, _mm_shuffle_epi32(s, _MM_SHUFFLE(2, 3, 0, 1)));
  return _mm_cvtsi128_si32(s);
}

// One group. Magnitudes are compared as integers: see scalar/quantise.cpp.
WEIR_INLINE void quantise_group(const float* x, int32_t group, int8_t* q, float* scale,
                                float* sum) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i largest = _mm256_setzero_si256();
  for (int32_t i = 0; i < group; i += 8)
    largest = _mm256_max_epi32(
        largest, _mm256_and_si256(_mm256_castps_si256(_mm256_loadu_ps(x + i)), magnitude));
  const float absmax = _mm_cvtss_f32(_mm_castsi128_ps(_mm_cvtsi32_si128(max_lane(largest))));
  const bool tiny = absmax < kTinyGroup;
  *scale = tiny ? 0 : absmax / 127.0f;
  const __m256 inverse = _mm256_set1_ps(tiny ? 0 : 127.0f / absmax);
  // Packing works within halves of 16 bytes and leaves words of four values in the order 0 2 4 6 1
  // 3 5 7; `words` undoes it, `order` is that of QuantMatrix within each 8 bytes.
  const __m256i words = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  const __m256i order = _mm256_set_epi8(15, 13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0, 15,
                                        13, 11, 9, 14, 12, 10, 8, 7, 5, 3, 1, 6, 4, 2, 0);
  __m256i total = _mm256_setzero_si256();
  for (int32_t i = 0; i < group; i += 32) {
    __m256i v[4];
    repeat<4>([&](auto n) WEIR_INLINE_LAMBDA {
      v[n.value] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 8 * n.value), inverse));
      total = _mm256_add_epi32(total, v[n.value]);
    });
    const __m256i packed =
        _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i),
                        _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(packed, words), order));
  }
  *sum = *scale * static_cast<float>(sum_lanes(total));
}

template <FloatType kType>
void widen(const uint8_t* from, int32_t k, float* out) {
  constexpr int kBytes = kType == FloatType::kF32 ? 4 : 2;
  int32_t i = 0;
  for (; i + 8 <= k; i += 8) _mm256_storeu_ps(out + i, widen8<kType>(from + int64_t{i} * kBytes));
  if (i < k)
    _mm256_maskstore_ps(out + i, lanes_below(k - i),
                        widen_some<kType>(from + int64_t{i} * kBytes, k - i));
}

// One stored float, broadcast.
WEIR_INLINE __m256 widen_one(FloatType type, const uint8_t* at) {
  alignas(32) uint8_t bytes[32] = {};
  __builtin_memcpy(bytes, at, static_cast<uint64_t>(float_bytes(type)));
  return _mm256_broadcastss_ps(_mm256_castps256_ps128(widen8(type, bytes)));
}

WEIR_INLINE int32_t word_at(const uint8_t* at) {
  int32_t word;
  __builtin_memcpy(&word, at, sizeof word);
  return word;
}

}  // namespace

void quantise_rows(const float* x, int64_t x_stride, int32_t rows, int32_t columns, QuantRows out) {
  const int32_t groups = out.k / out.group;
  for (int32_t m = 0; m < rows; ++m) {
    for (int32_t g = 0; g < columns / out.group; ++g) {
      const int64_t at = int64_t{m} * groups + g;
      quantise_group(x + m * x_stride + int64_t{g} * out.group, out.group, out.q + at * out.group,
                     out.scale + at, out.sum + at);
    }
  }
}

void dequantise_row(const QuantMatrix& w, int32_t row, float* out) {
  const int64_t block = row / kBlockRows;
  const int32_t lane = row % kBlockRows;
  const int32_t scale_line = kBlockRows * float_bytes(w.scale_type);
  const uint8_t* words = w.words + block * block_word_bytes(w) + 4 * lane;
  const uint8_t* scales =
      w.scales + block * block_scale_bytes(w) + lane * float_bytes(w.scale_type);
  const __m256i nibbles = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  const __m256i interleave = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int32_t g = 0; g < w.k / w.group; ++g, scales += 2 * scale_line) {
    const __m256 scale = widen_one(w.scale_type, scales);
    const __m256 bias = widen_one(w.scale_type, scales + scale_line);
    for (int32_t i = 0; i < w.group; i += 8, out += 8) {
      __m256i q;
      if (w.bits == 8) {  // Elements 0 2 4 6 in one word, 1 3 5 7 in the next.
        const __m128i bytes =
            _mm_insert_epi32(_mm_cvtsi32_si128(word_at(words)), word_at(words + 64), 1);
        q = _mm256_permutevar8x32_epi32(_mm256_cvtepu8_epi32(bytes), interleave);
        words += 128;
      } else {
        q = _mm256_and_si256(_mm256_srlv_epi32(_mm256_set1_epi32(word_at(words)), nibbles),
                             _mm256_set1_epi32(15));
        words += 64;
      }
      _mm256_storeu_ps(out, _mm256_fmadd_ps(scale, _mm256_cvtepi32_ps(q), bias));
    }
  }
}

void widen_row(const FloatMatrix& w, int32_t row, float* out) {
  const uint8_t* from =
      static_cast<const uint8_t*>(w.rows) + int64_t{row} * w.k * float_bytes(w.type);
  switch (w.type) {
    case FloatType::kF32:
      return widen<FloatType::kF32>(from, w.k, out);
    case FloatType::kF16:
      return widen<FloatType::kF16>(from, w.k, out);
    case FloatType::kBF16:
      return widen<FloatType::kBF16>(from, w.k, out);
  }
}

}  // namespace weir::kernels::avx2
