// Attention of many queries over the same pages: a block of 256 tokens is widened to float32 once
// and then serves tiles of up to V::kTileRows queries, a query being one head of one row.
#pragma once

#include <cstdint>

#include "kernels/simd/attend_block.h"

namespace weir::kernels::simd {

// Queries that share a widened block. Widening costs about 2 operations a vector, a query's two
// products 2 as well: at 192 queries it is lost in the noise, and their state still fits the
// second-level cache beside the block (k_dim = v_dim = 128: 196 + 256 KiB).
inline constexpr int kTileQueries = 192;

// The scratch memory of a chunk of queries.
template <class V>
struct Tiles {
  int32_t k_dim = 0;
  int32_t v_stride = 0;      // v_dim padded to whole vectors.
  int32_t value_stride = 0;  // From a token's values to the next one's.
  float* keys = nullptr;     // [page][k_dim][32]
  float* values = nullptr;   // [token][value_stride]
  float* weights = nullptr;  // [V::kTileRows][256]: scores, then weights.
  float* packed = nullptr;   // [tile][k_dim][rows of the tile]: the queries.
  float* sums = nullptr;     // [query][v_stride]: the values so far.
  Query<V>* queries = nullptr;
  int32_t capacity = 0;  // In queries.
};

template <class V>
Tiles<V> lay_out(const KvPages& kv, void* scratch) {
  Tiles<V> tiles;
  tiles.k_dim = kv.k_dim;
  tiles.v_stride = tiles.value_stride = padded(kv.v_dim, V::kLanes);
  const int64_t block = int64_t{kBlockTokens} * (kv.k_dim + tiles.v_stride + V::kTileRows);
  const int64_t query = (int64_t{kv.k_dim} + tiles.v_stride) * 4 + int64_t{sizeof(Query<V>)};
  const int64_t fit = (kScratchBytes - block * 4) / query;
  tiles.capacity = static_cast<int32_t>(fit < 0 ? 0 : fit < kTileQueries ? fit : kTileQueries);
  tiles.capacity -= tiles.capacity % V::kTileRows;
  tiles.keys = static_cast<float*>(scratch);
  tiles.values = tiles.keys + int64_t{kBlockTokens} * kv.k_dim;
  tiles.weights = tiles.values + int64_t{kBlockTokens} * tiles.v_stride;
  tiles.packed = tiles.weights + V::kTileRows * kBlockTokens;
  tiles.sums = tiles.packed + int64_t{tiles.capacity} * kv.k_dim;
  tiles.queries =
      reinterpret_cast<Query<V>*>(tiles.sums + int64_t{tiles.capacity} * tiles.v_stride);
  return tiles;
}

// Widens pages [first, end) of a block.
template <class V, class E>
void widen_block(const KvPages& kv, const AttendArgs& args, int32_t block_begin, int first, int end,
                 const Tiles<V>& tiles) {
  const int32_t* pages = args.pages + block_begin / kPageTokens;
  const int32_t k_count = kv.k_dim * kPageTokens;
  for (int page = first; page < end; ++page) {
    const E* keys = keys_of<E>(kv, pages[page], args.kv_head);
    float* to = tiles.keys + int64_t{page} * k_count;
    for (int32_t i = 0; i < k_count; i += V::kLanes) V::store(to + i, V::load(keys + i));
    to = tiles.values + int64_t{page} * kPageTokens * tiles.v_stride;
    const E* values = values_of<E>(kv, pages[page], args.kv_head);
    for (int t = 0; t < kPageTokens; ++t, values += kv.v_dim, to += tiles.v_stride) {
      int32_t d = 0;
      for (; d + V::kLanes <= kv.v_dim; d += V::kLanes) V::store(to + d, V::load(values + d));
      if (d < kv.v_dim) V::store(to + d, V::load(values + d, V::first(kv.v_dim - d)));
    }
  }
}

// weights[m][t] = q[m] . k[t] for the tokens of V::kKeyVecs vectors, of M queries.
template <class V, int M>
[[gnu::always_inline]] inline void tile_scores(const float* keys, const float* q, int32_t k_dim,
                                               float* weights) {
  constexpr int kN = V::kKeyVecs;
  typename V::Float sum[M][kN];
  repeat<M * kN>([&](auto i) __attribute__((always_inline)) { sum[i / kN][i % kN] = V::zero(); });
  for (int32_t d = 0; d < k_dim; ++d, keys += kPageTokens, q += M) {
    typename V::Float k[kN];
    repeat<kN>([&](auto v)
                   __attribute__((always_inline)) { k[v] = V::load(keys + v * V::kLanes); });
    repeat<M>([&](auto m) __attribute__((always_inline)) {
      const typename V::Float x = V::broadcast(q[m]);
      repeat<kN>([&](auto v)
                     __attribute__((always_inline)) { sum[m][v] = V::fma(x, k[v], sum[m][v]); });
    });
  }
  repeat<M * kN>([&](auto i) __attribute__((always_inline)) {
    constexpr int kM = decltype(i)::value / kN, kV = decltype(i)::value % kN;
    V::store(weights + kM * kBlockTokens + kV * V::kLanes, sum[kM][kV]);
  });
}

// sums[m][d] += weights[m][t] * values[t][d] for the tokens of `common`, ascending, of M queries
// and N vectors of dimensions.
template <class V, int M, int N>
void tile_values(const float* values, int32_t value_stride, const float* weights, Span<V> common,
                 int32_t v_stride, float* sums) {
  typename V::Float sum[M][N];
  repeat<M * N>([&](auto i) __attribute__((always_inline)) {
    constexpr int kM = decltype(i)::value / N, kV = decltype(i)::value % N;
    sum[kM][kV] = V::load(sums + kM * v_stride + kV * V::kLanes);
  });
  values += int64_t{common.begin} * value_stride;
  for (int t = common.begin; t < common.end; ++t, values += value_stride) {
    typename V::Float v[N];
    repeat<N>([&](auto i)
                  __attribute__((always_inline)) { v[i] = V::load(values + i * V::kLanes); });
    repeat<M>([&](auto m) __attribute__((always_inline)) {
      const typename V::Float w = V::broadcast(weights[m * kBlockTokens + t]);
      repeat<N>([&](auto i)
                    __attribute__((always_inline)) { sum[m][i] = V::fma(w, v[i], sum[m][i]); });
    });
  }
  repeat<M * N>([&](auto i) __attribute__((always_inline)) {
    constexpr int kM = decltype(i)::value / N, kV = decltype(i)::value % N;
    V::store(sums + kM * v_stride + kV * V::kLanes, sum[kM][kV]);
  });
}

template <class V, int M>
void tile_values_all(const Tiles<V>& tiles, const float* weights, Span<V> common, float* sums) {
  constexpr int kN = V::kValueVecs;
  const int32_t stride = tiles.v_stride;
  int32_t d = 0;
  for (; d + kN * V::kLanes <= stride; d += kN * V::kLanes)
    tile_values<V, M, kN>(tiles.values + d, tiles.value_stride, weights, common, stride, sums + d);
  if constexpr (kN > 2)
    for (; d + 2 * V::kLanes <= stride; d += 2 * V::kLanes)
      tile_values<V, M, 2>(tiles.values + d, tiles.value_stride, weights, common, stride, sums + d);
  for (; d < stride; d += V::kLanes)
    tile_values<V, M, 1>(tiles.values + d, tiles.value_stride, weights, common, stride, sums + d);
}

// A query's sum so far, brought to the largest score that it has seen now.
template <class V>
void scale_sum(const Tiles<V>& tiles, const Query<V>& query, float* sum) {
  const typename V::Float factor = V::broadcast(query.factor);
  for (int32_t d = 0; d < tiles.v_stride; d += V::kLanes)
    V::store(sum + d, V::load(sum + d) * factor);
}

// The values of M queries. Tokens that only some of them see are added to those alone: what a query
// does not see it never touches, not even times 0.
template <class V, int M>
void add_tile_values(const Tiles<V>& tiles, int32_t block, const float* weights,
                     const Query<V>* queries, float* sums) {
  Span<V> common{0, kBlockTokens};
  for (int m = 0; m < M; ++m) {
    const Span<V> seen = seen_in(queries[m], block);
    common.begin = max(common.begin, seen.begin);
    common.end = min(common.end, seen.end);
    if (seen.begin < seen.end) scale_sum<V>(tiles, queries[m], sums + int64_t{m} * tiles.v_stride);
  }
  const bool shared = common.begin < common.end;
  for (int m = 0; m < M; ++m) {
    const Span<V> seen = seen_in(queries[m], block);
    const Span<V> before{seen.begin, shared ? common.begin : seen.end};
    if (before.begin < before.end)
      tile_values_all<V, 1>(tiles, weights + m * kBlockTokens, before,
                            sums + int64_t{m} * tiles.v_stride);
  }
  if (!shared) return;
  tile_values_all<V, M>(tiles, weights, common, sums);
  for (int m = 0; m < M; ++m) {
    const Span<V> after{common.end, seen_in(queries[m], block).end};
    if (after.begin < after.end)
      tile_values_all<V, 1>(tiles, weights + m * kBlockTokens, after,
                            sums + int64_t{m} * tiles.v_stride);
  }
}

// One block for a tile of M queries.
template <class V, int M>
void tile_block(const AttendArgs& args, const Tiles<V>& tiles, int32_t block, const float* q,
                Query<V>* queries, float* sums) {
  Span<V> any{kBlockTokens, 0};
  for (int m = 0; m < M; ++m) {
    const Span<V> seen = seen_in(queries[m], block);
    if (seen.begin >= seen.end) continue;
    any.begin = min(any.begin, seen.begin);
    any.end = max(any.end, seen.end);
  }
  if (any.begin >= any.end) return;
  constexpr int kStep = V::kKeyVecs * V::kLanes;
  // Whole pages: the weights are computed 16 tokens at a time.
  for (int t = any.begin / kPageTokens * kPageTokens; t < padded(any.end, kPageTokens); t += kStep)
    tile_scores<V, M>(
        tiles.keys + int64_t{t / kPageTokens} * tiles.k_dim * kPageTokens + t % kPageTokens, q,
        tiles.k_dim, tiles.weights + t);
  for (int m = 0; m < M; ++m) {
    const Span<V> seen = seen_in(queries[m], block);
    if (seen.begin < seen.end)
      scores_to_weights<V>(args, seen, tiles.weights + m * kBlockTokens, queries[m]);
  }
  constexpr int kM = M % V::kValueRows == 0 ? V::kValueRows : M % 4 == 0 ? 4 : 2;
  static_assert(M % kM == 0);
  for (int m = 0; m < M; m += kM)
    add_tile_values<V, kM>(tiles, block, tiles.weights + m * kBlockTokens, queries + m,
                           sums + int64_t{m} * tiles.v_stride);
}

// A tile has the full count of rows, or two or one third of it; its last rows may repeat a query.
template <class V>
[[gnu::always_inline]] inline int32_t tile_rows(int32_t left) {
  constexpr int kThird = V::kTileRows / 3;
  return left > 2 * kThird ? V::kTileRows : left > kThird ? 2 * kThird : kThird;
}

// Queries [begin, end) of args.rows * args.group, row by row; at most tiles.capacity.
template <class V, class E>
void attend_queries(const KvPages& kv, const AttendArgs& args, const Tiles<V>& tiles, int32_t begin,
                    int32_t end) {
  const int32_t count = end - begin;
  // Pack: the queries of a tile side by side, for each dimension.
  int32_t first = INT32_MAX, last = 0, total = 0;
  for (int32_t tile = 0; tile < count; tile += tile_rows<V>(count - tile)) {
    const int32_t rows = tile_rows<V>(count - tile);
    float* packed = tiles.packed + int64_t{tile} * kv.k_dim;
    for (int32_t m = 0; m < rows; ++m) {
      const int32_t index = min(begin + tile + m, end - 1);
      Query<V>& query = tiles.queries[tile + m];
      start(query, args, index / args.group);
      first = min(first, query.begin);
      last = max(last, query.end);
      const float* q =
          args.q + index / args.group * args.q_stride + int64_t{index % args.group} * kv.k_dim;
      for (int32_t d = 0; d < kv.k_dim; ++d) packed[d * rows + m] = q[d];
    }
    total = tile + rows;
  }
  for (int64_t i = 0; i < int64_t{total} * tiles.v_stride; ++i) tiles.sums[i] = 0;

  for (int32_t block = first / kBlockTokens * kBlockTokens; block < last; block += kBlockTokens) {
    const int first_page = max(first - block, 0) / kPageTokens;
    const int end_page = (min(last - block, kBlockTokens) + kPageTokens - 1) / kPageTokens;
    widen_block<V, E>(kv, args, block, first_page, end_page, tiles);
    for (int32_t tile = 0; tile < count; tile += tile_rows<V>(count - tile)) {
      const float* q = tiles.packed + int64_t{tile} * kv.k_dim;
      float* sums = tiles.sums + int64_t{tile} * tiles.v_stride;
      Query<V>* queries = tiles.queries + tile;
      constexpr int kRows = V::kTileRows;
      switch (tile_rows<V>(count - tile)) {
        case kRows:
          tile_block<V, kRows>(args, tiles, block, q, queries, sums);
          break;
        case kRows / 3 * 2:
          tile_block<V, kRows / 3 * 2>(args, tiles, block, q, queries, sums);
          break;
        default:
          tile_block<V, kRows / 3>(args, tiles, block, q, queries, sums);
      }
    }
  }
  for (int32_t i = 0; i < count; ++i) {
    const int32_t row = (begin + i) / args.group, head = (begin + i) % args.group;
    finish<V>(inverse_sum<V>(args, tiles.queries[i], head),
              tiles.sums + int64_t{i} * tiles.v_stride, kv.v_dim,
              args.out + row * args.out_stride + int64_t{head} * kv.v_dim);
  }
}

}  // namespace weir::kernels::simd
