// Attention of one row, straight from the pages: the query heads of a group share each load of keys
// and values, and memory is read in the order of the pages, prefetched two pages ahead.
#pragma once

#include <cstdint>

#include "kernels/simd/attend_block.h"

namespace weir::kernels::simd {

// More heads than this go in several passes, or as a tile.
inline constexpr int kDecodeHeads = 8;

// Where a block's pages lie, and what to prefetch while each is read.
template <class V, class E>
struct BlockPages {
  int first = 0;  // Pages [first, end) of the block hold what is seen.
  int end = 0;
  const E* keys[kBlockPages];
  const E* values[kBlockPages];
  const E* keys_ahead[kBlockPages];
  const E* values_ahead[kBlockPages];
};

template <class V, class E>
[[gnu::always_inline]] inline void locate(const KvPages& kv, const AttendArgs& args,
                                          int32_t block_begin, Span<V> seen, int32_t end,
                                          BlockPages<V, E>& at) {
  // A prototype on Zen 5 read pages in random order at 10 GB/s without prefetch, 13 one page ahead,
  // 23-25 two pages ahead, 26-28 with a touch of the page 8 ahead for its address translation.
  constexpr int kAhead = 2;
  const int32_t* pages = args.pages + block_begin / kPageTokens;
  const int32_t page_count = (end - block_begin + kPageTokens - 1) / kPageTokens;
  at.first = seen.begin / kPageTokens;
  at.end = (seen.end + kPageTokens - 1) / kPageTokens;
  for (int i = at.first; i < at.end; ++i) {
    at.keys[i] = keys_of<E>(kv, pages[i], args.kv_head);
    at.values[i] = values_of<E>(kv, pages[i], args.kv_head);
    if (i + kBlockPages < page_count)
      __builtin_prefetch(keys_of<E>(kv, pages[i + kBlockPages], args.kv_head));
  }
  // After the keys come the block's values, after them the next block's keys.
  for (int i = at.first; i < at.end; ++i) {
    const int ahead = i + kAhead;
    at.keys_ahead[i] =
        ahead < at.end ? at.keys[ahead] : at.values[min(at.first + ahead - at.end, at.end - 1)];
    const int next = kBlockPages + ahead - at.end;
    at.values_ahead[i] = ahead < at.end      ? at.values[ahead]
                         : next < page_count ? keys_of<E>(kv, pages[next], args.kv_head)
                                             : at.values[i];
  }
}

// score[h][t] = q[h] . k[t] for the N vectors of tokens that begin at keys[v]; one accumulator a
// token, ascending in the dimension.
template <class V, class E, int G, int N>
[[gnu::always_inline]] inline void dot_keys(const E* const* keys, const E* const* ahead,
                                            int32_t k_dim, const float* q, float* score) {
  constexpr int kPages = max(N * V::kLanes / kPageTokens, 1);
  typename V::Float sum[G][N];
  repeat<G * N>([&](auto i) __attribute__((always_inline)) { sum[i / N][i % N] = V::zero(); });
  for (int64_t d = 0; d < k_dim; ++d) {
    repeat<kPages>([&](auto p) __attribute__((always_inline)) {
      __builtin_prefetch(ahead[p] + d * kPageTokens);
    });
    typename V::Float k[N];
    repeat<N>([&](auto v)
                  __attribute__((always_inline)) { k[v] = V::load(keys[v] + d * kPageTokens); });
    repeat<G>([&](auto h) __attribute__((always_inline)) {
      const typename V::Float x = V::broadcast(q[h * k_dim + d]);
      repeat<N>([&](auto v)
                    __attribute__((always_inline)) { sum[h][v] = V::fma(x, k[v], sum[h][v]); });
    });
  }
  repeat<G * N>([&](auto i) __attribute__((always_inline)) {
    constexpr int kH = decltype(i)::value / N, kV = decltype(i)::value % N;
    V::store(score + kH * kBlockTokens + kV * V::kLanes, sum[kH][kV]);
  });
}

// All pages of a block, N vectors at a time, then what is left of them.
template <class V, class E, int G, int N>
void score_block(const BlockPages<V, E>& at, int32_t k_dim, const float* q, float* score) {
  constexpr int kPageVecs = kPageTokens / V::kLanes;
  int v = at.first * kPageVecs;
  const int end = at.end * kPageVecs;
  for (; v + N <= end; v += N) {
    const E* keys[N];
    for (int i = 0; i < N; ++i)
      keys[i] = at.keys[(v + i) / kPageVecs] + (v + i) % kPageVecs * V::kLanes;
    dot_keys<V, E, G, N>(keys, at.keys_ahead + v / kPageVecs, k_dim, q, score + v * V::kLanes);
  }
  if constexpr (N > kPageVecs)
    if (v < end) {
      const E* keys[kPageVecs];
      for (int i = 0; i < kPageVecs; ++i) keys[i] = at.keys[v / kPageVecs] + i * V::kLanes;
      dot_keys<V, E, G, kPageVecs>(keys, at.keys_ahead + v / kPageVecs, k_dim, q,
                                   score + v * V::kLanes);
    }
}

// out[h][d] = out[h][d] * factor[h] + sum over the tokens seen of weight[h][t] * v[t][d], ascending
// in the token, for N vectors of dimensions from d on. `lanes` says which of a vector's are there.
template <class V, class E, int G, int N, class Lanes>
void add_values(const BlockPages<V, E>& at, Span<V> seen, const float* weight,
                const Query<V>* queries, int32_t v_dim, int32_t d, Lanes lanes, float* out,
                int32_t out_stride) {
  typename V::Float sum[G][N];
  repeat<G * N>([&](auto i) __attribute__((always_inline)) {
    constexpr int kH = decltype(i)::value / N, kV = decltype(i)::value % N;
    sum[kH][kV] =
        V::load(out + kH * out_stride + d + kV * V::kLanes) * V::broadcast(queries[kH].factor);
  });
  for (int page = at.first; page < at.end; ++page) {
    const int begin = max(seen.begin, page * kPageTokens);
    const int end = min(seen.end, (page + 1) * kPageTokens);
    const E* values = at.values[page] + d;
    const E* ahead = at.values_ahead[page] + d;
    for (int t = begin; t < end; ++t) {
      const int64_t offset = int64_t{t - page * kPageTokens} * v_dim;
      // N vectors of halves are N / 2 lines of 64 bytes with 16 lanes.
      for (int i = 0; i < N * V::kLanes; i += 32) __builtin_prefetch(ahead + offset + i);
      typename V::Float v[N];
      repeat<N>([&](auto i) __attribute__((always_inline)) {
        v[i] = V::load(values + offset + i * V::kLanes, lanes);
      });
      repeat<G>([&](auto h) __attribute__((always_inline)) {
        const typename V::Float w = V::broadcast(weight[h * kBlockTokens + t]);
        repeat<N>([&](auto i)
                      __attribute__((always_inline)) { sum[h][i] = V::fma(w, v[i], sum[h][i]); });
      });
    }
  }
  repeat<G * N>([&](auto i) __attribute__((always_inline)) {
    constexpr int kH = decltype(i)::value / N, kV = decltype(i)::value % N;
    V::store(out + kH * out_stride + d + kV * V::kLanes, sum[kH][kV]);
  });
}

template <class V, class E, int G, int N>
[[gnu::always_inline]] inline int32_t add_values_from(const BlockPages<V, E>& at, Span<V> seen,
                                                      const float* weight, const Query<V>* queries,
                                                      int32_t v_dim, int32_t d, float* out,
                                                      int32_t out_stride) {
  for (; d + N * V::kLanes <= v_dim; d += N * V::kLanes)
    add_values<V, E, G, N>(at, seen, weight, queries, v_dim, d, typename V::All{}, out, out_stride);
  return d;
}

// G heads of one row. `score` is [G][kBlockTokens], `values` [G][v_dim padded to vectors].
template <class V, class E, int G>
void decode_heads(const KvPages& kv, const AttendArgs& args, int32_t row, int32_t head,
                  Query<V>* queries, float* score, float* values) {
  const float* q = args.q + row * args.q_stride + int64_t{head} * kv.k_dim;
  const int32_t stride = padded(kv.v_dim, V::kLanes);
  for (int h = 0; h < G; ++h) start(queries[h], args, row);
  for (int32_t i = 0; i < G * stride; ++i) values[i] = 0;
  const int32_t end = queries[0].end;
  for (int32_t block = queries[0].begin / kBlockTokens * kBlockTokens; block < end;
       block += kBlockTokens) {
    const Span<V> seen = seen_in(queries[0], block);
    BlockPages<V, E> at;
    locate(kv, args, block, seen, end, at);
    score_block<V, E, G, V::decode_key_vecs(G)>(at, kv.k_dim, q, score);
    for (int h = 0; h < G; ++h)
      scores_to_weights<V>(args, seen, score + h * kBlockTokens, queries[h]);

    constexpr int kN = V::decode_value_vecs(G);
    int32_t d = add_values_from<V, E, G, kN>(at, seen, score, queries, kv.v_dim, 0, values, stride);
    if constexpr (kN > 2)
      d = add_values_from<V, E, G, 2>(at, seen, score, queries, kv.v_dim, d, values, stride);
    if constexpr (kN > 1)
      d = add_values_from<V, E, G, 1>(at, seen, score, queries, kv.v_dim, d, values, stride);
    if (d < kv.v_dim)
      add_values<V, E, G, 1>(at, seen, score, queries, kv.v_dim, d, V::first(kv.v_dim - d), values,
                             stride);
  }
  for (int h = 0; h < G; ++h) {
    finish<V>(inverse_sum<V>(args, queries[h], head + h), values + h * stride, kv.v_dim,
              args.out + row * args.out_stride + int64_t{head + h} * kv.v_dim);
  }
}

// Scratch: scores, then the queries, then values, which must fit.
template <class V, class E>
void decode_row(const KvPages& kv, const AttendArgs& args, int32_t row) {
  auto* score = static_cast<float*>(args.scratch);
  auto* queries = reinterpret_cast<Query<V>*>(score + kDecodeHeads * kBlockTokens);
  auto* values = reinterpret_cast<float*>(queries + kDecodeHeads);
  for (int32_t head = 0; head < args.group; head += kDecodeHeads) {
    switch (min(args.group - head, kDecodeHeads)) {
      case 1:
        decode_heads<V, E, 1>(kv, args, row, head, queries, score, values);
        break;
      case 2:
        decode_heads<V, E, 2>(kv, args, row, head, queries, score, values);
        break;
      case 3:
        decode_heads<V, E, 3>(kv, args, row, head, queries, score, values);
        break;
      case 4:
        decode_heads<V, E, 4>(kv, args, row, head, queries, score, values);
        break;
      case 5:
        decode_heads<V, E, 5>(kv, args, row, head, queries, score, values);
        break;
      case 6:
        decode_heads<V, E, 6>(kv, args, row, head, queries, score, values);
        break;
      case 7:
        decode_heads<V, E, 7>(kv, args, row, head, queries, score, values);
        break;
      default:
        decode_heads<V, E, 8>(kv, args, row, head, queries, score, values);
    }
  }
}

}  // namespace weir::kernels::simd
