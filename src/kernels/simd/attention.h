// The attention entries of the table, over any Vec.
#pragma once

#include <cstdint>

#include "kernels/ops.h"
#include "kernels/simd/attend_decode.h"
#include "kernels/simd/attend_tile.h"
#include "kernels/simd/index_scores.h"

namespace weir::kernels::simd {

template <class V, class E>
void attend_pages(const KvPages& kv, const AttendArgs& args) {
  // A single row's heads share loads in registers; more queries share a widened block. Values that
  // are in keys have to be turned round, which only widening does (kValuesInKeysMax: it fits).
  const int64_t queries = int64_t{args.rows} * args.group;
  if (args.rows > 1 || args.group > kDecodeHeads || kv.values_in_keys) {
    const Tiles<V> tiles = lay_out<V>(kv, args.scratch);
    if (tiles.capacity > 0) {
      for (int64_t begin = 0; begin < queries; begin += tiles.capacity) {
        const int64_t end = begin + tiles.capacity < queries ? begin + tiles.capacity : queries;
        attend_queries<V, E>(kv, args, tiles, static_cast<int32_t>(begin),
                             static_cast<int32_t>(end));
      }
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

template <class V>
void store_keys(const KvPages& kv, int32_t page, int32_t slot, int32_t first, int32_t heads,
                const float* k) {
  uint16_t halves[V::kLanes];
  for (int32_t h = first; h < first + heads; ++h, k += kv.k_dim) {
    uint8_t* head = page_head(kv, page, h);
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
  uint16_t halves[V::kLanes];
  const int64_t at = int64_t{kv.k_dim} * kPageTokens + int64_t{slot} * kv.v_dim;
  for (int32_t h = first; h < first + heads; ++h, v += kv.v_dim) {
    uint8_t* head = page_head(kv, page, h);
    if (kv.type == FloatType::kF32) {
      auto* to = reinterpret_cast<float*>(head) + at;
      for (int32_t d = 0; d < kv.v_dim; ++d) to[d] = v[d];
      continue;
    }
    auto* to = reinterpret_cast<uint16_t*>(head) + at;
    int32_t d = 0;
    for (; d + V::kLanes <= kv.v_dim; d += V::kLanes) V::store(to + d, V::load(v + d));
    if (d == kv.v_dim) continue;
    V::store(halves, V::load(v + d, V::first(kv.v_dim - d)));
    for (int32_t i = 0; d + i < kv.v_dim; ++i) to[d + i] = halves[i];
  }
}

template <class V>
void fill_attention(Ops& ops) {
  ops.store_keys = store_keys<V>;
  ops.store_values = store_values<V>;
  ops.attend = attend<V>;
  ops.index_scores = index_scores<V>;
}

}  // namespace weir::kernels::simd
