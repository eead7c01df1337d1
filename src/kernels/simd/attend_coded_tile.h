// Attention to codes of many queries: a block of 256 tokens becomes bytes once, which then serve
// tiles of up to V::kTileRows queries, a query being one head of one row. Products are exact, and
// everything else is done query by query in the order of attend_coded.h, so the bits are its.
#pragma once

#include <cstdint>

#include "kernels/simd/attend_tile.h"
#include "kernels/simd/coded_query.h"

namespace weir::kernels::simd {

// A query's sums so far, brought to the largest score that it has seen now.
template <class V>
[[gnu::always_inline]] inline void scale_coded_sums(CodedQuery<V>& query, int32_t n,
                                                    const CodedSums& sums) {
  const typename V::Float factor = V::broadcast(query.seen.factor);
  for (int32_t d = 0; d < n; d += V::kLanes) {
    V::store(sums.coded + d, V::load(sums.coded + d) * factor);
    V::store(sums.numbers + d, V::load(sums.numbers + d) * factor);
  }
  query.shift *= query.seen.factor;
}

// The scratch memory of a chunk of queries.
template <class V>
struct CodedTiles {
  int32_t steps = 0;          // Of four dimensions of a key.
  int32_t v_stride = 0;       // v_dim padded to whole chunks.
  uint8_t* keys = nullptr;    // [page][steps][2][64]
  uint8_t* values = nullptr;  // [page][chunk][8][64]
  float* score = nullptr;     // [V::kTileRows][256]
  uint8_t* bytes = nullptr;   // [V::kTileRows][256]
  float* factors = nullptr;   // [page][V::kTileRows]
  uint8_t* high = nullptr;    // [tile][steps][rows of the tile][4]
  uint8_t* low = nullptr;
  float* sums = nullptr;     // [query][v_stride], of codes,
  float* numbers = nullptr;  // and of what is not.
  float* turned = nullptr;   // [query][dimensions of a key]
  CodedQuery<V>* queries = nullptr;

  CodedSums sums_of(int32_t query) const {
    return {sums + int64_t{query} * v_stride, numbers + int64_t{query} * v_stride};
  }

  int64_t page_key_bytes() const { return int64_t{steps} * 2 * kCodedLine; }
  int64_t page_value_bytes() const { return int64_t{v_stride} / kChunkDims * 8 * kCodedLine; }
};

template <class V>
CodedTiles<V> lay_out_coded(const CodedPages& coded, void* scratch) {
  constexpr int64_t kDims = kCodedDimMax;
  static_assert(kBlockTokens * 2 * kDims + V::kTileRows * kBlockTokens * 5 +
                    kBlockPages * V::kTileRows * 4 +
                    kTileQueries * (14 * kDims + int64_t{sizeof(CodedQuery<V>)}) <=
                kScratchBytes);
  CodedTiles<V> tiles;
  tiles.steps = key_lines(coded.k_dim, 4) * 2;
  tiles.v_stride = value_chunks(coded.v_dim) * kChunkDims;
  tiles.queries = static_cast<CodedQuery<V>*>(scratch);
  tiles.score = reinterpret_cast<float*>(tiles.queries + kTileQueries);
  tiles.factors = tiles.score + V::kTileRows * kBlockTokens;
  tiles.sums = tiles.factors + kBlockPages * V::kTileRows;
  tiles.numbers = tiles.sums + int64_t{kTileQueries} * tiles.v_stride;
  tiles.turned = tiles.numbers + int64_t{kTileQueries} * tiles.v_stride;
  tiles.keys = reinterpret_cast<uint8_t*>(tiles.turned + int64_t{kTileQueries} * coded.k_dim);
  tiles.values = tiles.keys + kBlockPages * tiles.page_key_bytes();
  tiles.bytes = tiles.values + kBlockPages * tiles.page_value_bytes();
  tiles.high = tiles.bytes + V::kTileRows * kBlockTokens;
  tiles.low = tiles.high + int64_t{kTileQueries} * tiles.steps * 4;
  return tiles;
}

// Lines from `from` on, so many bytes.
[[gnu::always_inline]] inline void prefetch(const uint8_t* from, int64_t bytes) {
  for (int64_t i = 0; i < bytes; i += kCodedLine) __builtin_prefetch(from + i);
}

// A page's codes of keys as bytes; of 8 bits they are that as they lie.
template <class V, class B>
void spread_keys(const CodedPages& coded, const uint8_t* page, typename B::Int table, uint8_t* to) {
  constexpr int kVec = V::kLanes * 4;
  const int32_t lines = key_lines(coded.k_dim, 4);
  const typename B::Int nibbles = B::all_bytes(15);
  for (int32_t j = 0; j < lines; ++j, page += 2 * kCodedLine, to += 4 * kCodedLine)
    for (int at = 0; at < 2 * kCodedLine; at += kVec) {
      const typename B::Int x = B::load(page + at);
      B::store(to + at, B::lookup(table, B::both(x, nibbles)));
      B::store(to + 2 * kCodedLine + at,
               B::lookup(table, B::both(B::template right<4>(x), nibbles)));
    }
}

template <class V, class B, int kBits>
void spread_values(const CodedPages& coded, const uint8_t* codes, typename B::Int table,
                   uint8_t* to) {
  constexpr int kVec = V::kLanes * 4;
  const int32_t chunks = value_chunks(coded.v_dim);
  for (int32_t c = 0; c < chunks; ++c, codes += kBits * kCodedLine, to += 8 * kCodedLine)
    for (int at = 0; at < kCodedLine; at += kVec)
      repeat<kPageSteps>([&](auto s) __attribute__((always_inline)) {
        B::store(to + s * kCodedLine + at,
                 value_bytes<V, B, kBits, decltype(s)::value>(codes + at, table));
      });
}

// Scores of a page's tokens, of M queries. `high` and `low`: [steps][M][4].
template <class V, class B, int M, bool kWide>
void tile_page_scores(const CodedTiles<V>& tiles, const CodedPages& coded, const uint8_t* page,
                      const uint8_t* keys, const uint8_t* high, const uint8_t* low,
                      const CodedQuery<V>* queries, float* score) {
  using Int = typename B::Int;
  constexpr int kN = kWide ? 1 : B::kKeyVecs;
  const int32_t steps = kWide ? key_lines(coded.k_dim, 8) : tiles.steps;
  const auto* const scales = reinterpret_cast<const uint16_t*>(page + key_scales_at(coded));
  float common[M];
  constexpr int kShare = M % 4 == 0 ? 4 : 2;  // A vector of means serves so many.
  for (int m = 0; m < M; m += kShare)
    mean_scores<V, B, kShare>(coded, page, queries + m, common + m);
  for (int t = 0; t < kPageTokens; t += kN * V::kLanes) {
    Int sum[M][kN], rest[M][kN];
    repeat<M * kN>([&](auto i) __attribute__((always_inline)) {
      sum[i / kN][i % kN] = rest[i / kN][i % kN] = B::zero();
    });
    const uint8_t* from = keys + t / kHalfPage * kCodedLine + t % kHalfPage * 4;
    const uint8_t* q = high;
    const uint8_t* q_rest = low;
    for (int32_t j = 0; j < steps; ++j, from += 2 * kCodedLine, q += 4 * M, q_rest += 4 * M) {
      typename B::Unsigned k[kN];
      repeat<kN>([&](auto v) __attribute__((always_inline)) {
        k[v] = B::as_unsigned(B::load(from + v * V::kLanes / kHalfPage * kCodedLine));
      });
      repeat<M>([&](auto m) __attribute__((always_inline)) {
        const typename B::Signed x = B::broadcast_signed(q + 4 * m);
        repeat<kN>([&](auto v)
                       __attribute__((always_inline)) { sum[m][v] = B::dot(sum[m][v], k[v], x); });
        if constexpr (kWide)
          rest[m][0] = B::dot(rest[m][0], k[0], B::broadcast_signed(q_rest + 4 * m));
      });
    }
    repeat<M * kN>([&](auto i) __attribute__((always_inline)) {
      constexpr int kM = decltype(i)::value / kN, kV = decltype(i)::value % kN;
      const int at = t + kV * V::kLanes;
      V::store(score + kM * kBlockTokens + at,
               coded_scores<V, B, kWide>(queries[kM], sum[kM][kV], rest[kM][kV],
                                         V::load(scales + at), V::broadcast(common[kM])));
    });
  }
}

// sums[m][d] += the values of pages [first, end) of a block, of M queries and N vectors of
// dimensions.
template <class V, class B, int M, int N>
[[gnu::always_inline]] inline void tile_page_values(const uint8_t* const* values, int first,
                                                    int end, const uint8_t* bytes,
                                                    const float* factors, float* sums,
                                                    int32_t stride, int32_t d) {
  using Int = typename B::Int;
  typename V::Float out[M][N];
  repeat<M * N>([&](auto i) __attribute__((always_inline)) {
    constexpr int kM = decltype(i)::value / N, kV = decltype(i)::value % N;
    out[kM][kV] = V::load(sums + kM * stride + d + kV * V::kLanes);
  });
  for (int page = first; page < end; ++page) {
    const uint8_t* v[N];
    repeat<N>([&](auto n) __attribute__((always_inline)) {
      const int32_t at = d + n * V::kLanes;
      v[n] = values[page] + int64_t{at / kChunkDims} * 8 * kCodedLine + at % kChunkDims * 4;
    });
    Int sum[M][N];
    repeat<M * N>([&](auto i) __attribute__((always_inline)) { sum[i / N][i % N] = B::zero(); });
    const uint8_t* w = bytes + page * kPageTokens;
    repeat<kPageSteps>([&](auto s) __attribute__((always_inline)) {
      typename B::Signed x[N];
      repeat<N>([&](auto n) __attribute__((always_inline)) {
        x[n] = B::as_signed(B::load(v[n] + s * kCodedLine));
      });
      repeat<M>([&](auto m) __attribute__((always_inline)) {
        const typename B::Unsigned four =
            B::broadcast_unsigned(w + m * kBlockTokens + s * kStepTokens);
        repeat<N>([&](auto n) __attribute__((always_inline)) {
          sum[m][n] = B::dot(sum[m][n], four, x[n]);
        });
      });
    });
    repeat<M>([&](auto m) __attribute__((always_inline)) {
      const typename V::Float f = V::broadcast(factors[page * V::kTileRows + m]);
      repeat<N>([&](auto n) __attribute__((always_inline)) {
        out[m][n] = V::fma(B::to_float(sum[m][n]), f, out[m][n]);
      });
    });
  }
  repeat<M * N>([&](auto i) __attribute__((always_inline)) {
    constexpr int kM = decltype(i)::value / N, kV = decltype(i)::value % N;
    V::store(sums + kM * stride + d + kV * V::kLanes, out[kM][kV]);
  });
}

// A block's pages of codes, for all tiles of a chunk.
template <class V>
struct CodedBlock {
  int32_t begin = 0;  // Its first token.
  const uint8_t* pages[kBlockPages];
  const uint8_t* keys[kBlockPages];  // As bytes.
  const uint8_t* values[kBlockPages];
  const uint8_t* next[kBlockPages];  // The next block's pages; null where it has none.
};

// Asks for the next block's page of this number: part 0 is keys, part 1 values.
template <class V>
[[gnu::always_inline]] inline void fetch_next(const CodedPages& coded, const CodedBlock<V>& block,
                                              int page, int part) {
  const int64_t keys = value_codes_at(coded);
  if (block.next[page] != nullptr)
    prefetch(block.next[page] + part * keys, part == 0 ? keys : coded_head_bytes(coded) - keys);
}

// Calls fn(count, m) for runs of up to kHotQueries queries whose own page is the same.
inline constexpr int kHotQueries = 4;
template <class V, int M, class F>
[[gnu::always_inline]] inline void hot_runs(const CodedQuery<V>* queries, const F& fn) {
  for (int m = 0; m < M;) {
    int count = 1;
    while (count < min(kHotQueries, M - m) && queries[m + count].own == queries[m].own) ++count;
    switch (count) {
      case 1:
        fn(Index<1>{}, m);
        break;
      case 2:
        fn(Index<2>{}, m);
        break;
      case 3:
        fn(Index<3>{}, m);
        break;
      default:
        fn(Index<kHotQueries>{}, m);
    }
    m += count;
  }
}

// What G queries see of a block of 256 that is not codes: `in` says which part of it.
template <class V, int G, class In>
[[gnu::always_inline]] inline Span<V> hot_of_any(const CodedQuery<V>* queries, int32_t block,
                                                 const In& in) {
  Span<V> any{kBlockTokens, 0};
  for (int h = 0; h < G; ++h) {
    const Span<V> hot = in(queries[h], block);
    if (hot.begin < hot.end) any = {min(any.begin, hot.begin), max(any.end, hot.end)};
  }
  return any;
}

template <class V, int G, class In>
[[gnu::always_inline]] inline void score_hot(const CodedCall<V>& call, int32_t block,
                                             const CodedQuery<V>* queries, const In& in,
                                             float* score) {
  const Span<V> any = hot_of_any<V, G>(queries, block, in);
  for (int t = any.begin / kPageTokens * kPageTokens; t < any.end; t += kPageTokens)
    hot_scores<V, G, 1>({call.hot_keys((block + t) / kPageTokens)}, call.coded.k_dim, queries,
                        {score + t});
}

// Tokens that only some of them see are added to those alone.
template <class V, int G, class In>
[[gnu::always_inline]] inline void add_hot(const CodedCall<V>& call, int32_t block,
                                           const CodedQuery<V>* queries, const In& in,
                                           const float* weight, float* sums, int32_t stride) {
  const Span<V> any = hot_of_any<V, G>(queries, block, in);
  for (int t = any.begin / kPageTokens * kPageTokens; t < any.end; t += kPageTokens) {
    const uint16_t* const values =
        call.hot_keys((block + t) / kPageTokens) + int64_t{call.coded.k_dim} * kPageTokens;
    Span<V> seen[G], common{0, kPageTokens};
    for (int h = 0; h < G; ++h) {
      const Span<V> hot = in(queries[h], block);
      seen[h] = {max(hot.begin - t, 0), min(hot.end - t, kPageTokens)};
      common = {max(common.begin, seen[h].begin), min(common.end, seen[h].end)};
    }
    const bool shared = common.begin < common.end;
    const auto add_one = [&](int h, Span<V> span) {
      if (span.begin < span.end)
        add_hot_values<V, 1>(values, call.coded.v_dim, span, weight + h * kBlockTokens + t,
                             sums + int64_t{h} * stride, stride);
    };
    for (int h = 0; h < G; ++h) add_one(h, {seen[h].begin, shared ? common.begin : seen[h].end});
    if (!shared) continue;
    add_hot_values<V, G>(values, call.coded.v_dim, common, weight + t, sums, stride);
    for (int h = 0; h < G; ++h) add_one(h, {common.end, seen[h].end});
  }
}

template <class V>
struct OwnPages {
  [[gnu::always_inline]] Span<V> operator()(const CodedQuery<V>& query, int32_t block) const {
    return hot_in(query, block);
  }
};
template <class V>
struct FirstPage {
  [[gnu::always_inline]] Span<V> operator()(const CodedQuery<V>& query, int32_t block) const {
    return first_in(query, block);
  }
};

// One block for a tile of M queries, the first of which is `tile`.
template <class V, class B, int M, bool kWide>
void coded_tile_block(const CodedCall<V>& call, const CodedTiles<V>& tiles,
                      const CodedBlock<V>& block, const uint8_t* high, const uint8_t* low,
                      int32_t tile) {
  const CodedPages& coded = call.coded;
  CodedQuery<V>* const queries = tiles.queries + tile;
  const CodedSums sums = tiles.sums_of(tile);
  int first = kBlockPages, end = 0;
  for (int m = 0; m < M; ++m) {
    const Span<V> codes = coded_in(queries[m], block.begin);
    if (codes.begin >= codes.end) continue;
    first = min(first, codes.begin / kPageTokens);
    end = max(end, codes.end / kPageTokens);
  }
  // A tile of queries asks for what comes, a page at a time: a processor takes few requests at
  // once.
  const bool fetches = tile == 0;
  for (int p = 0; p < kBlockPages; ++p) {
    if (fetches) fetch_next(coded, block, p, 0);
    if (p >= first && p < end)
      tile_page_scores<V, B, M, kWide>(tiles, coded, block.pages[p], block.keys[p], high, low,
                                       queries, tiles.score + p * kPageTokens);
  }
  constexpr int kFirst = M % 4 == 0 ? 4 : 2;  // Queries that share the first page.
  for (int m = 0; m < M && block.begin == 0; m += kFirst)
    score_hot<V, kFirst>(call, 0, queries + m, FirstPage<V>(), tiles.score + m * kBlockTokens);
  hot_runs<V, M>(
      queries, [&](auto count, int m) __attribute__((always_inline)) {
        score_hot<V, decltype(count)::value>(call, block.begin, queries + m, OwnPages<V>(),
                                             tiles.score + m * kBlockTokens);
      });
  for (int m = 0; m < M; ++m) {
    for (int p = m; fetches && p < kBlockPages; p += M) fetch_next(coded, block, p, 1);
    float* const score = tiles.score + m * kBlockTokens;
    uint8_t* const bytes = tiles.bytes + m * kBlockTokens;
    const Span<V> seen = seen_in(queries[m].seen, block.begin);
    if (seen.begin < seen.end) {
      scores_to_weights<V>(call.args, seen, score, queries[m].seen);
      scale_coded_sums(queries[m], tiles.v_stride, tiles.sums_of(tile + m));
    }
    const Span<V> codes = coded_in(queries[m], block.begin);
    for (int p = first; p < end; ++p) {
      const int t = p * kPageTokens;
      tiles.factors[p * V::kTileRows + m] =
          weights_to_bytes<V, B>(coded, block.pages[p], Span<V>{codes.begin - t, codes.end - t},
                                 score + t, queries[m], bytes + t);
    }
  }
  for (int m = 0; m < M && block.begin == 0; m += kFirst)
    add_hot<V, kFirst>(call, 0, queries + m, FirstPage<V>(), tiles.score + m * kBlockTokens,
                       sums.numbers + int64_t{m} * tiles.v_stride, tiles.v_stride);
  constexpr int kRows = M / 2;
  for (int m = 0; m < M && first < end; m += kRows) {
    const uint8_t* const bytes = tiles.bytes + m * kBlockTokens;
    float* const to = sums.coded + int64_t{m} * tiles.v_stride;
    int32_t d = 0;
    for (; d + 2 * V::kLanes <= tiles.v_stride; d += 2 * V::kLanes)
      tile_page_values<V, B, kRows, 2>(block.values, first, end, bytes, tiles.factors + m, to,
                                       tiles.v_stride, d);
    for (; d < tiles.v_stride; d += V::kLanes)
      tile_page_values<V, B, kRows, 1>(block.values, first, end, bytes, tiles.factors + m, to,
                                       tiles.v_stride, d);
  }
  hot_runs<V, M>(
      queries, [&](auto count, int m) __attribute__((always_inline)) {
        add_hot<V, decltype(count)::value>(
            call, block.begin, queries + m, OwnPages<V>(), tiles.score + m * kBlockTokens,
            sums.numbers + int64_t{m} * tiles.v_stride, tiles.v_stride);
      });
}

// Queries [begin, end) of args.rows * args.group, row by row; at most kTileQueries.
template <class V, class B, int kKeyBits, int kValueBits>
void attend_coded_chunk(const CodedCall<V>& call, const CodedTiles<V>& tiles,
                        const CodeTables<V>& tables, int32_t begin, int32_t end) {
  const CodedPages& coded = call.coded;
  const AttendArgs& args = call.args;
  constexpr bool kWide = kKeyBits == 8;
  const typename B::Int key_table = B::table(tables.keys), value_table = B::table(tables.values);
  const int32_t count = end - begin;
  const auto bytes_at = [&](uint8_t * bytes, int32_t tile) __attribute__((always_inline)) {
    return bytes + int64_t{tile} * tiles.steps * 4;
  };
  int32_t first = INT32_MAX, last = 0, codes_last = 0, total = 0;
  for (int32_t tile = 0; tile < count; tile += tile_rows<V>(count - tile)) {
    const int32_t rows = tile_rows<V>(count - tile);
    for (int32_t m = 0; m < rows; ++m) {
      const int32_t index = min(begin + tile + m, end - 1);
      CodedQuery<V>& query = tiles.queries[tile + m];
      start_coded<V>(coded, args, index / args.group, index % args.group, query,
                     tiles.turned + int64_t{tile + m} * coded.k_dim);
      first = min(first, query.seen.begin);
      last = max(last, query.seen.end);
      codes_last = max(codes_last, query.own);
    }
    total = tile + rows;
  }
  for (int32_t m = 0; m < total; ++m)
    turn_heads<V, B>(coded.k_rotation, /*back=*/false, call.key_factor, 1, tiles.queries[m].q,
                     tiles.turned + int64_t{m} * coded.k_dim);
  for (int32_t tile = 0; tile < count; tile += tile_rows<V>(count - tile)) {
    const int32_t rows = tile_rows<V>(count - tile);
    for (int32_t m = 0; m < rows; ++m)
      code_query<V, B>(coded, tiles.queries[tile + m], bytes_at(tiles.high, tile) + 4 * m,
                       kWide ? bytes_at(tiles.low, tile) + 4 * m : nullptr, 4 * rows);
  }
  for (int64_t i = 0; i < int64_t{total} * tiles.v_stride; ++i)
    tiles.sums[i] = tiles.numbers[i] = 0;

  CodedBlock<V> block;
  for (block.begin = first / kBlockTokens * kBlockTokens; block.begin < last;
       block.begin += kBlockTokens) {
    const int first_page = max(max(first, kPageTokens) - block.begin, 0) / kPageTokens;
    const int end_page = min(codes_last - block.begin, kBlockTokens) / kPageTokens;
    for (int p = 0; p < kBlockPages; ++p) {
      const int32_t next = block.begin / kPageTokens + kBlockPages + p;
      block.next[p] = next < codes_last / kPageTokens ? call.page(next) : nullptr;
    }
    for (int p = first_page; p < end_page; ++p) {
      const uint8_t* const page = call.page(block.begin / kPageTokens + p);
      const uint8_t* const codes = page + value_codes_at(coded);
      block.pages[p] = block.keys[p] = page;
      block.values[p] = codes;
      if constexpr (!kWide) {
        uint8_t* const to = tiles.keys + p * tiles.page_key_bytes();
        spread_keys<V, B>(coded, page, key_table, to);
        block.keys[p] = to;
      }
      if constexpr (kValueBits != 8) {
        uint8_t* const to = tiles.values + p * tiles.page_value_bytes();
        spread_values<V, B, kValueBits>(coded, codes, value_table, to);
        block.values[p] = to;
      }
    }
    for (int32_t tile = 0; tile < count; tile += tile_rows<V>(count - tile)) {
      const uint8_t* const high = bytes_at(tiles.high, tile);
      const uint8_t* const low = bytes_at(tiles.low, tile);
      constexpr int kRows = V::kTileRows;
      switch (tile_rows<V>(count - tile)) {
        case kRows:
          coded_tile_block<V, B, kRows, kWide>(call, tiles, block, high, low, tile);
          break;
        case kRows / 3 * 2:
          coded_tile_block<V, B, kRows / 3 * 2, kWide>(call, tiles, block, high, low, tile);
          break;
        default:
          coded_tile_block<V, B, kRows / 3, kWide>(call, tiles, block, high, low, tile);
      }
    }
  }
  for (int32_t i = 0; i < count; ++i)
    finish_coded<V, B>(call, (begin + i) / args.group, (begin + i) % args.group, tiles.queries[i],
                       tiles.sums_of(i));
}

template <class V, class B, int kKeyBits, int kValueBits>
void attend_coded_tiles(const CodedCall<V>& call, const CodeTables<V>& tables) {
  const CodedTiles<V> tiles = lay_out_coded<V>(call.coded, call.args.scratch);
  const int64_t queries = int64_t{call.args.rows} * call.args.group;
  for (int64_t begin = 0; begin < queries; begin += kTileQueries) {
    const int64_t end = begin + kTileQueries < queries ? begin + kTileQueries : queries;
    attend_coded_chunk<V, B, kKeyBits, kValueBits>(call, tiles, tables, static_cast<int32_t>(begin),
                                                   static_cast<int32_t>(end));
  }
}

}  // namespace weir::kernels::simd
