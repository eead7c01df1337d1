// Attention within a span (span_ops.h) in bf16: as attend_prompt.h, whose stretches, weights and
// products these are, but that panels lie ready and that all rows see the same tokens.
//
// Per 256 tokens, whose panels stay in L2 (of 72 dimensions 88 KiB), for 32 rows and 128 tokens at
// a time: scores, weights, values. Panels are as long as the dimensions need: tiles multiply whole
// steps of 32, vectors pairs; values are tiles of 16 dimensions, so that of 72 five are multiplied.
//
// For files of avx512bf16/ and amx/: everything is a template over Tiles.
#pragma once

#include "kernels/avx512bf16/attend_prompt.h"
#include "kernels/avx512bf16/transpose.h"
#include "kernels/span_ops.h"

namespace weir::kernels::avx512bf16 {

// Of 32 numbers from the i-th on those of `count`.
WEIR_INLINE __mmask32 lanes32(int32_t i, int32_t count) {
  const int32_t left = count - i;
  return left >= 32 ? ~__mmask32{0} : left <= 0 ? 0 : (__mmask32{1} << left) - 1;
}

// 32 numbers of a row from the i-th on as bf16, in order; beyond `count` zeros.
WEIR_INLINE __m512i round_part(const float* row, int32_t i, int32_t count) {
  const __mmask32 lanes = lanes32(i, count);
  const __m512 low = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes), row + i);
  const __m512 high = _mm512_maskz_loadu_ps(static_cast<__mmask16>(lanes >> 16), row + i + kLanes);
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

inline void fill_span_page(const float* k, const float* v, int64_t stride, int32_t tokens,
                           int32_t dims, uint16_t* page) {
  for (int32_t first = 0; first < kPageTokens; first += kLanes)
    for (int32_t d = 0; d < dims; d += kStep, page += kTileElements) {
      __m512i rows[kLanes];
      repeat<kLanes>([&](auto t) WEIR_INLINE_LAMBDA {
        rows[t.value] = first + t.value < tokens
                            ? round_part(k + (first + t.value) * stride, d, dims)
                            : _mm512_setzero_si512();
      });
      transpose16(rows);
      repeat<kLanes>([&](auto p) WEIR_INLINE_LAMBDA {
        _mm512_store_si512(page + p.value * 2 * kLanes, rows[p.value]);
      });
    }
  // Two tiles of 16 dimensions at a time; where their number is odd, nothing follows the last.
  alignas(64) uint16_t beyond[2 * kLanes];
  for (int32_t t = 0; t < kPageTokens; t += 2)
    for (int32_t d = 0; d < dims; d += 2 * kLanes) {
      const auto part = [&](int32_t token) WEIR_INLINE_LAMBDA {
        return token < tokens ? round_part(v + token * stride, d, dims) : _mm512_setzero_si512();
      };
      uint16_t* row = page + d / kLanes * kTileElements + t * kLanes;
      store_pairs(part(t), part(t + 1), row, d + kLanes < dims ? row + kTileElements : beyond);
    }
}

// The scratch memory of one call.
struct SpanRoom {
  float* scores;       // [32][kStretch]
  uint16_t* weights;   // Likewise.
  uint16_t* q;         // [capacity][q_stride]
  float* sums;         // [capacity][v_dims]: the values so far.
  float* weight_sums;  // [capacity][16]: WeighRows::sum
  float* max;          // [capacity]
  int64_t q_stride;
  int32_t steps;     // Of a key,
  int32_t v_dims;    // and numbers of a value's tiles.
  int32_t capacity;  // A multiple of 32.
};

WEIR_INLINE SpanRoom lay_out_span(int32_t dims, void* scratch) {
  SpanRoom room;
  room.steps = (dims + kStep - 1) / kStep;
  room.v_dims = (dims + kLanes - 1) / kLanes * kLanes;
  room.q_stride =
      int64_t{room.steps + 1} * kStep;  // Rows of a tile in different sets of the cache.
  Parts parts(scratch);
  room.scores = parts.take<float>(kTogether * kStretch);
  room.weights = parts.take<uint16_t>(kTogether * kStretch);
  const int64_t row = 2 * room.q_stride + 4 * (int64_t{room.v_dims} + kLanes) + 4;
  room.capacity =
      static_cast<int32_t>((kScratchBytes - parts.used(scratch)) / row / kTogether * kTogether);
  room.q = parts.take<uint16_t>(room.capacity * room.q_stride);
  room.sums = parts.take<float>(int64_t{room.capacity} * room.v_dims);
  room.weight_sums = parts.take<float>(int64_t{room.capacity} * kLanes);
  room.max = parts.take<float>(room.capacity);
  return room;
}

// Up to 32 rows over a stretch.
struct SpanVisit {
  int32_t row;  // The first.
  int32_t count;
  int32_t first_page, end_page;
};

template <int kUsedTiles, class Tiles>
void score_span(Tiles& tiles, const SpanArgs& args, const SpanRoom& room, const SpanVisit& visit) {
  Product p{};
  p.panel_step = kTileElements;
  p.panel_tile = int64_t{room.steps} * kTileElements;
  p.x = room.q + visit.row * room.q_stride;
  p.x_stride = 2 * room.q_stride;
  p.steps = room.steps;
  p.spare_pairs = (room.steps * kStep - args.dims) / 2;
  for (int32_t page = visit.first_page; page < visit.end_page; ++page) {
    p.panel = args.pages + page * span_page_numbers(args.dims);
    for (int b = 0; b < kColumnTiles; ++b) {
      p.y[b] = room.scores + (page - visit.first_page) * kPageTokens + b * kLanes;
      p.y_stride[b] = 4 * kStretch;
    }
    run_product<kUsedTiles, kColumnTiles>(tiles, p);
  }
}

template <int kUsedTiles, class Tiles>
void add_span_values(Tiles& tiles, const SpanArgs& args, const SpanRoom& room,
                     const SpanVisit& visit) {
  Product p{};
  p.panel_step = span_page_numbers(args.dims);
  p.panel_tile = kTileElements;
  p.x = room.weights;
  p.x_stride = 2 * kStretch;
  p.steps = visit.end_page - visit.first_page;
  p.resume = true;
  p.panel = args.pages + visit.first_page * p.panel_step + span_key_numbers(args.dims);
  for (int32_t d = 0; d < room.v_dims; d += kColumnTiles * kLanes) {
    for (int b = 0; b < kColumnTiles; ++b) {
      p.y[b] = room.sums + int64_t{visit.row} * room.v_dims + d + b * kLanes;
      p.y_stride[b] = 4 * int64_t{room.v_dims};
    }
    if (d + kLanes < room.v_dims)
      run_product<kUsedTiles, kColumnTiles>(tiles, p);
    else
      run_product<kUsedTiles, 1>(tiles, p);
    p.panel += kColumnTiles * kTileElements;
  }
}

WEIR_INLINE void weigh_span(const SpanArgs& args, const SpanRoom& room, const SpanVisit& visit) {
  const int32_t token = visit.first_page * kPageTokens;
  const bool whole = args.begin <= token && args.end >= token + kStretch;
  int32_t begin[kTileRows], end[kTileRows];
  for (int32_t i = 0; i < kTileRows; ++i) {
    begin[i] = args.begin - token;
    end[i] = args.end - token;
  }
  for (int32_t at = 0; at < visit.count; at += kTileRows) {
    const int32_t row = visit.row + at;
    alignas(64) float rescale[kTileRows];
    const WeighRows rows = {.scores = room.scores + at * kStretch,
                            .weights = room.weights + at * kStretch,
                            .begin = begin,
                            .end = end,
                            .max = room.max + row,
                            .sum = room.weight_sums + int64_t{row} * kLanes,
                            .count = visit.count - at < kTileRows ? visit.count - at : kTileRows};
    const float factor = args.scale * kLog2E;
    const bool risen =
        whole ? weigh_rows<true>(factor, rows, rescale) : weigh_rows<false>(factor, rows, rescale);
    if (risen) rescale_sums(room.sums + int64_t{row} * room.v_dims, room.v_dims, rescale);
  }
}

template <int kUsedTiles, class Tiles>
void attend_span_stretch(Tiles& tiles, const SpanArgs& args, const SpanRoom& room,
                         const SpanVisit& visit) {
  score_span<kUsedTiles>(tiles, args, room, visit);
  weigh_span(args, room, visit);
  add_span_values<kUsedTiles>(tiles, args, room, visit);
}

// Asks for the part-th of `parts` parts of pages that are due soon.
WEIR_INLINE void fetch_span(const SpanArgs& args, PageRange pages, int32_t part, int32_t parts) {
  constexpr int64_t kLine = 32;
  const int64_t numbers = (pages.end - pages.begin) * span_page_numbers(args.dims);
  const uint16_t* first = args.pages + pages.begin * span_page_numbers(args.dims);
  const int64_t end = numbers * (part + 1) / parts;
  for (int64_t i = numbers * part / parts / kLine * kLine; i < end; i += kLine)
    _mm_prefetch(reinterpret_cast<const char*>(first + i), _MM_HINT_T1);
}

// Rows [begin, begin + count), at most room.capacity. Within a block rows are outside, so that
// their sums stay in L1; meanwhile the next block comes.
template <class Tiles>
void attend_span_rows(const SpanArgs& args, const SpanRoom& room, int32_t begin, int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const float* q = args.q + (int64_t{begin} + i) * args.q_stride;
    for (int32_t step = 0; step < room.steps; ++step)
      _mm512_store_si512(room.q + i * room.q_stride + step * kStep,
                         round_part(q, step * kStep, args.dims));
    room.max[i] = -__builtin_inff();
    _mm512_store_ps(room.weight_sums + int64_t{i} * kLanes, _mm512_setzero_ps());
    for (int32_t d = 0; d < room.v_dims; d += kLanes)
      _mm512_store_ps(room.sums + int64_t{i} * room.v_dims + d, _mm512_setzero_ps());
  }
  Tiles tiles;
  const int32_t end_page = (args.end + kPageTokens - 1) / kPageTokens;
  const auto end_of = [&](int32_t page, int32_t pages) WEIR_INLINE_LAMBDA {
    return page + pages < end_page ? page + pages : end_page;
  };
  for (int32_t block = args.begin / kPageTokens; block < end_page; block += kBlockPages) {
    const int32_t block_end = end_of(block, kBlockPages);
    const PageRange next = {block_end, end_of(block_end, kBlockPages)};
    for (int32_t row = 0; row < count; row += kTogether) {
      fetch_span(args, next, row / kTogether, (count + kTogether - 1) / kTogether);
      for (int32_t page = block; page < block_end; page += kStretchPages) {
        const SpanVisit visit = {.row = row,
                                 .count = count - row < kTogether ? count - row : kTogether,
                                 .first_page = page,
                                 .end_page = end_of(page, kStretchPages)};
        if (visit.count > kTileRows)
          attend_span_stretch<kRowTiles>(tiles, args, room, visit);
        else
          attend_span_stretch<1>(tiles, args, room, visit);
      }
    }
  }
  for (int32_t i = 0; i < count; ++i) {
    const float sum = _mm512_reduce_add_ps(_mm512_load_ps(room.weight_sums + int64_t{i} * kLanes));
    const __m512 inverse = _mm512_set1_ps(1.0f / sum);
    const float* sums = room.sums + int64_t{i} * room.v_dims;
    float* out = args.out + (int64_t{begin} + i) * args.out_stride;
    for (int32_t d = 0; d < args.dims; d += kLanes)
      _mm512_mask_storeu_ps(out + d, static_cast<__mmask16>(lanes32(d, args.dims)),
                            _mm512_mul_ps(_mm512_load_ps(sums + d), inverse));
  }
}

template <class Tiles>
void attend_span(const SpanArgs& args) {
  const SpanRoom room = lay_out_span(args.dims, args.scratch);
  for (int32_t begin = 0; begin < args.rows; begin += room.capacity) {
    const int32_t left = args.rows - begin;
    attend_span_rows<Tiles>(args, room, begin, left < room.capacity ? left : room.capacity);
  }
}

}  // namespace weir::kernels::avx512bf16
