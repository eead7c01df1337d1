// Scores of many keys for one token (IndexScores): keys lie in lanes, and a tile of 32 of them,
// widened once, meets all heads.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/simd/attend_block.h"

namespace weir::kernels::simd {

// A tile's keys, as [dim][32].
template <class V, class E>
void widen_index_keys(const IndexScores& index, int32_t first, float* tile) {
  const int32_t pages = min(kPageTokens, padded(index.end - first, index.slots)) / index.slots;
  const int32_t* const page = index.pages + first / index.slots;
  for (int32_t i = 0; i < pages; ++i) {
    const E* from = reinterpret_cast<const E*>(index.keys + page[i] * index.page_bytes);
    float* to = tile + i * index.slots;
    if (index.slots < V::kLanes) {
      const auto lanes = V::first(index.slots);
      for (int32_t d = 0; d < index.dim; ++d, from += index.slots, to += kPageTokens)
        V::store(to, V::load(from, lanes), lanes);
      continue;
    }
    for (int32_t d = 0; d < index.dim; ++d, from += index.slots, to += kPageTokens)
      for (int32_t s = 0; s < index.slots; s += V::kLanes) V::store(to + s, V::load(from + s));
  }
}

// scores[t] += weights[m] * max(q[m] . k[t], 0) for M heads, packed as [dim][M], and the keys of
// V::kKeyVecs vectors.
template <class V, int M>
[[gnu::always_inline]] inline void add_head_scores(const float* keys, const float* q, int32_t dim,
                                                   const float* weights, float* scores) {
  constexpr int kN = V::kKeyVecs;
  typename V::Float sum[M][kN];
  repeat<M * kN>([&](auto i) __attribute__((always_inline)) { sum[i / kN][i % kN] = V::zero(); });
  for (int32_t d = 0; d < dim; ++d, keys += kPageTokens, q += M) {
    typename V::Float k[kN];
    repeat<kN>([&](auto v)
                   __attribute__((always_inline)) { k[v] = V::load(keys + v * V::kLanes); });
    repeat<M>([&](auto m) __attribute__((always_inline)) {
      const typename V::Float x = V::broadcast(q[m]);
      repeat<kN>([&](auto v)
                     __attribute__((always_inline)) { sum[m][v] = V::fma(x, k[v], sum[m][v]); });
    });
  }
  repeat<kN>([&](auto v) __attribute__((always_inline)) {
    typename V::Float total = V::load(scores + v * V::kLanes);
    repeat<M>([&](auto m) __attribute__((always_inline)) {
      total = V::fma(V::broadcast(weights[m]), V::max(sum[m][v], V::zero()), total);
    });
    V::store(scores + v * V::kLanes, total);
  });
}

template <class V, class E>
void index_scores_of(const IndexScores& index) {
  constexpr int kM = V::kTileRows;
  static_assert(kPageTokens % (V::kKeyVecs * V::kLanes) == 0);
  const int32_t heads = padded(index.heads, kM);
  float* const tile = static_cast<float*>(index.scratch);         // [dim][32]
  float* const packed = tile + int64_t{kPageTokens} * index.dim;  // [heads / kM][dim][kM]
  float* const weights = packed + int64_t{heads} * index.dim;     // [heads]
  for (int32_t h = 0; h < heads; ++h) {
    weights[h] = h < index.heads ? index.weights[h] : 0;
    float* to = packed + int64_t{h / kM} * kM * index.dim + h % kM;
    // Heads that are not there: the last one again, with a weight of 0.
    const float* from = index.q + int64_t{min(h, index.heads - 1)} * index.dim;
    for (int32_t d = 0; d < index.dim; ++d) to[d * kM] = from[d];
  }
  for (int64_t i = 0; i < int64_t{kPageTokens} * index.dim; ++i) tile[i] = 0;
  for (int32_t first = index.begin; first < index.end; first += kPageTokens) {
    widen_index_keys<V, E>(index, first, tile);
    float scores[kPageTokens] = {};
    for (int32_t h = 0; h < heads; h += kM)
      for (int t = 0; t < kPageTokens; t += V::kKeyVecs * V::kLanes)
        add_head_scores<V, kM>(tile + t, packed + int64_t{h} * index.dim, index.dim, weights + h,
                               scores + t);
    const int32_t count = min(kPageTokens, index.end - first);
    for (int32_t i = 0; i < count; ++i) index.scores[first - index.begin + i] = scores[i];
  }
}

template <class V>
void index_scores(const IndexScores& index) {
  if (index.type == FloatType::kF32) {
    index_scores_of<V, float>(index);
  } else {
    index_scores_of<V, uint16_t>(index);
  }
}

}  // namespace weir::kernels::simd
