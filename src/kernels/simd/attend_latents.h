// Attention to keys that hold their values, of many queries (heads of rows): a block of 256 tokens
// is widened to float32 once, token by token as it lies, and serves both products. Queries lie in
// lanes while scores are made, so that a token's numbers are broadcast there and loaded for values,
// and nothing but scores is turned. Each sum has the order of attend_tile.h, so the bits are its.
#pragma once

#include <cstdint>

#include "kernels/simd/attend_tile.h"

namespace weir::kernels::simd {

// From a token to the next, in floats: of the longest key, and an odd number of lines of the cache,
// so that the numbers of tokens at one place are spread over its sets. Fixed, so that tokens are
// addressed from one pointer.
inline constexpr int32_t kLatentStride = kValuesInKeysMax + 16;

// The scratch memory of a chunk of queries: its values are the keys.
template <class V>
struct LatentTiles {
  Tiles<V> tiles;
  float* scores = nullptr;  // [256][2 * V::kLanes]: of two vectors of queries, by token.
};

template <class V>
LatentTiles<V> lay_out_latents(const KvPages& kv, void* scratch) {
  constexpr int kTogether = 2 * V::kLanes;
  static_assert(kTileQueries % kTogether == 0);
  constexpr int64_t kBlock = int64_t{kBlockTokens} * (kLatentStride + 2 * kTogether);
  constexpr int64_t kQuery = 2 * kValuesInKeysMax * 4 + int64_t{sizeof(Query<V>)};
  static_assert(kBlock * 4 + kQuery * kTileQueries <= kScratchBytes);
  LatentTiles<V> all;
  Tiles<V>& tiles = all.tiles;
  tiles.k_dim = kv.k_dim;
  tiles.v_stride = padded(kv.v_dim, V::kLanes);
  tiles.value_stride = kLatentStride;
  tiles.keys = tiles.values = static_cast<float*>(scratch);
  all.scores = tiles.keys + int64_t{kBlockTokens} * kLatentStride;
  tiles.weights = all.scores + int64_t{kBlockTokens} * kTogether;
  tiles.packed = tiles.weights + int64_t{kBlockTokens} * kTogether;
  tiles.sums = tiles.packed + int64_t{kTileQueries} * kv.k_dim;
  tiles.queries = reinterpret_cast<Query<V>*>(tiles.sums + int64_t{kTileQueries} * tiles.v_stride);
  tiles.capacity = kTileQueries;
  return all;
}

template <class E>
[[gnu::always_inline]] inline const E* latent_of(const KvPages& kv, const AttendArgs& args,
                                                 int32_t j) {
  if (args.keys != nullptr) return static_cast<const E*>(args.keys[j]);
  return keys_of<E>(kv, args.pages[j / kPageTokens], args.kv_head) +
         int64_t{j % kPageTokens} * kv.k_dim;
}

// Widens tokens [first, end) of a block.
template <class V, class E>
void widen_latents(const KvPages& kv, const AttendArgs& args, int32_t block, int32_t first,
                   int32_t end, float* rows) {
  for (int32_t t = first; t < end; ++t) {
    const E* from = latent_of<E>(kv, args, block + t);
    float* to = rows + int64_t{t} * kLatentStride;
    int32_t d = 0;
    for (; d + V::kLanes <= kv.k_dim; d += V::kLanes) V::store(to + d, V::load(from + d));
    if (d < kv.k_dim) V::store(to + d, V::load(from + d, V::first(kv.k_dim - d)));
  }
}

// scores[t][.] = q . k[t] for T tokens and N vectors of queries, each packed as [k_dim][kLanes].
// `ahead`: where T tokens lie that are wanted next, or null.
template <class V, class E, int T, int N>
[[gnu::always_inline]] inline void latent_scores(const float* rows, const float* q, int32_t k_dim,
                                                 const E* const* ahead, float* scores) {
  constexpr int32_t kLine = 64 / int32_t{sizeof(E)};  // Numbers in a line of the cache.
  typename V::Float sum[T][N];
  repeat<T * N>([&](auto i) __attribute__((always_inline)) { sum[i / N][i % N] = V::zero(); });
  for (int32_t line = 0; line < k_dim; line += kLine) {
    // Into the second level: the first holds the queries.
    if (ahead != nullptr)
      for (int t = 0; t < T; ++t) __builtin_prefetch(ahead[t] + line, 0, 2);
    const int32_t end = min(line + kLine, k_dim);
    for (int32_t d = line; d < end; ++d) {
      typename V::Float x[N];
      repeat<N>([&](auto v) __attribute__((always_inline)) {
        x[v] = V::load(q + (int64_t{v} * k_dim + d) * V::kLanes);
      });
      repeat<T>([&](auto t) __attribute__((always_inline)) {
        const typename V::Float k = V::broadcast(rows[t * kLatentStride + d]);
        repeat<N>([&](auto v)
                      __attribute__((always_inline)) { sum[t][v] = V::fma(x[v], k, sum[t][v]); });
      });
    }
  }
  repeat<T * N>([&](auto i) __attribute__((always_inline)) {
    V::store(scores + (i / N * 2 + i % N) * V::kLanes, sum[i / N][i % N]);
  });
}

// Tokens that the next block has, which are fetched while scores of this one are made: widening
// does little but read, and would wait for memory each time.
struct TokensAhead {
  const KvPages& kv;
  const AttendArgs& args;
  int32_t begin = 0, end = 0;
};

// Scores of tokens [begin, end) of a block, turned to [query][256].
template <class V, class E, int N>
void score_latents(const LatentTiles<V>& all, Span<V> span, const TokensAhead& next,
                   const float* q) {
  constexpr int kT = V::kTileRows * 2 / N;
  const Tiles<V>& tiles = all.tiles;
  for (int t = span.begin; t < span.end; t += kT) {
    const int at =
        min(t, kBlockTokens - kT);  // Some tokens twice rather than none after the block.
    const E* ahead[kT];
    const bool fetch = next.begin + at < next.end;
    for (int i = 0; fetch && i < kT; ++i)
      ahead[i] = latent_of<E>(next.kv, next.args, min(next.begin + at + i, next.end - 1));
    latent_scores<V, E, kT, N>(tiles.keys + int64_t{at} * kLatentStride, q, tiles.k_dim,
                               fetch ? ahead : nullptr, all.scores + at * 2 * V::kLanes);
  }
  for (int t = span.begin / V::kLanes * V::kLanes; t < span.end; t += V::kLanes)
    repeat<N>([&](auto v) __attribute__((always_inline)) {
      typename V::Float square[V::kLanes];
      repeat<V::kLanes>([&](auto i) __attribute__((always_inline)) {
        square[i] = V::load(all.scores + ((t + i) * 2 + v) * V::kLanes);
      });
      V::transpose(square);
      repeat<V::kLanes>([&](auto i) __attribute__((always_inline)) {
        V::store(tiles.weights + (v * V::kLanes + i) * kBlockTokens + t, square[i]);
      });
    });
}

// Tokens whose part of the values, V::kValueVecs vectors each, leaves the first level of the cache
// (32 KiB and more) room for weights.
template <class V>
inline constexpr int kPieceTokens = 24 * 1024 / (V::kValueVecs * V::kLanes * 4);

// sums[m][d] += weights[m][t] * values[t][d] for the tokens of `span`, ascending, of kQueries
// queries. A piece of the values is read into the first level of the cache once for all queries.
template <class V, int kQueries>
void add_shared_values(const Tiles<V>& tiles, Span<V> span, float* sums) {
  constexpr int kN = V::kValueVecs, kM = V::kValueRows, kLast = kQueries % kM;
  static_assert(kLast == 0 || kLast == 2 || kLast == 4);
  const int32_t stride = tiles.v_stride, whole = stride - stride % (kN * V::kLanes);
  const auto add = [&](auto rows, auto vectors, int m, int32_t d, Span<V> piece) {
    constexpr int kRows = decltype(rows)::value, kVectors = decltype(vectors)::value;
    tile_values<V, kRows, kVectors>(tiles.values + d, tiles.value_stride,
                                    tiles.weights + m * kBlockTokens, piece, stride,
                                    sums + int64_t{m} * stride + d);
  };
  const auto add_all = [&](auto vectors, int32_t d) {
    for (int t = span.begin; t < span.end; t += kPieceTokens<V>) {
      const Span<V> piece{t, min(t + kPieceTokens<V>, span.end)};
      int m = 0;
      for (; m + kM <= kQueries; m += kM) add(Index<kM>{}, vectors, m, d, piece);
      if constexpr (kLast > 0) add(Index<kLast>{}, vectors, m, d, piece);
    }
  };
  int32_t d = 0;
  for (; d < whole; d += kN * V::kLanes) add_all(Index<kN>{}, d);
  for (; d < stride; d += V::kLanes) add_all(Index<1>{}, d);
}

template <class V>
bool all_see(const Query<V>* queries, int count, int32_t block, Span<V> span) {
  for (int m = 0; m < count; ++m) {
    const Span<V> seen = seen_in(queries[m], block);
    if (seen.begin != span.begin || seen.end != span.end) return false;
  }
  return true;
}

// One block for N vectors of queries.
template <class V, class E, int N>
void latent_block(const AttendArgs& args, const LatentTiles<V>& all, int32_t block,
                  const TokensAhead& next, const float* q, Query<V>* queries, float* sums) {
  const Tiles<V>& tiles = all.tiles;
  constexpr int kQueries = N * V::kLanes;
  Span<V> any{kBlockTokens, 0};
  for (int m = 0; m < kQueries; ++m) {
    const Span<V> seen = seen_in(queries[m], block);
    if (seen.begin >= seen.end) continue;
    any.begin = min(any.begin, seen.begin);
    any.end = max(any.end, seen.end);
  }
  if (any.begin >= any.end) return;
  score_latents<V, E, N>(all, any, next, q);
  for (int m = 0; m < kQueries; ++m) {
    const Span<V> seen = seen_in(queries[m], block);
    if (seen.begin < seen.end)
      scores_to_weights<V>(args, seen, tiles.weights + m * kBlockTokens, queries[m]);
  }
  if (all_see(queries, kQueries, block, any)) {
    for (int m = 0; m < kQueries; ++m)
      scale_sum<V>(tiles, queries[m], sums + int64_t{m} * tiles.v_stride);
    add_shared_values<V, kQueries>(tiles, any, sums);
    return;
  }
  constexpr int kM = V::kValueRows, kLast = kQueries % kM;
  int m = 0;
  for (; m + kM <= kQueries; m += kM)
    add_tile_values<V, kM>(tiles, block, tiles.weights + m * kBlockTokens, queries + m,
                           sums + int64_t{m} * tiles.v_stride);
  if constexpr (kLast > 0)
    add_tile_values<V, kLast>(tiles, block, tiles.weights + m * kBlockTokens, queries + m,
                              sums + int64_t{m} * tiles.v_stride);
}

// Queries [begin, end) of args.rows * args.group, row by row; at most tiles.capacity.
template <class V, class E>
void attend_latents(const KvPages& kv, const AttendArgs& args, const LatentTiles<V>& all,
                    int32_t begin, int32_t end) {
  const Tiles<V>& tiles = all.tiles;
  const int32_t count = end - begin, total = padded(count, V::kLanes);
  // Pack: a vector's queries side by side, for each dimension. The last vector may repeat one.
  int32_t first = INT32_MAX, last = 0;
  for (int32_t i = 0; i < total; ++i) {
    const int32_t index = min(begin + i, end - 1);
    Query<V>& query = tiles.queries[i];
    start(query, args, index / args.group);
    first = min(first, query.begin);
    last = max(last, query.end);
    const float* q =
        args.q + index / args.group * args.q_stride + int64_t{index % args.group} * kv.k_dim;
    float* to = tiles.packed + int64_t{i / V::kLanes} * V::kLanes * kv.k_dim + i % V::kLanes;
    for (int32_t d = 0; d < kv.k_dim; ++d) to[d * V::kLanes] = q[d];
  }
  for (int64_t i = 0; i < int64_t{total} * tiles.v_stride; ++i) tiles.sums[i] = 0;

  for (int32_t block = first / kBlockTokens * kBlockTokens; block < last; block += kBlockTokens) {
    widen_latents<V, E>(kv, args, block, max(first - block, 0), min(last - block, kBlockTokens),
                        tiles.keys);
    // The first vectors fetch the next block for all.
    TokensAhead next{kv, args, block + kBlockTokens, last};
    int32_t i = 0;
    for (; i + 2 * V::kLanes <= total; i += 2 * V::kLanes, next.end = 0)
      latent_block<V, E, 2>(args, all, block, next, tiles.packed + int64_t{i} * kv.k_dim,
                            tiles.queries + i, tiles.sums + int64_t{i} * tiles.v_stride);
    if (i < total)
      latent_block<V, E, 1>(args, all, block, next, tiles.packed + int64_t{i} * kv.k_dim,
                            tiles.queries + i, tiles.sums + int64_t{i} * tiles.v_stride);
  }
  for (int32_t i = 0; i < count; ++i) {
    const int32_t row = (begin + i) / args.group, head = (begin + i) % args.group;
    finish<V>(inverse_sum<V>(args, tiles.queries[i], head),
              tiles.sums + int64_t{i} * tiles.v_stride, kv.v_dim,
              args.out + row * args.out_stride + int64_t{head} * kv.v_dim);
  }
}

}  // namespace weir::kernels::simd
