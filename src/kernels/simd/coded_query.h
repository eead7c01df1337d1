// What both ways of attention to codes share: queries as integers, weights as bytes, pages that are
// not codes yet, and the tables by which codes become bytes.
#pragma once

#include <cstdint>

#include "kernels/codebook.h"
#include "kernels/coded_layout.h"
#include "kernels/simd/attend_block.h"
#include "kernels/simd/rotate.h"

namespace weir::kernels::simd {

// One query head of one row.
template <class V>
struct CodedQuery {
  Query<V> seen;
  const float* q = nullptr;
  const float* turned = nullptr;
  int32_t own = 0;                    // Its own page begins here: what lies before is codes.
  float unit = 0;                     // Of a product with integers, scales of keys aside.
  int32_t high_sum = 0, low_sum = 0;  // Of its bytes, times 255.
  float shift = 0;                    // Added to each of its sums of codes at the end.
};

// A query's values so far: those that are codes, turned, and those that are not.
struct CodedSums {
  float* coded = nullptr;
  float* numbers = nullptr;
};

// Everything a call is told, and where pages lie.
template <class V>
struct CodedCall {
  const CodedPages& coded;
  const KvPages& hot;
  const int32_t* hot_pages;
  const AttendArgs& args;
  float key_factor;  // Of their rotations.
  float value_factor;

  [[gnu::always_inline]] const uint8_t* page(int32_t block) const {
    return coded_head(coded, args.pages[block], args.kv_head);
  }
  [[gnu::always_inline]] const uint16_t* hot_keys(int32_t block) const {
    return keys_of<uint16_t>(hot, hot_pages[block], args.kv_head);
  }
};

// Tokens of a block of 256 that a query sees as codes; those of its own page and after it, which it
// sees as they are; and those of the sequence's first page, likewise, where that is not its own.
template <class V>
[[gnu::always_inline]] inline Span<V> coded_in(const CodedQuery<V>& query, int32_t block) {
  const Span<V> seen = seen_in(query.seen, block);
  return {max(seen.begin, kPageTokens - block), min(seen.end, query.own - block)};
}
template <class V>
[[gnu::always_inline]] inline Span<V> first_in(const CodedQuery<V>& query, int32_t block) {
  if (block > 0 || query.own == 0) return {0, 0};
  return {query.seen.begin, kPageTokens};
}
template <class V>
[[gnu::always_inline]] inline Span<V> hot_in(const CodedQuery<V>& query, int32_t block) {
  const Span<V> seen = seen_in(query.seen, block);
  return {max(seen.begin, query.own - block), seen.end};
}

// Begins a query. `turned`: where its numbers come to be, turned.
template <class V>
[[gnu::always_inline]] inline void start_coded(const CodedPages& coded, const AttendArgs& args,
                                               int32_t row, int32_t head, CodedQuery<V>& query,
                                               const float* turned) {
  start(query.seen, args, row);
  query.own = (args.first_position + row) / kPageTokens * kPageTokens;
  query.q = args.q + row * args.q_stride + int64_t{head} * coded.k_dim;
  query.turned = turned;
  query.shift = 0;
}

// The integers of a query that is turned. Byte i of a step of four, in a row of queries' steps: at
// bytes + i / 4 * stride + i % 4. `low` is null, but with keys of 8 bits.
template <class V, class B>
void code_query(const CodedPages& coded, CodedQuery<V>& query, uint8_t* high, uint8_t* low,
                int32_t stride) {
  using Float = typename V::Float;
  const float* const turned = query.turned;
  Float most = V::zero(), spoilt = V::zero();
  for (int32_t i = 0; i < coded.k_dim; i += V::kLanes) {
    const Float x = V::load(turned + i, V::first(min(coded.k_dim - i, V::kLanes)));
    most = V::max(V::abs(x), most);
    spoilt = V::fma(x, V::zero(), spoilt);
  }
  const bool wide = low != nullptr;
  const float largest = V::largest(most), bad = V::sum(spoilt);
  const float levels = wide ? 127.0f * 128 : 127.0f;
  const float inverse = bad == 0 && largest >= kTinyGroup ? levels / largest : 0;
  query.unit = (largest / levels + bad) / (2 * code_unit(coded.k_bits));
  typename B::Int high_sum = B::zero(), low_sum = B::zero();
  for (int32_t i = 0; i < coded.k_dim; i += V::kLanes) {
    const int32_t n = min(coded.k_dim - i, V::kLanes);
    const Float x = V::load(turned + i, V::first(n)) * V::broadcast(inverse);
    typename B::Int b = bad == 0 ? B::to_int(x) : B::zero();
    uint8_t bytes[V::kLanes];
    const auto put = [&](typename B::Int lanes, uint8_t * to) __attribute__((always_inline)) {
      B::store_low(bytes, lanes);
      if (stride == 4 && i + V::kLanes <= coded.k_dim) {
        __builtin_memcpy(to + i, bytes, V::kLanes);
        return;
      }
      for (int32_t k = 0; k < V::kLanes && i + k < key_lines(coded.k_dim, 4) * 8; k += 4)
        __builtin_memcpy(to + int64_t{i + k} / 4 * stride, bytes + k, 4);
    };
    if (wide) {
      const typename B::Int over = B::template right_signed<7>(B::add(b, B::all(64)));
      const typename B::Int rest = B::subtract(b, B::template left<7>(over));
      put(rest, low);
      low_sum = B::add(low_sum, rest);
      b = over;
    }
    put(b, high);
    high_sum = B::add(high_sum, b);
  }
  query.high_sum = 255 * B::sum(high_sum);
  query.low_sum = 255 * B::sum(low_sum);
}

// <q, m> * the means' scale, of G queries.
template <class V, class B, int G>
[[gnu::always_inline]] inline void mean_scores(const CodedPages& coded, const uint8_t* page,
                                               const CodedQuery<V>* queries, float* out) {
  constexpr int kSums = kSumLanes / V::kLanes;
  const uint8_t* const means = page + means_at(coded);
  typename V::Float sum[G][kSums];
  repeat<G * kSums>([&](auto i)
                        __attribute__((always_inline)) { sum[i / kSums][i % kSums] = V::zero(); });
  const auto add = [&](int32_t i, auto lanes_at) __attribute__((always_inline)) {
    repeat<kSums>([&](auto s) __attribute__((always_inline)) {
      const int32_t at = i + s * V::kLanes;
      const typename V::Float m = B::load_signed(means + at);
      const auto lanes = lanes_at(at);
      repeat<G>([&](auto h) __attribute__((always_inline)) {
        sum[h][s] = V::fma(V::load(queries[h].turned + at, lanes), m, sum[h][s]);
      });
    });
  };
  int32_t i = 0;
  for (; i + kSumLanes <= coded.k_dim; i += kSumLanes)
    add(
        i, [](int32_t) __attribute__((always_inline)) { return typename V::All{}; });
  if (i < coded.k_dim)
    add(
        i, [&](int32_t at) __attribute__((always_inline)) {
          return V::first(max(min(coded.k_dim - at, V::kLanes), 0));
        });
  float scale;
  __builtin_memcpy(&scale, page + mean_scale_at(coded), 4);
  repeat<G>([&](auto h) __attribute__((always_inline)) {
    if constexpr (kSums == 2) sum[h][0] = sum[h][0] + sum[h][1];
    out[h] = V::sum(sum[h][0]) * scale;
  });
}

// q . k from the sums of products of a vector of tokens.
template <class V, class B, bool kWide>
[[gnu::always_inline]] inline typename V::Float coded_scores(const CodedQuery<V>& query,
                                                             typename B::Int high,
                                                             typename B::Int low,
                                                             typename V::Float key_scales,
                                                             typename V::Float common) {
  const auto twice = [](typename B::Int sum, int32_t bytes) __attribute__((always_inline)) {
    return B::to_float(B::subtract(B::template left<1>(sum), B::all(bytes)));
  };
  typename V::Float dot = twice(high, query.high_sum);
  if constexpr (kWide) dot = V::fma(V::broadcast(128.0f), dot, twice(low, query.low_sum));
  return V::fma(dot * key_scales, V::broadcast(query.unit), common);
}

// The lanes of the vector at `t` that lie within a span, which may end before it.
template <class V>
[[gnu::always_inline]] inline typename V::Mask lanes_within(Span<V> span, int t) {
  return V::range(min(max(span.begin - t, 0), V::kLanes), max(min(span.end - t, V::kLanes), 0));
}

// The weights of a page's tokens as bytes. What a query does not see is 0.
template <class V, class B>
[[gnu::always_inline]] inline float weights_to_bytes(const CodedPages& coded, const uint8_t* page,
                                                     Span<V> seen, const float* weight,
                                                     CodedQuery<V>& query, uint8_t* bytes) {
  using Float = typename V::Float;
  constexpr int kVecs = kPageTokens / V::kLanes;
  const auto* const scales = reinterpret_cast<const uint16_t*>(page + value_scales_at(coded));
  Float w[kVecs], most = V::zero();
  repeat<kVecs>([&](auto v) __attribute__((always_inline)) {
    const int t = v * V::kLanes;
    w[v] = V::keep(lanes_within<V>(seen, t), V::load(weight + t) * V::load(scales + t));
    most = V::max(w[v], most);
  });
  const float largest = V::largest(most);
  const bool some = largest >= kTinyGroup;
  const Float inverse = V::broadcast(some ? 255 / largest : 0);
  Float sum = V::zero();
  repeat<kVecs>([&](auto v) __attribute__((always_inline)) {
    const Float n = V::round(V::keep(lanes_within<V>(seen, v * V::kLanes), w[v] * inverse));
    sum = sum + n;  // Whole numbers: exact.
    B::store_low(bytes + v * V::kLanes, B::to_int(n));
  });
  const float f = some ? largest / (255 * code_unit(coded.v_bits)) : 0;
  query.shift = __builtin_fmaf(0.5f * f, V::sum(sum), query.shift);
  return f;
}

// Tables of what codes stand for: without a sign, and as signed bytes.
template <class V>
struct CodeTables {
  alignas(16) uint8_t keys[16];
  alignas(16) uint8_t values[16];
};
template <class V>
[[gnu::always_inline]] inline void fill_tables(int32_t v_bits, CodeTables<V>& tables) {
  for (int32_t code = 0; code < 16; ++code) {
    tables.keys[code] = static_cast<uint8_t>((twice_value(4, code) + 255) / 2);
    const int32_t value = v_bits == 4 ? twice_value(4, code) : twice_value(3, code & 7);
    tables.values[code] = static_cast<uint8_t>((value - 1) / 2);
  }
}

// The signed bytes of `step` of a chunk's vector of dimensions, whose lines begin at `chunk`.
template <class V, class B, int kBits, int kStep>
[[gnu::always_inline]] inline typename B::Int value_bytes(const uint8_t* chunk,
                                                          typename B::Int table) {
  if constexpr (kBits == 8) return B::load(chunk + kStep * kCodedLine);
  if constexpr (kBits == 4) {
    typename B::Int x = B::load(chunk + kStep / 2 * kCodedLine);
    if constexpr (kStep % 2 == 1) x = B::template right<4>(x);
    return B::lookup(table, B::both(x, B::all_bytes(15)));
  }
  if constexpr (kBits == 3) {
    typename B::Int low = B::load(chunk + kStep / 4 * kCodedLine);
    typename B::Int high = B::load(chunk + 2 * kCodedLine);
    if constexpr (kStep % 4 > 0) low = B::template right<kStep % 4 * 2>(low);
    if constexpr (kStep > 2) high = B::template right<kStep - 2>(high);
    if constexpr (kStep < 2) high = B::template left<2 - kStep>(high);
    return B::lookup(table,
                     B::either(B::both(low, B::all_bytes(3)), B::both(high, B::all_bytes(4))));
  }
}

// score[p][h][t] = q[h] . k[t] for all tokens of P pages that are not codes, of G queries. Two
// pages at once where there is a first page beside a row's own: an addition waits for the one
// before it.
template <class V, int G, int P>
[[gnu::always_inline]] inline void hot_scores(const uint16_t* const (&keys)[P], int32_t k_dim,
                                              const CodedQuery<V>* queries,
                                              float* const (&score)[P]) {
  constexpr int kN = 2 * P;
  const float* q[G];
  repeat<G>([&](auto h) __attribute__((always_inline)) { q[h] = queries[h].q; });
  for (int t = 0; t < kPageTokens; t += 2 * V::kLanes) {
    typename V::Float sum[G][kN];
    repeat<G * kN>([&](auto i) __attribute__((always_inline)) { sum[i / kN][i % kN] = V::zero(); });
    for (int64_t d = 0; d < k_dim; ++d) {
      typename V::Float k[kN];
      repeat<kN>([&](auto v) __attribute__((always_inline)) {
        k[v] = V::load(keys[v / 2] + d * kPageTokens + t + v % 2 * V::kLanes);
      });
      repeat<G>([&](auto h) __attribute__((always_inline)) {
        const typename V::Float x = V::broadcast(q[h][d]);
        repeat<kN>([&](auto v)
                       __attribute__((always_inline)) { sum[h][v] = V::fma(x, k[v], sum[h][v]); });
      });
    }
    repeat<G * kN>([&](auto i) __attribute__((always_inline)) {
      constexpr int kH = decltype(i)::value / kN, kV = decltype(i)::value % kN;
      V::store(score[kV / 2] + kH * kBlockTokens + t + kV % 2 * V::kLanes, sum[kH][kV]);
    });
  }
}

// sums[h][d] += weight[h][t] * values[t][d] for the tokens of a span, ascending, of G queries and N
// vectors of dimensions; `lanes`: those of the last vector.
template <class V, int G, int N, class Lanes>
[[gnu::always_inline]] inline void add_hot_vectors(const uint16_t* values, int32_t v_dim,
                                                   Span<V> span, const float* weight, float* sums,
                                                   int32_t stride, Lanes lanes) {
  typename V::Float sum[G][N];
  repeat<G * N>([&](auto i) __attribute__((always_inline)) {
    sum[i / N][i % N] = V::load(sums + i / N * stride + i % N * V::kLanes);
  });
  for (int t = span.begin; t < span.end; ++t) {
    typename V::Float v[N];
    repeat<N>([&](auto n) __attribute__((always_inline)) {
      const uint16_t* const from = values + int64_t{t} * v_dim + n * V::kLanes;
      if constexpr (decltype(n)::value == N - 1)
        v[n] = V::load(from, lanes);
      else
        v[n] = V::load(from);
    });
    repeat<G>([&](auto h) __attribute__((always_inline)) {
      const typename V::Float w = V::broadcast(weight[h * kBlockTokens + t]);
      repeat<N>([&](auto n)
                    __attribute__((always_inline)) { sum[h][n] = V::fma(w, v[n], sum[h][n]); });
    });
  }
  repeat<G * N>([&](auto i) __attribute__((always_inline)) {
    V::store(sums + i / N * stride + i % N * V::kLanes, sum[i / N][i % N]);
  });
}

template <class V, int G>
[[gnu::always_inline]] inline void add_hot_values(const uint16_t* values, int32_t v_dim,
                                                  Span<V> span, const float* weight, float* sums,
                                                  int32_t stride) {
  constexpr int kN = V::kLanes == 16 ? 4 : 2;
  int32_t d = 0;
  for (; d + kN * V::kLanes <= v_dim; d += kN * V::kLanes)
    add_hot_vectors<V, G, kN>(values + d, v_dim, span, weight, sums + d, stride, typename V::All{});
  for (; d < v_dim; d += V::kLanes)
    add_hot_vectors<V, G, 1>(values + d, v_dim, span, weight, sums + d, stride,
                             V::first(min(v_dim - d, V::kLanes)));
}

// The output of a query: its sum of codes, shifted and turned back, and that of numbers, over the
// sum of exponentials. Adding 0 makes -0 a 0, which pages that another query sees as well must not
// decide.
template <class V, class B>
[[gnu::always_inline]] inline void finish_coded(const CodedCall<V>& call, int32_t row, int32_t head,
                                                const CodedQuery<V>& query, const CodedSums& sums) {
  using Float = typename V::Float;
  const AttendArgs& args = call.args;
  const Float inverse = V::broadcast(inverse_sum<V>(args, query.seen, head));
  const Float shift = V::broadcast(query.shift);
  float* const out = args.out + row * args.out_stride + int64_t{head} * call.coded.v_dim;
  turn_head<V, B>(
      call.coded.v_rotation, /*back=*/true, call.value_factor,
      [&](int32_t i, auto lanes)
          __attribute__((always_inline)) { return V::load(sums.coded + i, lanes) + shift; },
      [&](int32_t i, Float x, auto lanes) __attribute__((always_inline)) {
        V::store(out + i, (V::load(sums.numbers + i, lanes) + x) * inverse + V::zero(), lanes);
      });
}

}  // namespace weir::kernels::simd
