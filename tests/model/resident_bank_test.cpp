// A layer's run where all experts are in memory: one wave that has all active ones, and the barrier
// that ends it.
#include "model/resident_bank.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "kernels/cpu_ops.h"
#include "model/weight_store.h"

namespace weir::model {
namespace {

class ResidentBankTest : public testing::Test {
 protected:
  struct Sink final : RowSink {
    void on_rows(int32_t, int32_t, Rows, int) override {}
  };

  Pass pass(int member) {
    return {.batch = batch_,
            .kv = *kv_,
            .ops = kernels::ops_for(kernels::Isa::kScalar),
            .team = team_,
            .ws = workspace_,
            .sink = sink_,
            .reads = nullptr,
            .member = member};
  }
  ExpertBank::Layer add(size_t experts) {
    std::vector<FfnWeights> networks(experts);
    for (size_t e = 0; e < experts; ++e) networks[e].spec.width = static_cast<int>(e);
    const Result<ExpertBank::Layer> layer = bank_.add_layer(2, networks);
    EXPECT_TRUE(layer);
    return *layer;
  }

  WeightStore store_;
  ResidentBank bank_{store_};
  Batch batch_;
  Result<kv::KvCache> kv_ =
      kv::KvCache::create(std::vector<kv::MemoryNeed>{}, kernels::FloatType::kF16, 1);
  ThreadTeam team_{2};
  Workspace workspace_;
  Sink sink_;
};

TEST_F(ResidentBankTest, KeepsEachLayersExpertsWhereTheyAre) {
  const ExpertBank::Layer first = add(3), second = add(5);
  EXPECT_EQ(first.number, 0);
  EXPECT_EQ(second.number, 1);
  ASSERT_EQ(first.experts.size(), 3u);
  ASSERT_EQ(second.experts.size(), 5u);
  for (size_t e = 0; e < 5; ++e) EXPECT_EQ(second.experts[e].spec.width, static_cast<int>(e));
  EXPECT_EQ(&bank_.placer(), &store_);
  EXPECT_FALSE(bank_.reads());
  EXPECT_EQ(bank_.route_hook(), nullptr);
}

TEST_F(ResidentBankTest, HasOneWaveOfAllActiveExpertsThatABarrierEnds) {
  add(5);
  add(3);
  std::vector<int32_t> active = {0, 2, 4};
  const ExpertPlan plan = {.active = active.data(), .active_count = 3};
  std::atomic<int> ended{0};
  team_.run([&](int member) {
    const Pass pass = this->pass(member);
    const ExpertBank::Wave wave = bank_.begin(pass, 0, plan);
    const std::vector<int32_t> places = {0, 1, 2};
    EXPECT_TRUE(std::ranges::equal(wave.activate, places));
    EXPECT_TRUE(std::ranges::equal(wave.down, places));
    EXPECT_TRUE(wave.failed.empty());
    EXPECT_EQ(wave.turn, 0);
    EXPECT_TRUE(wave.last);
    EXPECT_FALSE(wave.looks_ahead);
    ++ended;
    EXPECT_FALSE(bank_.next(pass, wave));
    EXPECT_EQ(ended, 2);
  });
}

}  // namespace
}  // namespace weir::model
