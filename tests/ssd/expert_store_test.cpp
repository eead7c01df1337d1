// ExpertStore on a disk whose reads land when somebody waits: what is asked for before a layer runs
// (expect()) is read at once, counted once, and holds nothing that it does not give back.
#include "ssd/expert_store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <set>

#include "measure/modelled_disk.h"
#include "temp_file.h"

namespace weir::ssd {
namespace {

constexpr int32_t kLayers = 3, kExperts = 16;
constexpr uint64_t kPart = kBlockBytes, kExpert = kParts * kPart;
constexpr uint64_t kSeed = 5;

using Experts = std::vector<int32_t>;

// Waves copy where experts are staged, as those of a model unpack.
class ExpertStoreTest : public testing::TestWithParam<bool> {
 protected:
  static bool staged() { return GetParam(); }
  static uint64_t offset_of(int32_t layer, int32_t expert) {
    return static_cast<uint64_t>(layer * kExperts + expert) * kExpert;
  }

  void make(uint64_t slots, const measure::DiskModel& model = {},
            std::vector<measure::DiskFault> faults = {}) {
    catalogue_.emplace(kExperts, /*in_slot_form=*/!staged());
    const int32_t file =
        catalogue_->add_file(folder_.write("experts", kSeed, kLayers * kExperts * kExpert));
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      catalogue_->add_layer({kPart, kPart}, {1, 1});
      for (int32_t e = 0; e < kExperts; ++e) {
        const uint64_t at = offset_of(layer, e);
        catalogue_->add_expert(
            std::array<StoredRange, kParts>{{{file, at, kPart}, {file, at + kPart, kPart}}});
      }
    }
    auto disk = std::make_unique<measure::ModelledDisk>(model);
    for (const measure::DiskFault& fault : faults) disk->add_fault(fault);
    disk_ = disk.get();
    const uint64_t staging = staged() ? 2 * catalogue_->staging_bytes() : 0;
    auto store = ExpertStore::create(*catalogue_, std::move(disk),
                                     {.memory = slots * kExpert + staging,
                                      .top_k = 2,
                                      .sequences_max = 4,
                                      .prefetch = PrefetchMode::kOff});
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    ASSERT_EQ(store_->plan().slots, static_cast<int64_t>(slots));
    wave_ = store_->make_wave();
    // All slots are faulted in before a test counts on them.
    for (int i = 0; i < 5000 && store_->stats().slots_usable.value() < static_cast<double>(slots);
         ++i) {
      store_->begin_step(0);
      store_->end_step();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  // Runs a layer that a generated row was routed to each of `experts`; returns those that failed.
  std::set<int32_t> run(int32_t layer, const Experts& experts) {
    std::vector<ExpertDemand> demands;
    for (const int32_t e : experts) demands.push_back({.expert = e, .generated_rows = 1});
    std::set<int32_t> done, failed;
    const auto expert = [&](int32_t demand) { return experts[static_cast<size_t>(demand)]; };
    store_->begin_layer(layer, demands, {});
    do {
      store_->next_wave(wave_);
      for (const ExpertWave::Unpack& job : wave_.unpack) std::memcpy(job.slot, job.staged, kPart);
      for (const int32_t demand : wave_.down) {
        EXPECT_TRUE(has_words(kSeed, offset_of(layer, expert(demand)),
                              {store_->memory_of(demand), kExpert}));
        EXPECT_TRUE(done.insert(expert(demand)).second);
      }
      for (const int32_t demand : wave_.failed) {
        EXPECT_FALSE(store_->failure_of(demand).empty());
        failed.insert(expert(demand));
      }
    } while (!wave_.last);
    store_->end_layer();
    EXPECT_EQ(done.size() + failed.size(), experts.size());
    return failed;
  }

  int reads_of(int32_t layer, int32_t expert) {
    return static_cast<int>(std::ranges::count_if(disk_->submitted(), [&](const DiskRead& read) {
      return read.offset / kExpert == offset_of(layer, expert) / kExpert;
    }));
  }

  TempFolder folder_;
  std::optional<ExpertCatalogue> catalogue_;
  measure::ModelledDisk* disk_ = nullptr;
  std::unique_ptr<ExpertStore> store_;
  ExpertWave wave_;
};

TEST_P(ExpertStoreTest, ReadsWhatIsExpectedAtOnceAndCountsItOnce) {
  make(12);
  const StoreStats& stats = store_->stats();
  store_->begin_step(2);
  store_->expect(0, Experts{5, 2, 5});
  EXPECT_EQ(disk_->in_flight(), 4) << "two parts each";
  EXPECT_EQ(stats.early.value(), 2u);
  EXPECT_TRUE(run(0, {1, 2, 5}).empty());
  EXPECT_EQ(stats.absent.value(), 3u);
  EXPECT_EQ(stats.ready.value() + stats.in_flight.value(), 0u);
  for (const int32_t e : {1, 2, 5}) EXPECT_EQ(reads_of(0, e), 2) << e;
  store_->end_step();

  store_->begin_step(2);
  store_->expect(0, Experts{1, 2});
  store_->expect(0, Experts{2, 7});
  EXPECT_TRUE(run(0, {1, 2, 5, 7}).empty());
  EXPECT_EQ(stats.absent.value(), 4u);
  EXPECT_EQ(stats.ready.value(), 3u);
  EXPECT_EQ(stats.early.value(), 3u);
  store_->end_step();
  EXPECT_EQ(store_->reads().reads[static_cast<size_t>(ReadClass::kDemand)].value(), 8u);
}

// Four slots, two of which hold what is expected: what else is expected goes into the others, and
// what finds none waits for the layer.
TEST_P(ExpertStoreTest, KeepsWhatIsExpectedAndThere) {
  make(4);
  store_->begin_step(2);
  EXPECT_TRUE(run(0, {0, 1, 2, 3}).empty());
  disk_->submitted().clear();
  store_->expect(1, Experts{});
  EXPECT_TRUE(run(1, {}).empty());
  store_->end_step();
  store_->begin_step(2);
  store_->expect(0, Experts{8, 0, 9, 10, 11, 1, 12});
  EXPECT_TRUE(run(0, {0, 1, 8, 9, 10, 11, 12}).empty());
  store_->end_step();
  EXPECT_EQ(reads_of(0, 0), 0);
  EXPECT_EQ(reads_of(0, 1), 0);
  for (const int32_t e : {8, 9, 10, 11, 12}) EXPECT_EQ(reads_of(0, e), 2) << e;
}

// Whatever is expected, asked for or not, and fails or not: no slot stays pinned, or the least of
// memory would soon have none for the next layer. Only who asks for what cannot be read fails.
TEST_P(ExpertStoreTest, GivesBackWhatNobodyAsksForThen) {
  std::vector<measure::DiskFault> faults;
  const std::set<int32_t> bad = {3, 4, 9};
  for (const int32_t e : bad)
    faults.push_back({.begin = offset_of(1, e) + kPart,
                      .end = offset_of(1, e) + kExpert,
                      .times = -1,
                      .error = EIO});
  make(4, {}, faults);
  std::mt19937_64 random(3);
  const auto some = [&] {
    std::set<int32_t> experts;
    for (size_t i = random() % 7; i > 0; --i) experts.insert(static_cast<int32_t>(random() % 16));
    return Experts(experts.begin(), experts.end());
  };
  for (int step = 0; step < 200; ++step) {
    store_->begin_step(2);
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      store_->expect(layer, some());
      if (random() % 2 == 0) store_->pump();
      const Experts asked = some();
      std::set<int32_t> expected;
      if (layer == 1)
        std::ranges::copy_if(asked, std::inserter(expected, expected.end()),
                             [&](int32_t e) { return bad.contains(e); });
      ASSERT_EQ(run(layer, asked), expected) << step;
    }
    store_->end_step();
  }
  EXPECT_GT(store_->stats().failed_experts.value(), 20u);
  EXPECT_GT(store_->stats().early.value(), 200u);
}

// Two groups of rows are worth it where layers wait for the disk longer than twice their cost.
TEST_P(ExpertStoreTest, WantsEarlyReadsWhereLayersWait) {
  using std::chrono::microseconds;
  make(4, {.latency = microseconds(3000), .real_time = true});
  EXPECT_FALSE(store_->wants_early_reads(microseconds(1))) << "nothing has waited yet";
  for (int32_t step = 0; step < 12; ++step) {
    store_->begin_step(2);
    EXPECT_TRUE(run(0, {step % 8, 8 + step % 8}).empty());
    store_->end_step();
  }
  EXPECT_TRUE(store_->wants_early_reads(microseconds(500)));
  EXPECT_FALSE(store_->wants_early_reads(std::chrono::seconds(10)));
  // Nothing to wait for any more.
  for (int32_t step = 0; step < 60; ++step) {
    store_->begin_step(2);
    EXPECT_TRUE(run(0, {11}).empty());
    store_->end_step();
  }
  EXPECT_FALSE(store_->wants_early_reads(microseconds(500)));
}

INSTANTIATE_TEST_SUITE_P(Forms, ExpertStoreTest, testing::Bool(),
                         [](const testing::TestParamInfo<bool>& form) {
                           return form.param ? "AsStored" : "InSlotForm";
                         });

}  // namespace
}  // namespace weir::ssd
