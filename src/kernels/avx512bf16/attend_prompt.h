// attend_prompt in bf16: queries, keys, weights and values are rounded, sums are float32.
//
// A query is one head of one row; 32 of them share every product. Per block of 256 tokens keys and
// values become panels of tiles once for all queries of the call, from numbers as they lie
// (NumberPages) or from codes (coded_prompt.h). Then, for 32 queries and
// 128 tokens at a time (a stretch): scores come out of products over the dimensions, a pass over
// them makes weights, and products over the tokens add the values.
//
// Products are made by Tiles, one kind by AMX, one by vectors: run_product() of their namespace.
// The pass is vector arithmetic, 12 instructions for 16 scores. On Intel AMX takes one of the two
// vector ports, and instructions are bound to their ports early, so products in between are not
// hidden by it: products and pass take turns, and each has what it reads in L1.
//
// For files of avx512bf16/ and amx/: everything is a template over Tiles, or over where panels come
// from.
#pragma once

#include "kernels/avx512/attention.h"
#include "kernels/avx512bf16/attention_panel.h"
#include "kernels/avx512bf16/attention_weights.h"

namespace weir::kernels::avx512bf16 {

inline constexpr int kTogether = kRowTiles * kTileRows;  // Queries of a product.

// The scratch memory of one call.
struct Room {
  uint16_t* keys;      // [page][tile of 16 tokens][k_dim / 32] tiles
  uint16_t* values;    // [v_dim / 16][page] tiles
  float* scores;       // [32][kStretch]
  uint16_t* weights;   // Likewise.
  uint16_t* q;         // [capacity][q_stride]
  float* sums;         // [capacity][v_dim]: the values so far.
  float* weight_sums;  // [capacity][16]: WeighRows::sum
  float* max;          // [capacity]
  int32_t* begin;      // [capacity]: the tokens that a query sees.
  int32_t* end;        // [capacity]
  int64_t q_stride;
  int32_t k_dim;
  int32_t v_dim;
  int32_t capacity;  // A multiple of 32.

  uint16_t* page_keys(int32_t page) const {
    return keys + int64_t{page % kBlockPages} * kPageTokens * k_dim;
  }
  uint16_t* page_values(int32_t page) const { return values + page % kBlockPages * kTileElements; }
};

// Hands out parts of the scratch, each on a line of the cache.
class Parts {
 public:
  explicit Parts(void* scratch) : at_(static_cast<uint8_t*>(scratch)) {}
  template <class T>
  T* take(int64_t count) {
    T* const part = reinterpret_cast<T*>(at_);
    at_ += (count * int64_t{sizeof(T)} + 63) / 64 * 64;
    return part;
  }
  int64_t used(const void* scratch) const { return at_ - static_cast<const uint8_t*>(scratch); }

 private:
  uint8_t* at_;
};

WEIR_INLINE Room lay_out(int32_t k_dim, int32_t v_dim, void* scratch) {
  Room room;
  room.k_dim = k_dim;
  room.v_dim = v_dim;
  room.q_stride = k_dim + kStep;  // Rows of a tile in different sets of the cache.
  Parts parts(scratch);
  room.keys = parts.take<uint16_t>(int64_t{kBlockTokens} * k_dim);
  room.values = parts.take<uint16_t>(int64_t{kBlockTokens} * v_dim);
  room.scores = parts.take<float>(kTogether * kStretch);
  room.weights = parts.take<uint16_t>(kTogether * kStretch);
  const int64_t query = 2 * room.q_stride + 4 * (int64_t{v_dim} + kLanes) + 12;
  room.capacity =
      static_cast<int32_t>((kScratchBytes - parts.used(scratch)) / query / kTogether * kTogether);
  room.q = parts.take<uint16_t>(room.capacity * room.q_stride);
  room.sums = parts.take<float>(int64_t{room.capacity} * v_dim);
  room.weight_sums = parts.take<float>(int64_t{room.capacity} * kLanes);
  room.max = parts.take<float>(room.capacity);
  room.begin = parts.take<int32_t>(room.capacity);
  room.end = parts.take<int32_t>(room.capacity);
  return room;
}

// Pages of the sequence.
struct PageRange {
  int32_t begin, end;
};

// Those of a block that hold tokens of [first, last).
WEIR_INLINE PageRange pages_of(int32_t block, int32_t first, int32_t last) {
  const int32_t begin = (first > block ? first : block) / kPageTokens;
  const int32_t block_end = block / kPageTokens + kBlockPages;
  const int32_t end = (last + kPageTokens - 1) / kPageTokens;
  return {begin, end < block_end ? end : block_end};
}

// Queries of the call, or places of them in the room.
struct QueryRange {
  int32_t begin, end;
};

WEIR_INLINE const float* query_of(const AttendArgs& args, const Room& room, int32_t q) {
  return args.q + q / args.group * args.q_stride + int64_t{q % args.group} * room.k_dim;
}

WEIR_INLINE void round_query(const float* from, const Room& room, int32_t place) {
  for (int32_t d = 0; d < room.k_dim; d += kStep)
    _mm512_store_si512(room.q + place * room.q_stride + d, round32(from + d));
}

// Numbers of type E as they lie.
template <class E>
struct NumberPages {
  const KvPages& kv;
  const AttendArgs& args;

  // A page's keys of the head; its values follow.
  const E* keys_of(int32_t page) const {
    return reinterpret_cast<const E*>(kv.base + args.pages[page] * kv.page_bytes +
                                      args.kv_head * kv.head_bytes);
  }

  // Asks for a page that is due soon.
  void fetch(int32_t page) const {
    const auto* const bytes = reinterpret_cast<const uint8_t*>(keys_of(page));
    for (int64_t byte = 0; byte < kv.head_bytes; byte += 64)
      _mm_prefetch(bytes + byte, _MM_HINT_T1);
  }
  // The end of the queries of a range that read the same panels of a block as its first one does,
  // and how many places before the first of them are left empty, so that such queries begin at
  // tiles of their own.
  int32_t alike_until(QueryRange queries, int32_t /*block*/) const { return queries.end; }
  int32_t padding(QueryRange /*queries*/) const { return 0; }
  // Begins a block, of which no panel is filled.
  void begin_block() {}
  // Fills panels of pages for query `query` and those alike. Tokens [first, last) are all that any
  // query of the call sees.
  void widen(PageRange pages, int32_t /*query*/, int32_t first, int32_t last, const Room& room) {
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      const E* const keys = keys_of(page);
      const int32_t token = page * kPageTokens;
      widen_keys(keys, room.k_dim, room.page_keys(page));
      widen_values(keys + int64_t{room.k_dim} * kPageTokens, room.v_dim, kPageTokens, first - token,
                   last - token, room.page_values(page));
    }
  }
  // Rounds queries to the room, from `place` on.
  void take_queries(QueryRange queries, int32_t place, const Room& room) const {
    for (int32_t q = queries.begin; q < queries.end; ++q, ++place)
      round_query(query_of(args, room, q), room, place);
  }
  // What panels of values hold becomes what the layer computes with, in `count` sums.
  void turn_back(int32_t /*count*/, float* /*sums*/) const {}
};

// Up to 32 queries over a stretch.
struct Visit {
  int32_t query;  // The first.
  int32_t count;
  int32_t token;                 // The stretch's first.
  int32_t first_page, end_page;  // Of the block: those that any of the queries sees.
};

template <int kUsedTiles, class Tiles>
void score(Tiles& tiles, const Room& room, const Visit& visit) {
  Product p{};
  p.panel_step = kTileElements;
  p.panel_tile = int64_t{room.k_dim} / kStep * kTileElements;
  p.x = room.q + visit.query * room.q_stride;
  p.x_stride = 2 * room.q_stride;
  p.steps = room.k_dim / kStep;
  for (int32_t page = visit.first_page; page < visit.end_page; ++page) {
    p.panel = room.page_keys(page);
    for (int b = 0; b < kColumnTiles; ++b) {
      p.y[b] = room.scores + page % kStretchPages * kPageTokens + b * kLanes;
      p.y_stride[b] = 4 * kStretch;
    }
    run_product<kUsedTiles, kColumnTiles>(tiles, p);
  }
}

template <int kUsedTiles, class Tiles>
void add_values(Tiles& tiles, const Room& room, const Visit& visit) {
  Product p{};
  p.panel_step = kTileElements;
  p.panel_tile = kBlockPages * kTileElements;
  p.x = room.weights + visit.first_page % kStretchPages * kPageTokens;
  p.x_stride = 2 * kStretch;
  p.steps = visit.end_page - visit.first_page;
  p.resume = true;
  for (int32_t d = 0; d < room.v_dim; d += kColumnTiles * kLanes) {
    p.panel = room.values + (int64_t{d} / kLanes * kBlockPages + visit.first_page) * kTileElements;
    for (int b = 0; b < kColumnTiles; ++b) {
      p.y[b] = room.sums + int64_t{visit.query} * room.v_dim + d + b * kLanes;
      p.y_stride[b] = 4 * int64_t{room.v_dim};
    }
    run_product<kUsedTiles, kColumnTiles>(tiles, p);
  }
}

WEIR_INLINE void weigh(float factor, const Room& room, const Visit& visit) {
  const int32_t last = visit.query + visit.count - 1;
  const bool whole =
      room.begin[last] <= visit.token && room.end[visit.query] >= visit.token + kStretch;
  for (int32_t row = 0; row < visit.count; row += kTileRows) {
    const int32_t query = visit.query + row;
    alignas(64) float rescale[kTileRows];
    int32_t begin[kTileRows], end[kTileRows];
    for (int32_t i = 0; !whole && i < kTileRows; ++i) {
      begin[i] = room.begin[query + i] - visit.token;
      end[i] = room.end[query + i] - visit.token;
    }
    const WeighRows rows = {.scores = room.scores + row * kStretch,
                            .weights = room.weights + row * kStretch,
                            .begin = begin,
                            .end = end,
                            .max = room.max + query,
                            .sum = room.weight_sums + int64_t{query} * kLanes,
                            .count = visit.count - row < kTileRows ? visit.count - row : kTileRows};
    const bool risen =
        whole ? weigh_rows<true>(factor, rows, rescale) : weigh_rows<false>(factor, rows, rescale);
    if (risen) rescale_sums(room.sums + int64_t{query} * room.v_dim, room.v_dim, rescale);
  }
}

template <int kUsedTiles, class Tiles>
void attend_stretch(Tiles& tiles, float factor, const Room& room, const Visit& visit) {
  score<kUsedTiles>(tiles, room, visit);
  weigh(factor, room, visit);
  add_values<kUsedTiles>(tiles, room, visit);
}

// A block whose panels are ready. Queries outside, so that their sums stay in L1; meanwhile
// the pages of the next block come: of `total` queries each asks for its part.
template <class Tiles, class Pages>
void attend_block(Tiles& tiles, const Pages& pages, const Room& room, QueryRange queries,
                  int32_t total, int32_t block, PageRange next) {
  const float factor = pages.args.scale * kLog2E;
  const int32_t due = next.end > next.begin ? next.end - next.begin : 0;
  for (int32_t query = queries.begin; query < queries.end; query += kTogether) {
    const int32_t count = queries.end - query < kTogether ? queries.end - query : kTogether;
    for (int32_t page = due * query / total; page < due * (query + count) / total; ++page)
      pages.fetch(next.begin + page);
    // Queries come in the order of rows, which see ever later tokens.
    const int32_t first = room.begin[query] - block, last = room.end[query + count - 1] - block;
    const int32_t end_page =
        last < kBlockTokens ? (last + kPageTokens - 1) / kPageTokens : kBlockPages;
    for (int32_t page = first > 0 ? first / kPageTokens : 0; page < end_page;) {
      const int32_t stretch = page / kStretchPages * kStretchPages;
      const int32_t end = end_page < stretch + kStretchPages ? end_page : stretch + kStretchPages;
      const Visit visit = {.query = query,
                           .count = count,
                           .token = block + stretch * kPageTokens,
                           .first_page = page,
                           .end_page = end};
      if (count > kTileRows)
        attend_stretch<kRowTiles>(tiles, factor, room, visit);
      else
        attend_stretch<1>(tiles, factor, room, visit);
      page = end;
    }
  }
}

// The tokens that query q of a call sees.
struct Seen {
  int32_t begin, end;
};
WEIR_INLINE Seen seen_by(const AttendArgs& args, int32_t q) {
  const int32_t position = args.first_position + q / args.group;
  const int32_t window = args.chunks ? position % args.window + 1 : args.window;
  Seen seen = {.begin = 0, .end = position + 1};
  if (window > 0 && seen.end > window) seen.begin = seen.end - window;
  if (position >= args.span_begin && position < args.span_end) {
    seen.end = args.span_end;
    if (args.span_begin < seen.begin) seen.begin = args.span_begin;
  }
  if (args.first_key > seen.begin) seen.begin = args.first_key;
  return seen;
}

// Queries of the call, row by row, and `padding` places before them, which see what the first one
// does; at most room.capacity.
template <class Pages>
void start(const Pages& pages, const Room& room, QueryRange queries, int32_t padding) {
  pages.take_queries(queries, padding, room);
  const int32_t places = padding + queries.end - queries.begin;
  for (int32_t i = 0; i < places; ++i) {
    const Seen seen = seen_by(pages.args, queries.begin + (i > padding ? i - padding : 0));
    room.begin[i] = seen.begin;
    room.end[i] = seen.end;
    room.max[i] = -__builtin_inff();
    _mm512_store_ps(room.weight_sums + int64_t{i} * kLanes, _mm512_setzero_ps());
  }
  // What stands in the last tile after them sees nothing.
  for (int32_t i = places; i % kTileRows != 0; ++i) room.begin[i] = room.end[i] = 0;
  for (int64_t i = 0; i < int64_t{places} * room.v_dim; i += kLanes)
    _mm512_store_ps(room.sums + i, _mm512_setzero_ps());
}

template <class Pages>
void finish(const Pages& pages, const Room& room, QueryRange queries, int32_t padding) {
  const AttendArgs& args = pages.args;
  float* sums = room.sums + int64_t{padding} * room.v_dim;
  pages.turn_back(queries.end - queries.begin, sums);
  for (int32_t q = queries.begin; q < queries.end; ++q, ++padding, sums += room.v_dim) {
    const int32_t row = q / args.group, head = q % args.group;
    float sum = _mm512_reduce_add_ps(_mm512_load_ps(room.weight_sums + int64_t{padding} * kLanes));
    if (args.sinks != nullptr)
      sum += _mm512_cvtss_f32(
          exp2(0xffff, _mm512_set1_ps(args.sinks[head] * kLog2E - room.max[padding])));
    const __m512 inverse = _mm512_set1_ps(1.0f / sum);
    float* out = args.out + row * args.out_stride + int64_t{head} * room.v_dim;
    for (int32_t d = 0; d < room.v_dim; d += kLanes)
      _mm512_storeu_ps(out + d, _mm512_mul_ps(_mm512_load_ps(sums + d), inverse));
  }
}

template <class Tiles, class Pages>
void attend_queries(Pages& pages, const Room& room, QueryRange queries) {
  const int32_t padding = pages.padding(queries);
  start(pages, room, queries, padding);
  const int32_t places = padding + queries.end - queries.begin;
  // Queries come in the order of rows, which see ever later tokens.
  const int32_t first = room.begin[0], last = room.end[places - 1];
  Tiles tiles;
  int32_t block = first / kBlockTokens * kBlockTokens;
  const PageRange at_once = pages_of(block, first, last);
  for (int32_t page = at_once.begin; page < at_once.end; ++page) pages.fetch(page);
  for (; block < last; block += kBlockTokens) {
    const PageRange next = pages_of(block + kBlockTokens, first, last);
    pages.begin_block();
    for (QueryRange alike = {0, 0}; alike.begin < places; alike.begin = alike.end) {
      const int32_t query = queries.begin + (alike.begin > 0 ? alike.begin - padding : 0);
      alike.end = pages.alike_until({query, queries.end}, block) - queries.begin + padding;
      pages.widen(pages_of(block, room.begin[alike.begin], room.end[alike.end - 1]), query, first,
                  last, room);
      attend_block(tiles, pages, room, alike, places, block, next);
    }
  }
  finish(pages, room, queries, padding);
}

template <class Tiles, class Pages>
void attend_pages(Pages pages, int32_t k_dim, int32_t v_dim) {
  const AttendArgs& args = pages.args;
  const Room room = lay_out(k_dim, v_dim, args.scratch);
  const int32_t count = args.rows * args.group, most = room.capacity - kTileRows;  // And padding.
  for (int32_t begin = 0; begin < count; begin += most)
    attend_queries<Tiles>(pages, room, {begin, count - begin < most ? count : begin + most});
}

// Heads that tiles take, and queries: what depends on the layer alone, so that all rows of a prompt
// go one way.
WEIR_INLINE bool tiled(int32_t k_dim, int32_t v_dim, const AttendArgs& args) {
  return k_dim % kStep == 0 && v_dim % (kColumnTiles * kLanes) == 0 && k_dim <= kDimsMax &&
         v_dim <= kDimsMax && args.softcap == 0 && args.scale > 0;
}

template <class Tiles>
void attend_prompt(const KvPages& kv, const AttendArgs& args) {
  if (kv.values_in_keys || !tiled(kv.k_dim, kv.v_dim, args)) return avx512::attend(kv, args);
  if (kv.type == FloatType::kF32)
    attend_pages<Tiles>(NumberPages<float>{kv, args}, kv.k_dim, kv.v_dim);
  else
    attend_pages<Tiles>(NumberPages<uint16_t>{kv, args}, kv.k_dim, kv.v_dim);
}

}  // namespace weir::kernels::avx512bf16
