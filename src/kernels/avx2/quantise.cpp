// Rows into int8 groups, and rows of weights back into float32.
#include <immintrin.h>

#include "kernels/avx2/gemm.h"
#include "kernels/avx2/spread.h"
#include "kernels/avx2/widen.h"
#include "kernels/float8_layout.h"

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

// One group, kStep values at a time, 16 or 32. Magnitudes are compared as integers: see
// scalar/quantise.cpp.
template <int kStep>
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
  for (int32_t i = 0; i < group; i += kStep) {
    __m256i v[4] = {};
    repeat<kStep / 8>([&](auto n) WEIR_INLINE_LAMBDA {
      v[n.value] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + i + 8 * n.value), inverse));
      total = _mm256_add_epi32(total, v[n.value]);
    });
    const __m256i packed =
        _mm256_packs_epi16(_mm256_packs_epi32(v[0], v[1]), _mm256_packs_epi32(v[2], v[3]));
    const __m256i bytes = _mm256_shuffle_epi8(_mm256_permutevar8x32_epi32(packed, words), order);
    if constexpr (kStep == 32)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(q + i), bytes);
    else
      _mm_storeu_si128(reinterpret_cast<__m128i*>(q + i), _mm256_castsi256_si128(bytes));
  }
  *sum = *scale * static_cast<float>(sum_lanes(total));
}

template <FloatType kType>
void widen(const uint8_t* from, int32_t k, float* out) {
  constexpr int kBytes = float_type_bytes(kType);
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
      const float* values = x + m * x_stride + int64_t{g} * out.group;
      int8_t* q = out.q + at * out.group;
      if (out.group == 16)
        quantise_group<16>(values, 16, q, out.scale + at, out.sum + at);
      else
        quantise_group<32>(values, out.group, q, out.scale + at, out.sum + at);
    }
  }
}

namespace {

// `length` elements of row `lane` of a block whose words and scales are plain.
void dequantise_plain(const uint8_t* words, const uint8_t* scales, FloatType type, int32_t bits,
                      int32_t group, int32_t lane, int32_t length, float* out) {
  const int32_t scale_line = kBlockRows * float_bytes(type);
  words += 4 * lane;
  scales += lane * float_bytes(type);
  const __m256i nibbles = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  const __m256i interleave = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  for (int32_t g = 0; g < length / group; ++g, scales += 2 * scale_line) {
    const __m256 scale = widen_one(type, scales);
    const __m256 bias = widen_one(type, scales + scale_line);
    for (int32_t i = 0; i < group; i += 8, out += 8) {
      __m256i q;
      if (bits == 8) {  // Elements 0 2 4 6 in one word, 1 3 5 7 in the next.
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

}  // namespace

void dequantise_row(const QuantMatrix& w, int32_t row, float* out) {
  const int64_t block = row / kBlockRows;
  const int32_t lane = row % kBlockRows;
  const uint8_t* words = w.words + block * block_word_bytes(w);
  const uint8_t* scales = w.scales + block * block_scale_bytes(w);
  if (plain_numbers(w) && plain_scales(w))
    return dequantise_plain(words, scales, w.scale_type, w.bits, w.group, lane, w.k, out);
  // All 16 rows are spread, a stretch at a time.
  alignas(32) uint8_t numbers[kSuperGroup * kBlockRows];
  alignas(32) float floats[kSuperGroup / 16][2][kBlockRows];
  for (int32_t first = 0; first < w.k; first += kSuperGroup) {
    const int32_t length = w.k - first < kSuperGroup ? w.k - first : kSuperGroup;
    spread_numbers(w, words + int64_t{first} * 2 * w.bits, length / kPackStep, numbers);
    spread_scales(w, scales, first / w.group, (first + length) / w.group, floats);
    dequantise_plain(numbers, reinterpret_cast<const uint8_t*>(floats), FloatType::kF32, 8, w.group,
                     lane, length, out + first);
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

void widen_float8_row(const Float8Matrix& w, int32_t row, float* out) {
  const int32_t block = row / kBlockRows, lane = row % kBlockRows;
  const uint8_t* from = w.numbers + block * block_number_bytes(w) + lane;
  const float* scales = w.scales + block * block_scales(w) + (w.row_scales ? lane : 0);
  for (int32_t i = 0; i < w.k; i += 8, from += 8 * kBlockRows) {
    alignas(8) uint8_t bytes[8];
    for (int j = 0; j < 8; ++j) bytes[j] = from[j * kBlockRows];
    const float scale = scales[i / w.scale_columns * scale_lanes(w)] * kFloat8Unit;
    const __m256 numbers = widen_e4m3(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
    _mm256_storeu_ps(out + i, _mm256_mul_ps(numbers, _mm256_set1_ps(scale)));
  }
}

}  // namespace weir::kernels::avx2
