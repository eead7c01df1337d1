// attend_prompt on AMX tiles: queries, keys, weights and values in bf16, sums in float32.
//
// A query is one head of one row; 32 of them share every product. Per block of 256 tokens keys and
// values are turned into panels of tiles once for all queries of the call, scores of 32 queries
// come out of products over the dimensions, a pass over each query's scores makes weights of them,
// and products over the tokens add the values. What remains is mostly the exponential: 12
// instructions for 16 scores, against 3 for their share of the tiles (64 dimensions).
#include <immintrin.h>

#include "kernels/amx/product.h"
#include "kernels/avx512/attention.h"
#include "kernels/isa.h"

namespace weir::kernels::amx {
namespace {

constexpr int kBlockTokens = 256;  // ops.h, AttendArgs.
constexpr int kBlockPages = kBlockTokens / kPageTokens;
constexpr int kTogether = kRowTiles * kTileRows;  // Queries of a product.
constexpr int kLanes = 16;
constexpr float kLog2E = 1.44269504088896341f;
// Below this a power of two is denormal, and slow.
constexpr float kExponentMin = -126.0f;
constexpr int32_t kDimsMax = 256;
static_assert(kPageTokens == kStep && kPageTokens == kColumnTiles * kLanes);

// A query's running softmax, in units of log2(e).
struct alignas(64) Query {
  float sum[kLanes];   // Of the weights, by token % 16.
  int32_t begin, end;  // The tokens it sees.
  float max;
};

// The scratch memory of one call.
struct Room {
  uint16_t* keys;     // [page][tile of 16 tokens][k_dim / 32] tiles
  uint16_t* values;   // [v_dim / 16][page] tiles
  float* scores;      // [32][256]
  uint16_t* weights;  // [32][256]
  uint16_t* q;        // [capacity][q_stride]
  float* sums;        // [capacity][v_dim]: the values so far.
  Query* queries;     // [capacity]
  int64_t q_stride;
  int32_t capacity;  // A multiple of 32.
};

Room lay_out(const KvPages& kv, void* scratch) {
  Room room;
  room.q_stride = kv.k_dim + kStep;  // Rows of a tile in different sets of the cache.
  room.keys = static_cast<uint16_t*>(scratch);
  room.values = room.keys + kBlockTokens * kv.k_dim;
  room.scores = reinterpret_cast<float*>(room.values + kBlockTokens * kv.v_dim);
  room.weights = reinterpret_cast<uint16_t*>(room.scores + kTogether * kBlockTokens);
  room.q = room.weights + kTogether * kBlockTokens;
  const int64_t used = 2 * (room.q - room.keys);
  const int64_t query = 2 * room.q_stride + 4 * int64_t{kv.v_dim} + int64_t{sizeof(Query)};
  room.capacity = static_cast<int32_t>((kScratchBytes - used) / query / kTogether * kTogether);
  room.sums = reinterpret_cast<float*>(room.q + room.capacity * room.q_stride);
  room.queries = reinterpret_cast<Query*>(room.sums + int64_t{room.capacity} * kv.v_dim);
  return room;
}

// 32 elements as bf16, in order.
WEIR_INLINE __m512i round32(const float* x) {
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_loadu_ps(x + kLanes), _mm512_loadu_ps(x)));
}
WEIR_INLINE __m512i round32(const uint16_t* halves) {
  const __m512i both = _mm512_loadu_si512(halves);
  return reinterpret_cast<__m512i>(
      _mm512_cvtne2ps_pbh(_mm512_cvtph_ps(_mm512_extracti64x4_epi64(both, 1)),
                          _mm512_cvtph_ps(_mm512_castsi512_si256(both))));
}

// a[0] b[0] a[1] b[1] ...: rows of two tiles, 16 columns each.
WEIR_INLINE void store_pairs(__m512i a, __m512i b, uint16_t* first, uint16_t* second) {
  const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8,
                                       39, 7, 38, 6, 37, 5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
  const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(kLanes));
  _mm512_store_si512(first, _mm512_permutex2var_epi16(a, low, b));
  _mm512_store_si512(second, _mm512_permutex2var_epi16(a, high, b));
}

// While a row is widened, its like two pages on is fetched: pages lie anywhere in memory, and the
// processor foresees no further than one.
constexpr int kPagesAhead = 2;
template <class E>
WEIR_INLINE void fetch(const E* row) {
  for (int i = 0; i < kPageTokens; i += 64 / static_cast<int>(sizeof(E)))
    _mm_prefetch(reinterpret_cast<const char*>(row + i), _MM_HINT_T1);
}

template <class E>
void widen_keys(const E* keys, const E* ahead, int32_t k_dim, uint16_t* panel) {
  const int64_t tile = int64_t{k_dim} / kStep * kTileElements;  // From 16 tokens to the next.
  for (int32_t d = 0; d < k_dim; d += 2, keys += 2 * kPageTokens, ahead += 2 * kPageTokens) {
    fetch(ahead);
    fetch(ahead + kPageTokens);
    uint16_t* row = panel + d / kStep * kTileElements + d % kStep / 2 * 32;
    store_pairs(round32(keys), round32(keys + kPageTokens), row, row + tile);
  }
}

// Tokens outside [first, end) of the page become 0: their weights are, but their bytes may be NaN.
template <class E>
void widen_values(const E* values, const E* ahead, int32_t v_dim, int32_t first, int32_t end,
                  uint16_t* panel) {
  constexpr int64_t kTile = kBlockPages * kTileElements;  // From 16 dimensions to the next.
  for (int32_t t = 0; t < kPageTokens; t += 2, values += 2 * v_dim, ahead += 2 * v_dim) {
    for (int32_t d = 0; d < v_dim; d += 2 * kLanes) {
      fetch(ahead + d);
      fetch(ahead + v_dim + d);
      const __m512i none = _mm512_setzero_si512();
      const __m512i a = t >= first && t < end ? round32(values + d) : none;
      const __m512i b = t + 1 >= first && t + 1 < end ? round32(values + v_dim + d) : none;
      uint16_t* row = panel + d / kLanes * kTile + t / 2 * 32;
      store_pairs(a, b, row, row + kTile);
    }
  }
}

// 2^x, to 8e-5: a weight is rounded to 2e-3. The fraction's power is a polynomial (Remez exchange
// on [0, 1)); scalef takes the whole part itself.
WEIR_INLINE __m512 exp2(__mmask16 lanes, __m512 x) {
  const __m512 clamped = _mm512_max_ps(_mm512_set1_ps(kExponentMin), x);
  const __m512 f = _mm512_reduce_ps(clamped, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
  __m512 p = _mm512_set1_ps(0.0780245226f);
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.226067155f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.695833541f));
  p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(0.999925218f));
  return _mm512_maskz_scalef_ps(lanes, p, clamped);
}

// Tokens [begin, end) of 16, relative to the first.
WEIR_INLINE __mmask16 lanes_between(int32_t begin, int32_t end) {
  const uint32_t below_end = end >= kLanes ? 0xffffu : end <= 0 ? 0 : (1u << end) - 1;
  const uint32_t below_begin = begin >= kLanes ? 0xffffu : begin <= 0 ? 0 : (1u << begin) - 1;
  return static_cast<__mmask16>(below_end & ~below_begin);
}

WEIR_INLINE float first_lane(__m512 x) { return _mm_cvtss_f32(_mm512_castps512_ps128(x)); }

// Scores of a block, score[t] for the tokens [begin, end) of it that the query sees, become weights
// of the pages [first_page, end_page). Returns what the sums so far must be multiplied by.
float weigh(float factor, const float* score, int32_t begin, int32_t end, int32_t first_page,
            int32_t end_page, Query& query, uint16_t* weight) {
  __m512 top = _mm512_set1_ps(-__builtin_inff());
  for (int32_t t = begin / kLanes * kLanes; t < end; t += kLanes)
    top =
        _mm512_mask_max_ps(top, lanes_between(begin - t, end - t), top, _mm512_loadu_ps(score + t));
  const float highest = _mm512_reduce_max_ps(top) * factor;
  const float before = query.max;
  if (highest > before) query.max = highest;
  const __m512 scale = _mm512_set1_ps(factor), max = _mm512_set1_ps(query.max);
  const __m512 rescale = exp2(0xffff, _mm512_sub_ps(_mm512_set1_ps(before), max));
  __m512 sum = _mm512_mul_ps(_mm512_load_ps(query.sum), rescale);
  for (int32_t t = first_page * kPageTokens; t < end_page * kPageTokens; t += kPageTokens) {
    const auto weights_of = [&](int32_t at) WEIR_INLINE_LAMBDA {
      return exp2(lanes_between(begin - at, end - at),
                  _mm512_fmsub_ps(_mm512_loadu_ps(score + at), scale, max));
    };
    const __m512 low = weights_of(t), high = weights_of(t + kLanes);
    sum = _mm512_add_ps(_mm512_add_ps(sum, low), high);
    _mm512_store_si512(weight + t, reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low)));
  }
  _mm512_store_ps(query.sum, sum);
  return first_lane(rescale);
}

// Up to 32 queries over one block.
struct Tile {
  Query* queries;
  const uint16_t* q;
  float* sums;
  int32_t count;
  int32_t block;                 // Its first token.
  int32_t first_page, end_page;  // That any of the queries sees.
};

template <int kUsedTiles, class Tiles>
void score_tile(Tiles& tiles, const KvPages& kv, const Room& room, const Tile& tile) {
  Product p{};
  p.panel_step = kTileElements;
  p.panel_tile = int64_t{kv.k_dim} / kStep * kTileElements;
  p.x = tile.q;
  p.x_stride = 2 * room.q_stride;
  p.steps = kv.k_dim / kStep;
  for (int32_t page = tile.first_page; page < tile.end_page; ++page) {
    p.panel = room.keys + int64_t{page} * kPageTokens * kv.k_dim;
    for (int b = 0; b < kColumnTiles; ++b) {
      p.y[b] = room.scores + page * kPageTokens + b * kLanes;
      p.y_stride[b] = 4 * kBlockTokens;
    }
    run_product<kUsedTiles, kColumnTiles>(tiles, p);
  }
}

void weigh_tile(const KvPages& kv, const AttendArgs& args, const Room& room, const Tile& tile) {
  for (int32_t m = 0; m < tile.count; ++m) {
    Query& query = tile.queries[m];
    const int32_t begin = query.begin > tile.block ? query.begin - tile.block : 0;
    const int32_t end =
        query.end - tile.block < kBlockTokens ? query.end - tile.block : kBlockTokens;
    uint16_t* weight = room.weights + m * kBlockTokens;
    if (begin >= end) {
      for (int32_t t = tile.first_page * kPageTokens; t < tile.end_page * kPageTokens; t += 32)
        _mm512_store_si512(weight + t, _mm512_setzero_si512());
      continue;
    }
    const float rescale = weigh(args.scale * kLog2E, room.scores + m * kBlockTokens, begin, end,
                                tile.first_page, tile.end_page, query, weight);
    if (rescale == 1) continue;
    float* sums = tile.sums + int64_t{m} * kv.v_dim;
    for (int32_t d = 0; d < kv.v_dim; d += kLanes)
      _mm512_store_ps(sums + d, _mm512_mul_ps(_mm512_load_ps(sums + d), _mm512_set1_ps(rescale)));
  }
}

template <int kUsedTiles, class Tiles>
void add_values(Tiles& tiles, const KvPages& kv, const Room& room, const Tile& tile) {
  Product p{};
  p.panel_step = kTileElements;
  p.panel_tile = kBlockPages * kTileElements;
  p.x = room.weights + tile.first_page * kPageTokens;
  p.x_stride = 2 * kBlockTokens;
  p.steps = tile.end_page - tile.first_page;
  p.resume = true;
  for (int32_t d = 0; d < kv.v_dim; d += kColumnTiles * kLanes) {
    p.panel = room.values + (int64_t{d} / kLanes * kBlockPages + tile.first_page) * kTileElements;
    for (int b = 0; b < kColumnTiles; ++b) {
      p.y[b] = tile.sums + d + b * kLanes;
      p.y_stride[b] = 4 * int64_t{kv.v_dim};
    }
    run_product<kUsedTiles, kColumnTiles>(tiles, p);
  }
}

template <int kUsedTiles, class Tiles>
void run_tile(Tiles& tiles, const KvPages& kv, const AttendArgs& args, const Room& room,
              const Tile& tile) {
  score_tile<kUsedTiles>(tiles, kv, room, tile);
  weigh_tile(kv, args, room, tile);
  add_values<kUsedTiles>(tiles, kv, room, tile);
}

// Pages of a block: those that the tokens [first, last) of the sequence reach into.
struct Pages {
  int32_t first, end;
};
WEIR_INLINE Pages pages_within(int32_t block, int32_t first, int32_t last) {
  const int32_t begin = first > block ? first - block : 0;
  const int32_t end = last - block < kBlockTokens ? last - block : kBlockTokens;
  return {begin / kPageTokens, (end + kPageTokens - 1) / kPageTokens};
}

// Tokens [first, last) are all that is seen of this block.
template <class E>
void widen_block(const KvPages& kv, const AttendArgs& args, int32_t block, int32_t first,
                 int32_t last, const Room& room) {
  const Pages pages = pages_within(block, first, last);
  const int32_t last_page = (last - 1) / kPageTokens;
  const int64_t values_at = int64_t{kv.k_dim} * kPageTokens;
  const auto keys_of = [&](int32_t page) {
    return reinterpret_cast<const E*>(kv.base + args.pages[page] * kv.page_bytes +
                                      args.kv_head * kv.head_bytes);
  };
  for (int32_t page = pages.first; page < pages.end; ++page) {
    const int32_t number = block / kPageTokens + page, token = number * kPageTokens;
    const E* keys = keys_of(number);
    const E* ahead = keys_of(number + kPagesAhead < last_page ? number + kPagesAhead : last_page);
    widen_keys(keys, ahead, kv.k_dim, room.keys + int64_t{page} * kPageTokens * kv.k_dim);
    widen_values(keys + values_at, ahead + values_at, kv.v_dim, first - token, last - token,
                 room.values + page * kTileElements);
  }
}

// Queries [begin, begin + count), row by row; at most room.capacity.
void start(const KvPages& kv, const AttendArgs& args, const Room& room, int32_t begin,
           int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const int32_t row = (begin + i) / args.group, head = (begin + i) % args.group;
    Query& query = room.queries[i];
    query.end = args.first_position + row + 1;
    query.begin = args.window > 0 && query.end > args.window ? query.end - args.window : 0;
    query.max = -__builtin_inff();
    _mm512_store_ps(query.sum, _mm512_setzero_ps());
    const float* q = args.q + row * args.q_stride + int64_t{head} * kv.k_dim;
    for (int32_t d = 0; d < kv.k_dim; d += kStep)
      _mm512_store_si512(room.q + i * room.q_stride + d, round32(q + d));
  }
  for (int64_t i = 0; i < int64_t{count} * kv.v_dim; i += kLanes)
    _mm512_store_ps(room.sums + i, _mm512_setzero_ps());
}

void finish(const KvPages& kv, const AttendArgs& args, const Room& room, int32_t begin,
            int32_t count) {
  for (int32_t i = 0; i < count; ++i) {
    const int32_t row = (begin + i) / args.group, head = (begin + i) % args.group;
    const Query& query = room.queries[i];
    float sum = _mm512_reduce_add_ps(_mm512_load_ps(query.sum));
    if (args.sinks != nullptr)
      sum += first_lane(exp2(0xffff, _mm512_set1_ps(args.sinks[head] * kLog2E - query.max)));
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
  const int32_t first = room.queries[0].begin, last = room.queries[count - 1].end;
  const TileShapes shapes = shapes_for(kTileRows, kTileRows);
  Tiles tiles(shapes);
  for (int32_t block = first / kBlockTokens * kBlockTokens; block < last; block += kBlockTokens) {
    widen_block<E>(kv, args, block, first, last, room);
    for (int32_t i = 0; i < count; i += kTogether) {
      const int32_t together = count - i < kTogether ? count - i : kTogether;
      const int32_t from = room.queries[i].begin, to = room.queries[i + together - 1].end;
      if (to <= block || from >= block + kBlockTokens) continue;
      const Pages pages = pages_within(block, from, to);
      const Tile tile = {.queries = room.queries + i,
                         .q = room.q + i * room.q_stride,
                         .sums = room.sums + int64_t{i} * kv.v_dim,
                         .count = together,
                         .block = block,
                         .first_page = pages.first,
                         .end_page = pages.end};
      if (tile.count > kTileRows)
        run_tile<kRowTiles>(tiles, kv, args, room, tile);
      else
        run_tile<1>(tiles, kv, args, room, tile);
    }
  }
  finish(kv, args, room, begin, count);
}

template <class Tiles>
void attend_prompt(const KvPages& kv, const AttendArgs& args) {
  // What depends on the layer alone, so that all rows of a prompt go one way.
  const bool tiled = kv.k_dim % kStep == 0 && kv.v_dim % (kColumnTiles * kLanes) == 0 &&
                     kv.k_dim <= kDimsMax && kv.v_dim <= kDimsMax && args.softcap == 0 &&
                     args.scale > 0;
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

}  // namespace

void fill_attention(Ops& ops) { ops.attend_prompt = attend_prompt<HardwareTiles>; }

}  // namespace weir::kernels::amx
