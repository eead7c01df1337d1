// Attention to codes of few queries: the heads of one row share each line of codes, which becomes
// bytes in registers. Memory is read in the order of the pages, prefetched two pages ahead.
#pragma once

#include <cstdint>

#include "kernels/simd/attend_coded_tile.h"

namespace weir::kernels::simd {

// More heads than this take turns with a page's bytes; of short contexts, which the nearest caches
// hold, with all of them.
inline constexpr int kCodedHeads = 4;
inline constexpr int32_t kShortContext = 512;

// The memory of a row's heads.
template <class V>
struct CodedHeads {
  CodedQuery<V>* queries = nullptr;  // [kCodedHeads]
  float* turned = nullptr;           // [kCodedHeads][k_dim]
  uint8_t* high = nullptr;           // [kCodedHeads][dimensions]
  uint8_t* low = nullptr;
  float* score = nullptr;    // [kCodedHeads][256]
  uint8_t* bytes = nullptr;  // [kCodedHeads][256]
  float* sums = nullptr;     // [kCodedHeads][v_stride], of codes,
  float* numbers = nullptr;  // and of what is not.
  int32_t v_stride = 0;

  CodedSums sums_of(int h) const { return {sums + h * v_stride, numbers + h * v_stride}; }
};

// From a head's query bytes to the next one's.
inline constexpr int32_t kQueryBytes = kCodedDimMax;

template <class V>
CodedHeads<V> lay_out_heads(const CodedPages& coded, void* scratch) {
  CodedHeads<V> heads;
  heads.v_stride = value_chunks(coded.v_dim) * kChunkDims;
  heads.queries = static_cast<CodedQuery<V>*>(scratch);
  heads.turned = reinterpret_cast<float*>(heads.queries + kCodedHeads);
  heads.high = reinterpret_cast<uint8_t*>(heads.turned + kCodedHeads * kCodedDimMax);
  heads.low = heads.high + kCodedHeads * kQueryBytes;
  heads.score = reinterpret_cast<float*>(heads.low + kCodedHeads * kQueryBytes);
  heads.bytes = reinterpret_cast<uint8_t*>(heads.score + kCodedHeads * kBlockTokens);
  heads.sums = reinterpret_cast<float*>(heads.bytes + kCodedHeads * kBlockTokens);
  heads.numbers = heads.sums + kCodedHeads * heads.v_stride;
  return heads;
}

// Scores of a page's tokens, of G heads.
template <class V, class B, int G, bool kWide>
[[gnu::always_inline]] inline void score_page(const CodedPages& coded, const uint8_t* page,
                                              const uint8_t* ahead, const CodedHeads<V>& heads,
                                              typename B::Int table, float* score) {
  using Int = typename B::Int;
  constexpr int kBits = kWide ? 8 : 4;
  constexpr int kN = B::kKeyVecs;
  // Two sums a head where there is room: an addition waits for the one before it.
  constexpr int kParts = G * kN * 2 <= B::kAccumulators ? 2 : 1;
  const int32_t lines = key_lines(coded.k_dim, kBits);
  float common[G];
  mean_scores<V, B, G>(coded, page, heads.queries, common);
  const auto* const scales = reinterpret_cast<const uint16_t*>(page + key_scales_at(coded));
  for (int t = 0; t < kPageTokens; t += kN * V::kLanes) {
    Int sum[G][kN][kParts], low[G][kN];
    repeat<G * kN>([&](auto i) __attribute__((always_inline)) {
      repeat<kParts>([&](auto p)
                         __attribute__((always_inline)) { sum[i / kN][i % kN][p] = B::zero(); });
      low[i / kN][i % kN] = B::zero();
    });
    for (int32_t j = 0; j < lines; ++j) {
      if (t == 0) prefetch(ahead + j * 2 * kCodedLine, 2 * kCodedLine);
      repeat<kN>([&](auto v) __attribute__((always_inline)) {
        const int at = t + v * V::kLanes;
        const Int x = B::load(page + (2 * j + at / kHalfPage) * kCodedLine + at % kHalfPage * 4);
        if constexpr (kWide) {
          const typename B::Unsigned k = B::as_unsigned(x);
          repeat<G>([&](auto h) __attribute__((always_inline)) {
            sum[h][v][0] =
                B::dot(sum[h][v][0], k, B::broadcast_signed(heads.high + h * kQueryBytes + 4 * j));
            low[h][v] =
                B::dot(low[h][v], k, B::broadcast_signed(heads.low + h * kQueryBytes + 4 * j));
          });
        } else {
          const Int nibbles = B::all_bytes(15);
          const typename B::Unsigned k0 = B::as_unsigned(B::lookup(table, B::both(x, nibbles)));
          const typename B::Unsigned k1 =
              B::as_unsigned(B::lookup(table, B::both(B::template right<4>(x), nibbles)));
          repeat<G>([&](auto h) __attribute__((always_inline)) {
            const uint8_t* const q = heads.high + h * kQueryBytes + 8 * j;
            Int& last = sum[h][v][kParts - 1];
            sum[h][v][0] = B::dot(sum[h][v][0], k0, B::broadcast_signed(q));
            last = B::dot(last, k1, B::broadcast_signed(q + 4));
          });
        }
      });
    }
    repeat<G * kN>([&](auto i) __attribute__((always_inline)) {
      constexpr int kH = decltype(i)::value / kN, kV = decltype(i)::value % kN;
      Int all = sum[kH][kV][0];
      if constexpr (kParts == 2) all = B::add(all, sum[kH][kV][1]);
      const int at = t + kV * V::kLanes;
      V::store(score + kH * kBlockTokens + at,
               coded_scores<V, B, kWide>(heads.queries[kH], all, low[kH][kV], V::load(scales + at),
                                         V::broadcast(common[kH])));
    });
  }
}

// A page's values, of G heads: N vectors of dimensions from `d` on.
template <class V, class B, int G, int kBits, int N>
[[gnu::always_inline]] inline void add_page_values(const uint8_t* codes, const uint8_t* bytes,
                                                   const float* f, typename B::Int table,
                                                   float* sums, int32_t stride, int32_t d) {
  using Int = typename B::Int;
  Int sum[G][N];
  repeat<G * N>([&](auto i) __attribute__((always_inline)) { sum[i / N][i % N] = B::zero(); });
  const uint8_t* chunk[N];
  repeat<N>([&](auto n) __attribute__((always_inline)) {
    const int32_t at = d + n * V::kLanes;
    chunk[n] = codes + int64_t{at / kChunkDims} * kCodedLine * kBits + at % kChunkDims * 4;
  });
  repeat<kPageSteps>([&](auto s) __attribute__((always_inline)) {
    typename B::Signed v[N];
    repeat<N>([&](auto n) __attribute__((always_inline)) {
      v[n] = B::as_signed(value_bytes<V, B, kBits, decltype(s)::value>(chunk[n], table));
    });
    repeat<G>([&](auto h) __attribute__((always_inline)) {
      const typename B::Unsigned w =
          B::broadcast_unsigned(bytes + h * kBlockTokens + s * kStepTokens);
      repeat<N>([&](auto n)
                    __attribute__((always_inline)) { sum[h][n] = B::dot(sum[h][n], w, v[n]); });
    });
  });
  repeat<G * N>([&](auto i) __attribute__((always_inline)) {
    constexpr int kH = decltype(i)::value / N, kV = decltype(i)::value % N;
    float* const to = sums + kH * stride + d + kV * V::kLanes;
    V::store(to, V::fma(B::to_float(sum[kH][kV]), V::broadcast(f[kH]), V::load(to)));
  });
}

template <class V, class B, int G, int kBits>
void add_page(const CodedPages& coded, const uint8_t* page, const uint8_t* ahead,
              const uint8_t* bytes, const float* f, typename B::Int table,
              const CodedHeads<V>& heads) {
  const uint8_t* const codes = page + value_codes_at(coded);
  const int64_t ahead_bytes = int64_t{kCodedLine} * kBits * V::kLanes / kChunkDims;
  int32_t d = 0;
  for (; d + 2 * V::kLanes <= heads.v_stride; d += 2 * V::kLanes, ahead += 2 * ahead_bytes) {
    prefetch(ahead, 2 * ahead_bytes);
    add_page_values<V, B, G, kBits, 2>(codes, bytes, f, table, heads.sums, heads.v_stride, d);
  }
  for (; d < heads.v_stride; d += V::kLanes)
    add_page_values<V, B, G, kBits, 1>(codes, bytes, f, table, heads.sums, heads.v_stride, d);
}

// What is fetched while keys of page i of a block are read: those of the page after the next, or
// the block's first values; and while values are: further ones, or the next block's keys.
template <class V>
struct CodedAhead {
  static constexpr int kAhead = 2;
  int first = 0, end = 0;  // Pages of the block.
  int32_t block = 0;       // Its first page.
  int32_t last = 0;        // After the sequence's last page of codes.

  [[gnu::always_inline]] const uint8_t* of_keys(const CodedCall<V>& call, int page) const {
    const int next = page + kAhead;
    if (next < end) return call.page(block + next);
    const int value = min(first + next - end, end - 1);
    return call.page(block + value) + value_codes_at(call.coded);
  }
  [[gnu::always_inline]] const uint8_t* of_values(const CodedCall<V>& call, int page) const {
    const int next = page + kAhead;
    if (next < end) return call.page(block + next) + value_codes_at(call.coded);
    const int32_t key = block + kBlockPages + next - end;
    return key < last ? call.page(key) : call.page(block + page);
  }
};

// Scores of what is not codes of a block: of the first page where `opening` has tokens, and of what
// `hot` has.
template <class V, int G>
[[gnu::always_inline]] inline void score_hot_pages(const CodedCall<V>& call, int32_t block,
                                                   Span<V> opening, Span<V> hot,
                                                   const CodedHeads<V>& heads) {
  const int32_t k_dim = call.coded.k_dim;
  bool first = opening.begin < opening.end;
  for (int t = hot.begin / kPageTokens * kPageTokens; t < hot.end; t += kPageTokens) {
    const uint16_t* const keys = call.hot_keys((block + t) / kPageTokens);
    if (first)
      hot_scores<V, G, 2>({call.hot_keys(0), keys}, k_dim, heads.queries,
                          {heads.score, heads.score + t});
    else
      hot_scores<V, G, 1>({keys}, k_dim, heads.queries, {heads.score + t});
    first = false;
  }
  if (first) hot_scores<V, G, 1>({call.hot_keys(0)}, k_dim, heads.queries, {heads.score});
}

// G heads of one row.
template <class V, class B, int G, int kKeyBits, int kValueBits>
void decode_coded_heads(const CodedCall<V>& call, int32_t row, int32_t head,
                        const CodedHeads<V>& heads, const CodeTables<V>& tables) {
  const CodedPages& coded = call.coded;
  constexpr bool kWide = kKeyBits == 8;
  const typename B::Int key_table = B::table(tables.keys), value_table = B::table(tables.values);
  for (int h = 0; h < G; ++h)
    start_coded<V>(coded, call.args, row, head + h, heads.queries[h],
                   heads.turned + h * coded.k_dim);
  turn_heads<V, B>(coded.k_rotation, /*back=*/false, call.key_factor, G, heads.queries[0].q,
                   heads.turned);
  for (int32_t i = 0; i < G * heads.v_stride; ++i) heads.sums[i] = heads.numbers[i] = 0;
  const CodedQuery<V>& any = heads.queries[0];
  const int32_t first_block = any.seen.begin / kBlockTokens * kBlockTokens;
  for (int32_t block = first_block; block < any.seen.end; block += kBlockTokens) {
    const Span<V> codes = coded_in(any, block), hot = hot_in(any, block);
    const Span<V> opening = first_in(any, block);
    const int first = codes.begin / kPageTokens;
    const int end = codes.begin < codes.end ? codes.end / kPageTokens : first;
    const CodedAhead<V> ahead = {first, end, block / kPageTokens, any.own / kPageTokens};
    // What is numbers comes first: these products wait for nothing, while queries are turned and
    // rounded one step after the other.
    score_hot_pages<V, G>(call, block, opening, hot, heads);
    if (block == first_block)
      for (int h = 0; h < G; ++h)
        code_query<V, B>(coded, heads.queries[h], heads.high + h * kQueryBytes,
                         kWide ? heads.low + h * kQueryBytes : nullptr, 4);
    for (int p = first; p < end; ++p)
      score_page<V, B, G, kWide>(coded, call.page(ahead.block + p), ahead.of_keys(call, p), heads,
                                 key_table, heads.score + p * kPageTokens);
    const Span<V> seen = seen_in(any.seen, block);
    for (int h = 0; h < G; ++h) {
      scores_to_weights<V>(call.args, seen, heads.score + h * kBlockTokens, heads.queries[h].seen);
      // Before the first block they are zeros.
      if (block > first_block) scale_coded_sums(heads.queries[h], heads.v_stride, heads.sums_of(h));
    }
    if (opening.begin < opening.end)
      add_hot_values<V, G>(call.hot_keys(0) + int64_t{coded.k_dim} * kPageTokens, coded.v_dim,
                           opening, heads.score, heads.numbers, heads.v_stride);
    for (int p = first; p < end; ++p) {
      const uint8_t* const page = call.page(ahead.block + p);
      const int t = p * kPageTokens;
      float f[G];
      for (int h = 0; h < G; ++h)
        f[h] = weights_to_bytes<V, B>(coded, page, Span<V>{codes.begin - t, codes.end - t},
                                      heads.score + h * kBlockTokens + t, heads.queries[h],
                                      heads.bytes + h * kBlockTokens + t);
      add_page<V, B, G, kValueBits>(coded, page, ahead.of_values(call, p), heads.bytes + t, f,
                                    value_table, heads);
    }
    for (int t = hot.begin / kPageTokens * kPageTokens; t < hot.end; t += kPageTokens)
      add_hot_values<V, G>(
          call.hot_keys((block + t) / kPageTokens) + int64_t{coded.k_dim} * kPageTokens,
          coded.v_dim, Span<V>{max(hot.begin - t, 0), min(hot.end - t, kPageTokens)},
          heads.score + t, heads.numbers, heads.v_stride);
  }
  for (int h = 0; h < G; ++h)
    finish_coded<V, B>(call, row, head + h, heads.queries[h], heads.sums_of(h));
}

template <class V, class B, int kKeyBits, int kValueBits>
void attend_codes(const CodedCall<V>& call) {
  CodeTables<V> tables;
  fill_tables<V>(call.coded.v_bits, tables);
  const AttendArgs& args = call.args;
  const bool long_context = args.first_position >= kShortContext;
  if (args.rows > 1 || (args.group > kCodedHeads && long_context))
    return attend_coded_tiles<V, B, kKeyBits, kValueBits>(call, tables);
  const CodedHeads<V> heads = lay_out_heads<V>(call.coded, args.scratch);
  const int32_t end = args.rows * args.group;  // rows: none or one.
  for (int32_t head = 0; head < end; head += kCodedHeads) {
    switch (min(end - head, kCodedHeads)) {
      case 1:
        decode_coded_heads<V, B, 1, kKeyBits, kValueBits>(call, 0, head, heads, tables);
        break;
      case 2:
        decode_coded_heads<V, B, 2, kKeyBits, kValueBits>(call, 0, head, heads, tables);
        break;
      case 3:
        decode_coded_heads<V, B, 3, kKeyBits, kValueBits>(call, 0, head, heads, tables);
        break;
      default:
        decode_coded_heads<V, B, 4, kKeyBits, kValueBits>(call, 0, head, heads, tables);
    }
  }
}

template <class V, class B>
void attend_coded(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
                  const AttendArgs& args) {
  const CodedCall<V> call = {coded,
                             hot,
                             hot_pages,
                             args,
                             rotation_factor<V>(coded.k_rotation),
                             rotation_factor<V>(coded.v_rotation)};
  if (coded.k_bits == 8) return attend_codes<V, B, 8, 8>(call);
  return coded.v_bits == 4 ? attend_codes<V, B, 4, 4>(call) : attend_codes<V, B, 4, 3>(call);
}

}  // namespace weir::kernels::simd
