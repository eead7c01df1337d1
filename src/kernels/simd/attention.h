// The attention entries of the table, over any Vec.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/simd/attend_decode.h"
#include "kernels/simd/attend_latents.h"
#include "kernels/simd/index_scores.h"

namespace weir::kernels::simd {

template <class V, class E>
void attend_pages(const KvPages& kv, const AttendArgs& args) {
  const int64_t queries = int64_t{args.rows} * args.group;
  const auto in_chunks = [&](int32_t capacity, auto&& attend) {
    for (int64_t begin = 0; begin < queries; begin += capacity)
      attend(static_cast<int32_t>(begin),
             static_cast<int32_t>(begin + capacity < queries ? begin + capacity : queries));
  };
  if (kv.values_in_keys) {
    const LatentTiles<V> tiles = lay_out_latents<V>(kv, args.scratch);
    in_chunks(tiles.tiles.capacity, [&](int32_t begin, int32_t end) {
      attend_latents<V, E>(kv, args, tiles, begin, end);
    });
    return;
  }
  // A single row's heads share loads in registers; more queries share a widened block.
  if (args.rows > 1 || args.group > kDecodeHeads) {
    const Tiles<V> tiles = lay_out<V>(kv, args.scratch);
    if (tiles.capacity > 0) {
      in_chunks(tiles.capacity, [&](int32_t begin, int32_t end) {
        attend_queries<V, E>(kv, args, tiles, begin, end);
      });
      return;
    }
  }
  for (int32_t row = 0; row < args.rows; ++row) decode_row<V, E>(kv, args, row);
}

template <class V>
void attend(const KvPages& kv, const AttendArgs& args) {
  if (kv.type == FloatType::kF32) {
    attend_pages<V, float>(kv, args);
  } else {
    attend_pages<V, uint16_t>(kv, args);
  }
}

[[gnu::always_inline]] inline uint8_t* page_head(const KvPages& kv, int32_t page, int32_t head) {
  return kv.base + page * kv.page_bytes + head * kv.head_bytes;
}

// n numbers that lie side by side.
template <class V>
void store_numbers(FloatType type, const float* x, int32_t n, uint8_t* to) {
  if (type == FloatType::kF32) {
    auto* floats = reinterpret_cast<float*>(to);
    for (int32_t d = 0; d < n; ++d) floats[d] = x[d];
    return;
  }
  auto* halves = reinterpret_cast<uint16_t*>(to);
  int32_t d = 0;
  for (; d + V::kLanes <= n; d += V::kLanes) V::store(halves + d, V::load(x + d));
  if (d == n) return;
  uint16_t last[V::kLanes];
  V::store(last, V::load(x + d, V::first(n - d)));
  for (int32_t i = 0; d + i < n; ++i) halves[d + i] = last[i];
}

template <class V>
void store_keys(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                const float* k) {
  const int64_t element = kv.type == FloatType::kF32 ? 4 : 2;
  uint16_t halves[V::kLanes];
  for (int32_t h = first; h < first + heads; ++h, k += kv.k_dim) {
    uint8_t* head = page_head(kv, page, h);
    if (kv.values_in_keys) {
      store_numbers<V>(kv.type, k, kv.k_dim, head + int64_t{slot} * kv.k_dim * element);
      continue;
    }
    if (kv.type == FloatType::kF32) {
      auto* to = reinterpret_cast<float*>(head) + slot;
      for (int32_t d = 0; d < kv.k_dim; ++d) to[int64_t{d} * kPageTokens] = k[d];
      continue;
    }
    auto* to = reinterpret_cast<uint16_t*>(head) + slot;
    for (int32_t d = 0; d < kv.k_dim; d += V::kLanes) {
      const int32_t n = min(kv.k_dim - d, V::kLanes);
      V::store(halves, V::load(k + d, V::first(n)));
      for (int32_t i = 0; i < n; ++i) to[int64_t{d + i} * kPageTokens] = halves[i];
    }
  }
}

template <class V>
void store_values(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                  const float* v) {
  const int64_t element = kv.type == FloatType::kF32 ? 4 : 2;
  const int64_t at = (int64_t{kv.k_dim} * kPageTokens + int64_t{slot} * kv.v_dim) * element;
  for (int32_t h = first; h < first + heads; ++h, v += kv.v_dim)
    store_numbers<V>(kv.type, v, kv.v_dim, page_head(kv, page, h) + at);
}

template <class V>
void fill_attention(Ops& ops) {
  ops.store_keys = store_keys<V>;
  ops.store_values = store_values<V>;
  ops.attend = attend<V>;
  ops.index_scores = index_scores<V>;
}

}  // namespace weir::kernels::simd
