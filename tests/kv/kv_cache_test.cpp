#include "kv/kv_cache.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace weir::kv {
namespace {

using kernels::FloatType;

const std::vector<KvShape> kShapes = {{3, 64, 64}, {}, {1, 20, 24}, {2, 96, 80}};

TEST(KvCache, LaysLayersPagesAndHeadsWithoutOverlapOnCacheLines) {
  for (const FloatType type : {FloatType::kF16, FloatType::kF32}) {
    constexpr int32_t kPages = 5;
    auto made = KvCache::create(kShapes, type, kPages);
    ASSERT_TRUE(made) << made.error().message;
    KvCache cache = std::move(*made);
    ASSERT_EQ(cache.layer_count(), 4);
    EXPECT_EQ(cache.page_count(), kPages);
    EXPECT_GE(cache.bytes(), page_bytes(kShapes, type) * kPages);
    const int64_t element = type == FloatType::kF32 ? 4 : 2;
    const uint8_t* end = cache.layer(0).base;
    for (int32_t l = 0; l < cache.layer_count(); ++l) {
      const kernels::KvPages& kv = cache.layer(l);
      const KvShape& shape = kShapes[static_cast<size_t>(l)];
      EXPECT_EQ(kv.kv_heads, shape.kv_heads);
      EXPECT_EQ(kv.k_dim, shape.k_dim);
      EXPECT_EQ(kv.v_dim, shape.v_dim);
      EXPECT_EQ(kv.type, type);
      EXPECT_GE(kv.head_bytes, (kv.k_dim + kv.v_dim) * kernels::kPageTokens * element);
      EXPECT_GE(kv.page_bytes, kv.kv_heads * kv.head_bytes);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(kv.base) % 64, 0u);
      EXPECT_EQ(kv.head_bytes % 64, 0);
      EXPECT_EQ(kv.page_bytes % 64, 0);
      EXPECT_EQ(kv.base, end);
      end = kv.base + kv.page_bytes * kPages;
    }
    EXPECT_LE(end - cache.layer(0).base, cache.bytes());
  }
}

TEST(KvCache, RefusesShapesAndTypesThatNoPageCanHold) {
  EXPECT_FALSE(KvCache::create({{2, 0, 64}}, FloatType::kF16, 4));
  EXPECT_FALSE(KvCache::create({{-1, 64, 64}}, FloatType::kF16, 4));
  EXPECT_FALSE(KvCache::create({{2, 64, 64}}, FloatType::kBF16, 4));
  EXPECT_FALSE(KvCache::create({{2, 64, 64}}, FloatType::kF16, 0));
}

}  // namespace
}  // namespace weir::kv
