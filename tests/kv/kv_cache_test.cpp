#include "kv/kv_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace weir::kv {
namespace {

using kernels::FloatType;

const std::vector<MemoryNeed> kNeeds = {
    PagedNeed{3, 64, 64}, std::monostate(), PagedNeed{1, 20, 24, 100}, PagedNeed{2, 96, 80},
    PagedNeed{.heads = 1, .k_dim = 48, .v_dim = 32, .values_in_keys = true}};

TEST(KvCache, LaysLayersPagesAndHeadsWithoutOverlapOnCacheLines) {
  for (const FloatType type : {FloatType::kF16, FloatType::kF32}) {
    auto layout = MemoryLayout::make(kNeeds, type);
    ASSERT_TRUE(layout) << layout.error().message;
    const std::vector<int32_t> counts = {5, 3};
    auto made = KvCache::create(std::move(*layout), counts);
    ASSERT_TRUE(made) << made.error().message;
    const KvCache cache = std::move(*made);
    ASSERT_EQ(cache.layer_count(), 5);
    EXPECT_EQ(cache.groups()[0].pages, 5);
    EXPECT_EQ(cache.groups()[1].pages, 3);
    EXPECT_EQ(cache.groups()[1].window, 100);
    EXPECT_GE(cache.bytes(), cache.bytes_of_page(0) * 5 + cache.bytes_of_page(1) * 3);
    const int64_t element = type == FloatType::kF32 ? 4 : 2;
    const uint8_t* end = cache.layer(0).base;
    for (int32_t l = 0; l < cache.layer_count(); ++l) {
      const kernels::KvPages& kv = cache.layer(l);
      const auto* need = std::get_if<PagedNeed>(&kNeeds[static_cast<size_t>(l)]);
      EXPECT_EQ(kv.kv_heads, need == nullptr ? 0 : need->heads);
      EXPECT_EQ(kv.type, type);
      EXPECT_EQ(cache.group_of(l), l == 2 ? 1 : 0);
      EXPECT_EQ(kv.base, end);
      EXPECT_EQ(reinterpret_cast<uintptr_t>(kv.base) % 64, 0u);
      EXPECT_EQ(kv.head_bytes % 64, 0);
      EXPECT_EQ(kv.page_bytes % 64, 0);
      end = kv.base + kv.page_bytes * counts[static_cast<size_t>(cache.group_of(l))];
      if (need == nullptr) continue;
      EXPECT_EQ(kv.k_dim, need->k_dim);
      EXPECT_EQ(kv.v_dim, need->v_dim);
      const int32_t numbers = kv.k_dim + (kv.values_in_keys ? 0 : kv.v_dim);
      EXPECT_EQ(kv.head_bytes, numbers * kernels::kPageTokens * element);
      EXPECT_GE(kv.page_bytes, kv.kv_heads * kv.head_bytes);
    }
    EXPECT_LE(end - cache.layer(0).base, cache.bytes());
  }
}

TEST(KvCache, StatesHaveASlotASequenceAndLayerEachAtACacheLine) {
  const std::vector<MemoryNeed> needs = {StateNeed{100}, PagedNeed{2, 64, 64}, StateNeed{64}};
  const KvCache cache =
      *KvCache::create(needs, FloatType::kF16, 4, {.running = 2, .checkpoints = 1});
  EXPECT_EQ(cache.state_slots().count(), 3);
  std::vector<uint8_t*> states;
  for (const int32_t layer : {0, 2})
    for (int32_t slot = 0; slot < 3; ++slot) states.push_back(cache.state(layer, slot));
  EXPECT_GE(states.front(), cache.layer(1).base + 4 * cache.layer(1).page_bytes);
  for (size_t i = 0; i < states.size(); ++i) {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(states[i]) % 64, 0u);
    if (i == 0) continue;
    EXPECT_EQ(states[i] - states[i - 1], i <= 3 ? 128 : 64);
  }
  EXPECT_LE(states.back() + 64 - cache.layer(1).base, cache.bytes());
  EXPECT_EQ(KvCache::create({PagedNeed{2, 64, 64}}, FloatType::kF16, 4, {.running = 3})
                ->state_slots()
                .count(),
            0);
  EXPECT_FALSE(KvCache::create({StateNeed{0}}, FloatType::kF16, 4));
  EXPECT_FALSE(KvCache::create({StateNeed{-8}}, FloatType::kF16, 4));
}

TEST(KvCache, StatesGoBackToTheSystemAndPagesStay) {
  constexpr int64_t kBytes = 1 << 20;
  const std::vector<MemoryNeed> needs = {PagedNeed{2, 64, 64}, StateNeed{kBytes}};
  KvCache cache = *KvCache::create(needs, FloatType::kF16, 4, {.running = 2, .checkpoints = 2});
  uint8_t* const page = cache.layer(0).base + 3 * cache.layer(0).page_bytes;
  std::fill_n(page, cache.layer(0).page_bytes, uint8_t{7});
  for (int32_t slot = 0; slot < 4; ++slot) std::fill_n(cache.state(1, slot), kBytes, uint8_t{9});
  cache.give_back_states();
  EXPECT_EQ(std::count(page, page + cache.layer(0).page_bytes, 7), cache.layer(0).page_bytes);
  EXPECT_EQ(*(cache.state(1, 0) + kBytes / 2), 0);
  EXPECT_EQ(*(cache.state(1, 1) + kBytes / 2), 0);
  // Checkpoints go one by one, as pages do.
  EXPECT_EQ(std::count(cache.state(1, 2), cache.state(1, 3) + kBytes, 9), 2 * kBytes);
  EXPECT_EQ(cache.page_count(cache.checkpoint_group()), 2);
  EXPECT_EQ(cache.bytes_of_page(cache.checkpoint_group()), kBytes);
  EXPECT_EQ(cache.pages_in_huge_page(cache.checkpoint_group()), 3);
  cache.give_back(cache.checkpoint_group(), 1, 1);
  EXPECT_EQ(*(cache.state(1, 2) + kBytes / 2), 9);
  EXPECT_EQ(*(cache.state(1, 3) + kBytes / 2), 0);
  KvCache::create({PagedNeed{2, 64, 64}}, FloatType::kF16, 4)->give_back_states();
}

// In pages of 32 keys as elsewhere, those of a slot one after another.
TEST(KvCache, WhatIsAttendedToBesidesHasSlotsOfWholePages) {
  const CrossNeed need = {.heads = 2, .k_dim = 64, .v_dim = 32, .rows = 70};
  const std::vector<MemoryNeed> needs = {PagedNeed{2, 64, 64}, need, StateNeed{64}, need};
  KvCache cache = *KvCache::create(needs, FloatType::kF16, 4, {.running = 2, .cross = 3});
  EXPECT_EQ(cache.state_slots().cross, 3);
  for (const int32_t layer : {1, 3}) {
    const kernels::KvPages& pages = cache.cross(layer);
    EXPECT_EQ(pages.page_bytes, 2 * 32 * (64 + 32) * 2);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(pages.base) % 64, 0u);
    EXPECT_EQ(cache.layer(layer).page_bytes, 0);
    EXPECT_GE(pages.base, cache.layer(0).base + 4 * cache.layer(0).page_bytes);
    EXPECT_LE(pages.base + 9 * pages.page_bytes - cache.layer(0).base, cache.bytes());
  }
  EXPECT_GE(cache.cross(3).base - cache.cross(1).base, 9 * cache.cross(1).page_bytes);
  for (int32_t slot = 0; slot < 3; ++slot)
    for (int32_t page = 0; page < 3; ++page)
      EXPECT_EQ(cache.cross_pages(slot)[page], 3 * slot + page);
  // A page of the spine has the first layer alone.
  EXPECT_EQ(cache.bytes_of_page(0), cache.layer(0).page_bytes);
  const auto none = KvCache::create({PagedNeed{2, 64, 64}}, FloatType::kF16, 4, {.cross = 3});
  EXPECT_EQ(none->state_slots().cross, 0);
  EXPECT_FALSE(KvCache::create({CrossNeed{2, 64, 64, 0}}, FloatType::kF16, 4));
  EXPECT_FALSE(KvCache::create({CrossNeed{2, -1, 64, 5}}, FloatType::kF16, 4));
}

TEST(KvCache, RefusesNeedsAndTypesThatNoPageCanHold) {
  EXPECT_FALSE(KvCache::create({PagedNeed{2, 0, 64}}, FloatType::kF16, 4));
  EXPECT_FALSE(KvCache::create({PagedNeed{-1, 64, 64}}, FloatType::kF16, 4));
  EXPECT_FALSE(KvCache::create({PagedNeed{2, 64, 64, -5}}, FloatType::kF16, 4));
  EXPECT_FALSE(KvCache::create({PagedNeed{2, 64, 64}}, FloatType::kBF16, 4));
  EXPECT_FALSE(KvCache::create({PagedNeed{2, 64, 64}}, FloatType::kF16, 0));
}

}  // namespace
}  // namespace weir::kv
