// A page of codes from its numbers, over any Vec and Bytes: in the order of coded_ops.h, so the
// bits are scalar's. While scales are looked for, tokens lie in lanes, and no sum crosses them.
#pragma once

#include <cstdint>

#include "kernels/codebook.h"
#include "kernels/coded_layout.h"
#include "kernels/coded_ops.h"
#include "kernels/simd/math.h"
#include "kernels/simd/rotate.h"

namespace weir::kernels::simd {

// What makes codes of a token's numbers, and numbers of its codes.
struct TokenScales {
  float factor[kPageTokens];
  float scale[kPageTokens];
};

// What levels of 3 or 4 bits are taken as: their magnitudes, or their numbers.
inline constexpr float kLevelNumbers[kCodeLevels4] = {0, 1, 2, 3, 4, 5, 6, 7};

// Magnitudes |u| in bins of a quarter, of which none holds two thresholds: what stands for one of a
// bin up to its threshold, and above it. The last bins, from 2.5 on, have none.
struct LevelBins {
  static constexpr int kCount = 16;
  static constexpr float kPerUnit = 4;
  alignas(64) float threshold[kCount] = {};
  alignas(64) float below[kCount] = {};
  alignas(64) float above[kCount] = {};

  [[gnu::always_inline]] constexpr LevelBins(const float* thresholds, const float* levels,
                                             int count) {
    int level = 0;
    for (int bin = 0; bin < kCount; ++bin) {
      below[bin] = levels[level];
      const float end = static_cast<float>(bin + 1) / kPerUnit;
      const bool has_one = level + 1 < count && thresholds[level] < end;
      threshold[bin] = has_one ? thresholds[level++] : __builtin_inff();
      above[bin] = levels[level];
    }
  }
};
template <int kBits, const float* kLevels>
inline constexpr LevelBins kLevelBins = kBits == 4 ? LevelBins(kThresholds4, kLevels, kCodeLevels4)
                                                   : LevelBins(kThresholds3, kLevels, kCodeLevels3);

// levels[0], or where |u| is above the first threshold levels[1], and so on.
template <class V, int kBits, const float* kLevels>
[[gnu::always_inline]] inline typename V::Float level(typename V::Float magnitude) {
  using Float = typename V::Float;
  if constexpr (V::kLanes == LevelBins::kCount) {
    constexpr const LevelBins& kBins = kLevelBins<kBits, kLevels>;
    // NaN goes to the first bin.
    const Float bin =
        V::min(V::broadcast(LevelBins::kCount - 1), magnitude * V::broadcast(LevelBins::kPerUnit));
    return V::select(V::greater(magnitude, V::look_up(kBins.threshold, bin)),
                     V::look_up(kBins.above, bin), V::look_up(kBins.below, bin));
  } else {
    constexpr int kCount = kBits == 4 ? kCodeLevels4 : kCodeLevels3;
    Float x = V::broadcast(kLevels[0]);
    repeat<kCount - 1>([&](auto i) __attribute__((always_inline)) {
      const float threshold = kBits == 4 ? kThresholds4[i] : kThresholds3[kBits == 4 ? 0 : i];
      x = V::select(V::greater(magnitude, V::broadcast(threshold)), V::broadcast(kLevels[i + 1]),
                    x);
    });
    return x;
  }
}

// The code of 8 bits, as a number.
template <class V>
[[gnu::always_inline]] inline typename V::Float byte_code(typename V::Float u) {
  return V::round(V::max(u + V::broadcast(kCodeMax8), V::zero()));
}

template <class V>
struct CodeSums {
  typename V::Float uc, cc;
};

// <u, c> and <c, c> of N vectors of tokens, numbers r [dim][32]. Of 8 bits r takes the place of u.
template <class V, int kBits, int N>
[[gnu::always_inline]] inline void code_sums(const float* r, int32_t dim,
                                             const typename V::Float* factor, CodeSums<V>* sums) {
  using Float = typename V::Float;
  Float uc[N], cc[N];
  repeat<N>([&](auto v) __attribute__((always_inline)) { uc[v] = cc[v] = V::zero(); });
  for (int32_t i = 0; i < dim; ++i, r += kPageTokens)
    repeat<N>([&](auto v) __attribute__((always_inline)) {
      Float u = V::load(r + v * V::kLanes), c;
      if constexpr (kBits == 8) {
        c = byte_code<V>(u * factor[v]) - V::broadcast(kCodeMax8);
      } else {
        // Code and number have one sign, which both products lose.
        u = V::abs(u * factor[v]);
        c = level < V, kBits, kBits == 4 ? kMagnitudes4 : kMagnitudes3 > (u);
      }
      uc[v] = V::fma(u, c, uc[v]);
      cc[v] = V::fma(c, c, cc[v]);
    });
  repeat<N>([&](auto v) __attribute__((always_inline)) { sums[v] = {uc[v], cc[v]}; });
}

// The scales of N vectors of tokens.
template <class V, int kBits, int N>
void find_scales(const float* r, int32_t dim, bool unbiased, float* factors, float* scales) {
  using Float = typename V::Float;
  Float squares[N], most[N], factor[N];
  for (int v = 0; v < N; ++v) squares[v] = most[v] = V::zero();
  for (int32_t i = 0; i < dim; ++i)
    for (int v = 0; v < N; ++v) {
      const Float x = V::load(r + i * kPageTokens + v * V::kLanes);
      squares[v] = V::fma(x, x, squares[v]);
      most[v] = V::max(V::abs(x), most[v]);
    }
  const Float unit = V::broadcast(code_unit(kBits));
  const Float root = V::sqrt(V::broadcast(static_cast<float>(dim)));
  CodeSums<V> best[N];
  Float norm[N];
  if constexpr (kBits == 8) {
    for (int v = 0; v < N; ++v) factor[v] = V::broadcast(kCodeMax8) / most[v];
    code_sums<V, kBits, N>(r, dim, factor, best);
  } else {
    Float inverse[N], gain[N];
    for (int v = 0; v < N; ++v) {
      norm[v] = V::sqrt(squares[v]);
      inverse[v] = root / norm[v];
      gain[v] = V::broadcast(-1.0f);
      factor[v] = inverse[v];
      best[v] = {V::zero(), V::zero()};
    }
    for (int s = 0; s < kSearchSteps; ++s) {
      const float step = kSearch[s];
      Float to_step[N];
      CodeSums<V> sums[N];
      for (int v = 0; v < N; ++v) to_step[v] = inverse[v] / V::broadcast(step);
      code_sums<V, kBits, N>(r, dim, to_step, sums);
      for (int v = 0; v < N; ++v) {
        const Float found = sums[v].uc * sums[v].uc * V::broadcast(step * step) / sums[v].cc;
        const typename V::Mask better = V::greater(found, gain[v]);
        gain[v] = V::select(better, found, gain[v]);
        factor[v] = V::select(better, to_step[v], factor[v]);
        best[v].uc = V::select(better, sums[v].uc * V::broadcast(step), best[v].uc);
        best[v].cc = V::select(better, sums[v].cc, best[v].cc);
      }
    }
  }
  for (int v = 0; v < N; ++v) {
    Float scale;
    if constexpr (kBits == 8) {
      scale = unbiased ? squares[v] * unit / best[v].uc : best[v].uc * unit / best[v].cc;
    } else {
      scale = unbiased ? norm[v] * root * unit / best[v].uc
                       : norm[v] / root * (best[v].uc * unit) / best[v].cc;
    }
    const typename V::Mask tiny = V::greater(V::broadcast(kTinyGroup), most[v]);
    scale = V::select(tiny, V::zero(), scale);
    factor[v] = V::select(tiny, V::zero(), factor[v]);
    // Where it is not less than infinity, or NaN.
    const typename V::Mask endless = V::not_less(squares[v], V::broadcast(__builtin_inff()));
    scale = V::select(endless, V::broadcast(__builtin_nanf("")), scale);
    factor[v] = V::select(endless, V::zero(), factor[v]);
    V::store(factors + v * V::kLanes, factor[v]);
    V::store(scales + v * V::kLanes, scale);
  }
}

template <class V, int kBits>
void find_page_scales(const float* r, int32_t dim, bool unbiased, TokenScales& out) {
  constexpr int kVecs = 2;
  for (int t = 0; t < kPageTokens; t += kVecs * V::kLanes)
    find_scales<V, kBits, kVecs>(r + t, dim, unbiased, out.factor + t, out.scale + t);
}

// Codes of a vector of numbers, as integers.
template <class V, class B, int kBits>
[[gnu::always_inline]] inline typename V::Float codes_of(typename V::Float u) {
  if constexpr (kBits == 8) return byte_code<V>(u);
  constexpr float kLevels = kBits == 4 ? kCodeLevels4 : kCodeLevels3;
  const typename V::Float n = level<V, kBits, kLevelNumbers>(V::abs(u));
  return V::select(V::greater(V::zero(), u), V::broadcast(kLevels - 1) - n,
                   V::broadcast(kLevels) + n);
}

// Lines of key codes; tokens in lanes.
template <class V, class B, int kBits>
void put_key_codes(const float* r, int32_t dim, const TokenScales& scales, uint8_t* out) {
  using Int = typename B::Int;
  constexpr int kDims = key_line_dims(kBits);
  for (int t = 0; t < kPageTokens; t += V::kLanes) {
    const typename V::Float factor = V::load(scales.factor + t);
    uint8_t* to = out + t / kHalfPage * kCodedLine + t % kHalfPage * 4;
    for (int32_t i = 0; i < dim; i += kDims, to += 2 * kCodedLine) {
      Int word = B::zero();
      repeat<kDims>([&](auto k) __attribute__((always_inline)) {
        if (i + k >= dim) return;
        const typename V::Float u = V::load(r + (i + k) * kPageTokens + t) * factor;
        constexpr int kK = decltype(k)::value;
        word = B::either(
            word, B::template left<kK % 4 * 8 + kK / 4 * 4>(B::to_int(codes_of<V, B, kBits>(u))));
      });
      B::store(to, word);
    }
  }
}

// Lines of value codes, of numbers [32][dim]; dimensions in lanes.
template <class V, class B, int kBits>
void put_value_codes(const float* values, int32_t dim, const TokenScales& scales, uint8_t* out) {
  using Int = typename B::Int;
  for (int32_t i = 0; i < dim; i += V::kLanes) {
    const typename V::Mask lanes = V::first(min(dim - i, V::kLanes));
    uint8_t* const to = out + int64_t{i / kChunkDims} * kCodedLine * kBits + i % kChunkDims * 4;
    const auto code = [&](int t) __attribute__((always_inline)) {
      const typename V::Float u =
          V::load(values + int64_t{t} * dim + i, lanes) * V::broadcast(scales.factor[t]);
      typename V::Float c = codes_of<V, B, kBits>(u);
      if constexpr (kBits == 8) c = c - V::broadcast(128.0f);
      return B::both(B::to_int(V::keep(lanes, c)), B::all(255));
    };
    if constexpr (kBits == 3) {
      Int high = B::zero();
      for (int line = 0; line < 2; ++line) {
        Int low = B::zero();
        repeat<16>([&](auto k) __attribute__((always_inline)) {
          constexpr int kK = decltype(k)::value;
          const Int x = code(line * 16 + kK);
          low = B::either(low, B::template left<kK % 4 * 8 + kK / 4 * 2>(B::both(x, B::all(3))));
          const Int bit = B::template left<kK % 4 * 8 + kK / 4>(B::template right<2>(x));
          high = B::either(high, line == 0 ? bit : B::template left<4>(bit));
        });
        B::store(to + line * kCodedLine, low);
      }
      B::store(to + 2 * kCodedLine, high);
    } else {
      constexpr int kTokens = 32 / kBits;  // Of a line.
      for (int line = 0; line < kPageTokens / kTokens; ++line) {
        Int word = B::zero();
        repeat<kTokens>([&](auto k) __attribute__((always_inline)) {
          constexpr int kK = decltype(k)::value;
          word =
              B::either(word, B::template left<kK % 4 * 8 + kK / 4 * 4>(code(line * kTokens + kK)));
        });
        B::store(to + line * kCodedLine, word);
      }
    }
  }
}

// Keys r [dim][32] less their mean, which goes to the page.
template <class V, class B>
void centre_keys(const CodedPages& to, float* r, uint8_t* out) {
  using Float = typename V::Float;
  constexpr int kVecs = kPageTokens / V::kLanes;
  float* const mean = r + int64_t{to.k_dim} * kPageTokens;  // After them.
  float most = 0;
  for (int32_t i = 0; i < to.k_dim; ++i) {
    Float x[kVecs];
    repeat<kVecs>([&](auto v) __attribute__((always_inline)) {
      x[v] = V::load(r + i * kPageTokens + v * V::kLanes);
    });
    constexpr int kSums = kVecs / 2;
    Float sum[kSums];  // Token t and t + 16.
    repeat<kSums>([&](auto v) __attribute__((always_inline)) { sum[v] = x[v] + x[v + kSums]; });
    if constexpr (kSums == 2) sum[0] = sum[0] + sum[1];
    const float m = V::sum(sum[0]) * (1.0f / kPageTokens);
    mean[i] = m;
    const float size = m < 0 ? -m : m;
    most = most < size ? size : most;
  }
  const float scale = most < kTinyGroup ? 0 : most / 127;
  const float inverse = most < kTinyGroup ? 0 : 127 / most;
  __builtin_memcpy(out + mean_scale_at(to), &scale, 4);
  for (int32_t i = 0; i < to.k_dim; i += V::kLanes) {
    const int32_t n = min(to.k_dim - i, V::kLanes);
    Float x = V::round(V::load(mean + i, V::first(n)) * V::broadcast(inverse));
    x = V::min(V::max(x, V::broadcast(-127.0f)), V::broadcast(127.0f));
    B::store_low(out + means_at(to) + i, B::to_int(x));
    float read[V::kLanes];
    V::store(read, x * V::broadcast(scale));
    for (int32_t k = 0; k < n; ++k)
      repeat<kVecs>([&](auto v) __attribute__((always_inline)) {
        float* const at = r + (i + k) * kPageTokens + v * V::kLanes;
        V::store(at, V::load(at) - V::broadcast(read[k]));
      });
  }
}

// to[c][r] = from[r][c], of numbers or halves.
template <class V, class E>
void transpose(const E* from, int32_t rows, int32_t columns, float* to) {
  for (int32_t r = 0; r < rows; r += V::kLanes)
    for (int32_t c = 0; c < columns; c += V::kLanes) {
      const int32_t n_rows = min(rows - r, V::kLanes), n_columns = min(columns - c, V::kLanes);
      typename V::Float square[V::kLanes];
      repeat<V::kLanes>([&](auto k) __attribute__((always_inline)) {
        square[k] = k < n_rows ? V::load(from + int64_t{r + k} * columns + c, V::first(n_columns))
                               : V::zero();
      });
      V::transpose(square);
      repeat<V::kLanes>([&](auto k) __attribute__((always_inline)) {
        if (k < n_columns) V::store(to + int64_t{c + k} * rows + r, square[k], V::first(n_rows));
      });
    }
}

// n halves as numbers; n is a multiple of a vector.
template <class V>
void widen_numbers(const uint16_t* from, int32_t n, float* to) {
  for (int32_t i = 0; i < n; i += V::kLanes) V::store(to + i, V::load(from + i));
}

template <class V>
[[gnu::always_inline]] inline void put_scales(const float* scales, uint8_t* out) {
  for (int t = 0; t < kPageTokens; t += V::kLanes)
    V::store(reinterpret_cast<uint16_t*>(out) + t, V::load(scales + t));
}

template <class V, class B, int kBits>
void encode_keys(const CodedPages& to, const float* r, TokenScales& scales, uint8_t* out) {
  find_page_scales<V, kBits>(r, to.k_dim, true, scales);
  put_key_codes<V, B, kBits>(r, to.k_dim, scales, out);
}
template <class V, class B, int kBits>
void encode_values(const CodedPages& to, const float* values, const float* r, TokenScales& scales,
                   uint8_t* out) {
  find_page_scales<V, kBits>(r, to.v_dim, false, scales);
  put_value_codes<V, B, kBits>(values, to.v_dim, scales, out + value_codes_at(to));
}

template <class V, class B>
void encode_page(const CodedPages& to, int32_t page, const KvPages& hot, int32_t hot_page,
                 int32_t head, void* scratch) {
  uint8_t* const out = coded_head(to, page, head);
  const auto* const keys = reinterpret_cast<const uint16_t*>(hot.base + hot_page * hot.page_bytes +
                                                             head * hot.head_bytes);
  const uint16_t* const values = keys + int64_t{to.k_dim} * kPageTokens;
  // A page of numbers, tokens in lanes, and a mean; and the same numbers token by token.
  static_assert((2 * kPageTokens + 1) * kCodedDimMax * int64_t{sizeof(float)} <= kScratchBytes);
  auto* const r = static_cast<float*>(scratch);
  float* const tokens = r + (kPageTokens + 1) * kCodedDimMax;
  TokenScales key_scales, value_scales;
  // What is beyond the numbers of a line, or of a byte for each dimension, is zeros.
  const int64_t values_at = value_codes_at(to);
  __builtin_memset(out + key_scales_at(to), 0,
                   static_cast<uint64_t>(values_at - key_scales_at(to)));
  transpose<V>(keys, to.k_dim, kPageTokens, tokens);
  rotate<V, B>(to.k_rotation, false, kPageTokens, tokens);
  transpose<V>(tokens, kPageTokens, to.k_dim, r);
  centre_keys<V, B>(to, r, out);
  to.k_bits == 4 ? encode_keys<V, B, 4>(to, r, key_scales, out)
                 : encode_keys<V, B, 8>(to, r, key_scales, out);
  __builtin_memset(out + values_at, 0, static_cast<uint64_t>(coded_head_bytes(to) - values_at));
  widen_numbers<V>(values, kPageTokens * to.v_dim, tokens);
  rotate<V, B>(to.v_rotation, false, kPageTokens, tokens);
  transpose<V>(tokens, kPageTokens, to.v_dim, r);
  switch (to.v_bits) {
    case 3:
      encode_values<V, B, 3>(to, tokens, r, value_scales, out);
      break;
    case 4:
      encode_values<V, B, 4>(to, tokens, r, value_scales, out);
      break;
    default:
      encode_values<V, B, 8>(to, tokens, r, value_scales, out);
  }
  // So a value that is not finite spoils all that sees its token.
  for (int t = 0; t < kPageTokens; ++t)
    if (value_scales.scale[t] != value_scales.scale[t]) key_scales.scale[t] = value_scales.scale[t];
  put_scales<V>(key_scales.scale, out + key_scales_at(to));
  put_scales<V>(value_scales.scale, out + value_scales_at(to));
}

}  // namespace weir::kernels::simd
