// attend_prompt over codes: what they stand for becomes panels, turned, and queries are turned
// once. The pages that a row reads as numbers, the first one and its own, are turned as well, so
// that all values come into one sum, which is turned back.
//
// A page that fills up within the call is numbers to its own rows and codes to those after them.
// So the rows of a page read the blocks where their pages lie by themselves: first with their own
// page as numbers, which then becomes codes for the next.
//
// For files of avx512bf16/ and amx/: everything is a template over Tiles.
#pragma once

#include "kernels/avx512bf16/attend_prompt.h"
#include "kernels/avx512bf16/coded_panel.h"

namespace weir::kernels::avx512bf16 {

struct TurnedPages {
  const CodedPages& coded;
  const KvPages& hot;
  const int32_t* hot_pages;
  const AttendArgs& args;
  enum : int8_t { kNothing, kCodes, kNumbers } filled[kBlockPages] = {};

  // The first token of the page that a query's row lies in.
  WEIR_INLINE int32_t own_of(int32_t query) const {
    return (args.first_position + query / args.group) / kPageTokens * kPageTokens;
  }
  // The first query of the call whose row lies in a later page.
  WEIR_INLINE int32_t next_page_of(int32_t query) const {
    return (own_of(query) + kPageTokens - args.first_position) * args.group;
  }
  WEIR_INLINE bool is_codes(int32_t page, int32_t query) const {
    return page > 0 && page < own_of(query) / kPageTokens;
  }
  WEIR_INLINE const uint8_t* codes_of(int32_t page) const {
    return coded_head(coded, args.pages[page], args.kv_head);
  }
  WEIR_INLINE const uint16_t* numbers_of(int32_t page) const {
    return reinterpret_cast<const uint16_t*>(hot.base + hot_pages[page] * hot.page_bytes +
                                             args.kv_head * hot.head_bytes);
  }

  // Numbers were stored just now, or belong to many sequences.
  WEIR_INLINE void fetch(int32_t page) const {
    if (!is_codes(page, args.rows * args.group - 1)) return;
    const uint8_t* const bytes = codes_of(page);
    for (int64_t byte = 0; byte < coded.head_bytes; byte += kCodedLine)
      _mm_prefetch(bytes + byte, _MM_HINT_T1);
  }
  WEIR_INLINE int32_t alike_until(QueryRange queries, int32_t block) const {
    const int32_t next = next_page_of(queries.begin);
    return own_of(queries.begin) >= block + kBlockTokens || next > queries.end ? queries.end : next;
  }
  WEIR_INLINE int32_t padding(QueryRange queries) const {
    const int32_t next = next_page_of(queries.begin);
    return next < queries.end ? (kTileRows - (next - queries.begin) % kTileRows) % kTileRows : 0;
  }
  WEIR_INLINE void begin_block() {
    for (auto& page : filled) page = kNothing;
  }
  WEIR_INLINE void widen(PageRange pages, int32_t query, int32_t first, int32_t last,
                         const Room& room) {
    for (int32_t page = pages.begin; page < pages.end; ++page) {
      auto& is = filled[page % kBlockPages];
      const auto wanted = is_codes(page, query) ? kCodes : kNumbers;
      if (is == wanted) continue;
      is = wanted;
      if (wanted == kCodes)
        decode(page, room);
      else
        turn(page, first - page * kPageTokens, last - page * kPageTokens, room);
    }
  }
  WEIR_INLINE void decode(int32_t page, const Room& room) const {
    const uint8_t* const codes = codes_of(page);
    uint16_t* const keys = room.page_keys(page);
    uint16_t* const values = room.page_values(page);
    if (coded.k_bits == 8) {
      decode_keys<8>(coded, codes, keys);
      decode_values<8>(coded, codes, values);
    } else {
      decode_keys<4>(coded, codes, keys);
      if (coded.v_bits == 4)
        decode_values<4>(coded, codes, values);
      else
        decode_values<3>(coded, codes, values);
    }
  }
  // Between visits scores are free.
  WEIR_INLINE void turn(int32_t page, int32_t first, int32_t end, const Room& room) const {
    static_assert(kDimsMax * kLanes <= kTogether * kStretch);
    const uint16_t* const keys = numbers_of(page);
    turn_keys(keys, coded.k_rotation, room.scores, room.page_keys(page));
    turn_values(keys + int64_t{room.k_dim} * kPageTokens, coded.v_rotation, first, end, room.scores,
                room.page_values(page));
  }
  WEIR_INLINE void take_queries(QueryRange queries, int32_t place, const Room& room) const {
    for (int32_t q = queries.begin; q < queries.end;) {
      int32_t count = 0;
      for (; count < kLanes && q + count < queries.end; ++count)
        for (int32_t d = 0; d < room.k_dim; d += kLanes)
          _mm512_store_ps(room.scores + count * room.k_dim + d,
                          _mm512_loadu_ps(query_of(args, room, q + count) + d));
      avx512::rotate(coded.k_rotation, /*back=*/false, count, room.scores);
      for (int32_t i = 0; i < count; ++i, ++q, ++place)
        round_query(room.scores + i * room.k_dim, room, place);
    }
  }
  WEIR_INLINE void turn_back(int32_t count, float* sums) const {
    avx512::rotate(coded.v_rotation, /*back=*/true, count, sums);
  }
};

// All heads that fit tiles have a whole Hadamard matrix.
WEIR_INLINE bool whole(const Rotation& r) { return r.order * r.width == r.dim; }

template <class Tiles>
void attend_codes(const CodedPages& coded, const KvPages& hot, const int32_t* hot_pages,
                  const AttendArgs& args) {
  if (!tiled(coded.k_dim, coded.v_dim, args) || !whole(coded.k_rotation) ||
      !whole(coded.v_rotation))
    return avx512::attend_codes(coded, hot, hot_pages, args);
  attend_pages<Tiles>(TurnedPages{coded, hot, hot_pages, args}, coded.k_dim, coded.v_dim);
}

}  // namespace weir::kernels::avx512bf16
