// attend_prompt in bf16: queries, keys, weights and values are rounded, sums are float32.
//
// A query is one head of one row; 32 of them share every product. Per block of 256 tokens keys and
// values are turned into panels of tiles once for all queries of the call. Then, for 32 queries and
// 128 tokens at a time (a stretch): scores come out of products over the dimensions, a pass over
// them makes weights, and products over the tokens add the values.
//
// Products are made by Tiles, one kind by AMX, one by vectors: run_product() of their namespace.
// The pass is vector arithmetic, 12 instructions for 16 scores. On Intel AMX takes one of the two
// vector ports, and instructions are bound to their ports early, so products in between are not
// hidden by it: products and pass take turns, and each has what it reads in L1.
//
// For files of avx512bf16/ and amx/: everything is a template over Tiles.
#pragma once

#include "kernels/avx512/attention.h"
#include "kernels/avx512bf16/attention_panel.h"
#include "kernels/avx512bf16/attention_weights.h"

namespace weir::kernels::avx512bf16 {

inline constexpr int kTogether = kRowTiles * kTileRows;  // Queries of a product.
inline constexpr int32_t kDimsMax = 256;

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
  int32_t capacity;  // A multiple of 32.
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

WEIR_INLINE Room lay_out(const KvPages& kv, void* scratch) {
  Room room;
  room.q_stride = kv.k_dim + kStep;  // Rows of a tile in different sets of the cache.
  Parts parts(scratch);
  room.keys = parts.take<uint16_t>(int64_t{kBlockTokens} * kv.k_dim);
  room.values = parts.take<uint16_t>(int64_t{kBlockTokens} * kv.v_dim);
  room.scores = parts.take<float>(kTogether * kStretch);
  room.weights = parts.take<uint16_t>(kTogether * kStretch);
  const int64_t query = 2 * room.q_stride + 4 * (int64_t{kv.v_dim} + kLanes) + 12;
  room.capacity =
      static_cast<int32_t>((kScratchBytes - parts.used(scratch)) / query / kTogether * kTogether);
  room.q = parts.take<uint16_t>(room.capacity * room.q_stride);
  room.sums = parts.take<float>(int64_t{room.capacity} * kv.v_dim);
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

// A page's keys of the head; its values follow.
WEIR_INLINE const uint8_t* keys_of(const KvPages& kv, const AttendArgs& args, int32_t page) {
  return kv.base + args.pages[page] * kv.page_bytes + args.kv_head * kv.head_bytes;
}

// Asks for pages that are due soon, those of part `part` of `parts`. They lie anywhere in memory,
// and the processor foresees no further than one.
WEIR_INLINE void fetch(const KvPages& kv, const AttendArgs& args, PageRange pages, int32_t part,
                       int32_t parts) {
  const int32_t count = pages.end - pages.begin;
  const int32_t end = pages.begin + count * (part + 1) / parts;
  for (int32_t page = pages.begin + count * part / parts; page < end; ++page)
    for (int64_t byte = 0; byte < kv.head_bytes; byte += 64)
      _mm_prefetch(keys_of(kv, args, page) + byte, _MM_HINT_T1);
}

// Tokens [first, last) are all that is seen.
template <class E>
void widen_block(const KvPages& kv, const AttendArgs& args, PageRange pages, int32_t first,
                 int32_t last, const Room& room) {
  for (int32_t page = pages.begin; page < pages.end; ++page) {
    const auto* keys = reinterpret_cast<const E*>(keys_of(kv, args, page));
    const int32_t token = page * kPageTokens, in_block = page % kBlockPages;
    widen_keys(keys, kv.k_dim, room.keys + int64_t{in_block} * kPageTokens * kv.k_dim);
    widen_values(keys + int64_t{kv.k_dim} * kPageTokens, kv.v_dim, first - token, last - token,
                 room.values + in_block * kTileElements);
  }
}

// Up to 32 queries over a stretch.
struct Visit {
  int32_t query;  // The first.
  int32_t count;
  int32_t token;                 // The stretch's first.
  int32_t first_page, end_page;  // Of the block: those that any of the queries sees.
};

template <int kUsedTiles, class Tiles>
void score(Tiles& tiles, const KvPages& kv, const Room& room, const Visit& visit) {
  Product p{};
  p.panel_step = kTileElements;
  p.panel_tile = int64_t{kv.k_dim} / kStep * kTileElements;
  p.x = room.q + visit.query * room.q_stride;
  p.x_stride = 2 * room.q_stride;
  p.steps = kv.k_dim / kStep;
  for (int32_t page = visit.first_page; page < visit.end_page; ++page) {
    p.panel = room.keys + int64_t{page} * kPageTokens * kv.k_dim;
    for (int b = 0; b < kColumnTiles; ++b) {
      p.y[b] = room.scores + page % kStretchPages * kPageTokens + b * kLanes;
      p.y_stride[b] = 4 * kStretch;
    }
    run_product<kUsedTiles, kColumnTiles>(tiles, p);
  }
}

template <int kUsedTiles, class Tiles>
void add_values(Tiles& tiles, const KvPages& kv, const Room& room, const Visit& visit) {
  Product p{};
  p.panel_step = kTileElements;
  p.panel_tile = kBlockPages * kTileElements;
  p.x = room.weights + visit.first_page % kStretchPages * kPageTokens;
  p.x_stride = 2 * kStretch;
  p.steps = visit.end_page - visit.first_page;
  p.resume = true;
  for (int32_t d = 0; d < kv.v_dim; d += kColumnTiles * kLanes) {
    p.panel = room.values + (int64_t{d} / kLanes * kBlockPages + visit.first_page) * kTileElements;
    for (int b = 0; b < kColumnTiles; ++b) {
      p.y[b] = room.sums + int64_t{visit.query} * kv.v_dim + d + b * kLanes;
      p.y_stride[b] = 4 * int64_t{kv.v_dim};
    }
    run_product<kUsedTiles, kColumnTiles>(tiles, p);
  }
}

WEIR_INLINE void rescale_sums(const KvPages& kv, const Room& room, int32_t query,
                              const float* rescale) {
  for (int32_t i = 0; i < kTileRows; ++i) {
    if (rescale[i] == 1) continue;
    float* sums = room.sums + (int64_t{query} + i) * kv.v_dim;
    const __m512 by = _mm512_set1_ps(rescale[i]);
    for (int32_t d = 0; d < kv.v_dim; d += kLanes)
      _mm512_store_ps(sums + d, _mm512_mul_ps(_mm512_load_ps(sums + d), by));
  }
}

WEIR_INLINE void weigh(const KvPages& kv, float factor, const Room& room, const Visit& visit) {
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
    if (risen) rescale_sums(kv, room, query, rescale);
  }
}

template <int kUsedTiles, class Tiles>
void attend_stretch(Tiles& tiles, const KvPages& kv, const AttendArgs& args, const Room& room,
                    const Visit& visit) {
  score<kUsedTiles>(tiles, kv, room, visit);
  weigh(kv, args.scale * kLog2E, room, visit);
  add_values<kUsedTiles>(tiles, kv, room, visit);
}

// A block whose panels are ready. Queries outside, so that their sums stay in L1; meanwhile
// the pages of the next block come.
template <class Tiles>
void attend_block(Tiles& tiles, const KvPages& kv, const AttendArgs& args, const Room& room,
                  int32_t queries, int32_t block, PageRange next) {
  for (int32_t query = 0; query < queries; query += kTogether) {
    const int32_t count = queries - query < kTogether ? queries - query : kTogether;
    fetch(kv, args, next, query / kTogether, (queries + kTogether - 1) / kTogether);
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
        attend_stretch<kRowTiles>(tiles, kv, args, room, visit);
      else
        attend_stretch<1>(tiles, kv, args, room, visit);
      page = end;
    }
  }
}

// Queries [begin, begin + count), row by row; at most room.capacity.
WEIR_INLINE void start(const KvPages& kv, const AttendArgs& args, const Room& room, int32_t begin,
                       int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const int32_t row = (begin + i) / args.group, head = (begin + i) % args.group;
    const int32_t position = args.first_position + row, end = position + 1;
    room.end[i] = end;
    const int32_t window = args.chunks ? position % args.window + 1 : args.window;
    room.begin[i] = window > 0 && end > window ? end - window : 0;
    if (position >= args.span_begin && position < args.span_end) {
      room.end[i] = args.span_end;
      if (args.span_begin < room.begin[i]) room.begin[i] = args.span_begin;
    }
    if (args.first_key > room.begin[i]) room.begin[i] = args.first_key;
    room.max[i] = -__builtin_inff();
    _mm512_store_ps(room.weight_sums + int64_t{i} * kLanes, _mm512_setzero_ps());
    const float* q = args.q + row * args.q_stride + int64_t{head} * kv.k_dim;
    for (int32_t d = 0; d < kv.k_dim; d += kStep)
      _mm512_store_si512(room.q + i * room.q_stride + d, round32(q + d));
  }
  // What stands in the last tile after them sees nothing.
  for (int32_t i = count; i % kTileRows != 0; ++i) room.begin[i] = room.end[i] = 0;
  for (int64_t i = 0; i < int64_t{count} * kv.v_dim; i += kLanes)
    _mm512_store_ps(room.sums + i, _mm512_setzero_ps());
}

WEIR_INLINE void finish(const KvPages& kv, const AttendArgs& args, const Room& room, int32_t begin,
                        int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const int32_t row = (begin + i) / args.group, head = (begin + i) % args.group;
    float sum = _mm512_reduce_add_ps(_mm512_load_ps(room.weight_sums + int64_t{i} * kLanes));
    if (args.sinks != nullptr)
      sum +=
          _mm512_cvtss_f32(exp2(0xffff, _mm512_set1_ps(args.sinks[head] * kLog2E - room.max[i])));
    const __m512 inverse = _mm512_set1_ps(1.0f / sum);
    const float* sums = room.sums + int64_t{i} * kv.v_dim;
    float* out = args.out + row * args.out_stride + int64_t{head} * kv.v_dim;
    for (int32_t d = 0; d < kv.v_dim; d += kLanes)
      _mm512_storeu_ps(out + d, _mm512_mul_ps(_mm512_load_ps(sums + d), inverse));
  }
}

template <class Tiles, class E>
void attend_queries(const KvPages& kv, const AttendArgs& args, const Room& room, int32_t begin,
                    int32_t count) {
  start(kv, args, room, begin, count);
  // Queries come in the order of rows, which see ever later tokens.
  const int32_t first = room.begin[0], last = room.end[count - 1];
  Tiles tiles;
  int32_t block = first / kBlockTokens * kBlockTokens;
  fetch(kv, args, pages_of(block, first, last), 0, 1);
  for (; block < last; block += kBlockTokens) {
    widen_block<E>(kv, args, pages_of(block, first, last), first, last, room);
    const PageRange next = pages_of(block + kBlockTokens, first, last);
    attend_block(tiles, kv, args, room, count, block, next);
  }
  finish(kv, args, room, begin, count);
}

template <class Tiles>
void attend_prompt(const KvPages& kv, const AttendArgs& args) {
  // What depends on the layer alone, so that all rows of a prompt go one way.
  const bool tiled = kv.k_dim % kStep == 0 && kv.v_dim % (kColumnTiles * kLanes) == 0 &&
                     kv.k_dim <= kDimsMax && kv.v_dim <= kDimsMax && !kv.values_in_keys &&
                     args.softcap == 0 && args.scale > 0;
  if (!tiled) return avx512::attend(kv, args);
  const Room room = lay_out(kv, args.scratch);
  const int32_t queries = args.rows * args.group;
  for (int32_t begin = 0; begin < queries; begin += room.capacity) {
    const int32_t count = queries - begin < room.capacity ? queries - begin : room.capacity;
    if (kv.type == FloatType::kF32)
      attend_queries<Tiles, float>(kv, args, room, begin, count);
    else
      attend_queries<Tiles, uint16_t>(kv, args, room, begin, count);
  }
}

}  // namespace weir::kernels::avx512bf16
