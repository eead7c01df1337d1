// What both ways of attention share: where pages lie, what a query remembers from block to block,
// and the step from scores to weights. Both ways call the same code in the same order, so a query
// has the same result to the last bit whichever way it went.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/simd/math.h"

namespace weir::kernels::simd {

inline constexpr int kBlockTokens = 256;
inline constexpr int kBlockPages = kBlockTokens / kPageTokens;
inline constexpr int kSumLanes = 16;

// One query head of one row, running over the blocks. (A template as everything here that a
// compiler might call, constructors among them: see unroll.h.)
template <class V>
struct Query {
  int32_t begin = 0;  // It sees the tokens [begin, end).
  int32_t end = 0;
  float max = 0;              // Of the scores so far, times log2(e); -inf at first.
  float factor = 0;           // What the last block's new maximum does to all that was summed.
  float sum[kSumLanes] = {};  // Of the exponentials so far, by token % 16; added up at the end.
};

// The part of a block that a query sees, relative to the block's begin; empty if begin >= end.
template <class V>
struct Span {
  int begin = 0;
  int end = 0;
};

template <class V>
[[gnu::always_inline]] inline Span<V> seen_in(const Query<V>& query, int32_t block_begin) {
  return {max(query.begin - block_begin, 0), min(query.end - block_begin, kBlockTokens)};
}

// A head's keys in a page, and its values.
template <class E>
[[gnu::always_inline]] inline const E* keys_of(const KvPages& kv, int32_t page, int32_t head) {
  return reinterpret_cast<const E*>(kv.base + page * kv.page_bytes + head * kv.head_bytes);
}
template <class E>
[[gnu::always_inline]] inline const E* values_of(const KvPages& kv, int32_t page, int32_t head) {
  return keys_of<E>(kv, page, head) + int64_t{kv.k_dim} * kPageTokens;
}

template <class V>
[[gnu::always_inline]] inline void start(Query<V>& query, const AttendArgs& args, int32_t row) {
  const int32_t position = args.first_position + row;
  query.end = position + 1;
  const int32_t window = args.chunks ? position % args.window + 1 : args.window;
  query.begin = window > 0 ? max(query.end - window, 0) : 0;
  if (position >= args.span_begin && position < args.span_end) {
    query.begin = min(query.begin, args.span_begin);
    query.end = args.span_end;
  }
  query.begin = max(query.begin, args.first_key);
  query.max = -__builtin_inff();
  query.factor = 0;
  for (float& lane : query.sum) lane = 0;
}

// The lanes of the vector at `t` that lie within a span.
template <class V>
[[gnu::always_inline]] inline typename V::Mask lanes_of(Span<V> span, int t) {
  return V::range(max(span.begin - t, 0), min(span.end - t, V::kLanes));
}

// Turns the products q . k of a block, score[t] for the tokens of `seen`, into weights: scales and
// caps them, moves the running maximum, and leaves exp(score - maximum) in place. What lies beside
// `seen` may be garbage. Scores are in units of log2(e), so that exponentials are powers of two.
template <class V>
[[gnu::always_inline]] inline void scores_to_weights(const AttendArgs& args, Span<V> seen,
                                                     float* score, Query<V>& query) {
  using Float = typename V::Float;
  const int first = seen.begin / V::kLanes * V::kLanes;
  Float top = V::broadcast(query.max);
  if (args.softcap > 0) {
    const Float inner = V::broadcast(args.scale / args.softcap);
    const Float outer = V::broadcast(args.softcap * kLog2E);
    for (int t = first; t < seen.end; t += V::kLanes)
      V::store(score + t, outer * tanh<V>(V::load(score + t) * inner));
  } else {
    const Float factor = V::broadcast(args.scale * kLog2E);
    for (int t = first; t < seen.end; t += V::kLanes)
      V::store(score + t, V::load(score + t) * factor);
  }
  for (int t = first; t < seen.end; t += V::kLanes)
    top = V::select(lanes_of<V>(seen, t), V::max(V::load(score + t), top), top);
  const Float max = V::broadcast(V::largest(top));
  const Float factor = exp2_nonpositive<V>(V::broadcast(query.max) - max);
  float lanes[V::kLanes];
  V::store(lanes, factor);
  query.factor = lanes[0];
  V::store(lanes, max);
  query.max = lanes[0];

  constexpr int kSums = kSumLanes / V::kLanes;
  Float sum[kSums];
  repeat<kSums>([&](auto i) __attribute__((always_inline)) {
    sum[i] = V::load(query.sum + i * V::kLanes) * factor;
  });
  for (int t = seen.begin / kSumLanes * kSumLanes; t < seen.end; t += kSumLanes) {
    repeat<kSums>([&](auto i) __attribute__((always_inline)) {
      const int at = t + i * V::kLanes;
      const Float weight =
          V::keep(lanes_of<V>(seen, at), exp2_nonpositive<V>(V::load(score + at) - max));
      V::store(score + at, weight);
      sum[i] = sum[i] + weight;
    });
  }
  repeat<kSums>([&](auto i) __attribute__((always_inline)) {
    V::store(query.sum + i * V::kLanes, sum[i]);
  });
}

// 1 / (sum of exponentials), head h's sink among them.
template <class V>
[[gnu::always_inline]] inline float inverse_sum(const AttendArgs& args, const Query<V>& query,
                                                int32_t h) {
  typename V::Float lanes = V::load(query.sum);
  if constexpr (V::kLanes < kSumLanes) lanes = lanes + V::load(query.sum + V::kLanes);
  float sum = V::sum(lanes);
  if (args.sinks != nullptr) {
    float sink[V::kLanes];
    V::store(sink, exp<V>(V::broadcast(args.sinks[h] - query.max / kLog2E)));
    sum += sink[0];
  }
  return 1.0f / sum;
}

// out = values so far / sum.
template <class V>
[[gnu::always_inline]] inline void finish(float inverse, const float* values, int32_t n,
                                          float* out) {
  const typename V::Float factor = V::broadcast(inverse);
  int32_t d = 0;
  for (; d + V::kLanes <= n; d += V::kLanes) V::store(out + d, V::load(values + d) * factor);
  if (d < n) V::store(out + d, V::load(values + d) * factor, V::first(n - d));
}

[[gnu::always_inline]] inline int32_t padded(int32_t n, int lanes) {
  return (n + lanes - 1) / lanes * lanes;
}

}  // namespace weir::kernels::simd
