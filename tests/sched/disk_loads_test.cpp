// With a real model and a cache on disk: requests get the tokens and the log-probabilities, to the
// bit, that each gets alone without it, whether what they share is computed, in memory or read from
// disk, after restarts too, and while pages are so few that everything comes and goes.
#include <gtest/gtest.h>

#include "card/default_model.h"
#include "kv/disk/disk_cache.h"
#include "kv/disk/disk_world.h"
#include "kv/disk/memory_files.h"
#include "sched/exactness_world.h"

namespace weir::sched {
namespace {

using kv::disk::DiskCache;
using kv::disk::MemoryFiles;

class DiskExactness : public testing::Test {
 protected:
  void SetUp() override {
    const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
    ThreadTeam team(2);
    Result<std::unique_ptr<model::Model>> model =
        model::Model::load(*card::ModelCard::open(card::default_model()),
                           {.rows_max = 256, .context_max = 2048}, ops, team);
    ASSERT_TRUE(model) << model.error().message;
    const auto layout =
        kv::MemoryLayout::make((*model)->memory_needs(), kernels::FloatType::kF16);
    ASSERT_TRUE(layout);
    shape_.page_bytes[0] = layout->groups()[0].page_bytes;
    world_.emplace(std::move(*model), ops, 2,
                   RequestKinds{.count = 24, .shared = 500, .long_own = 900, .own = 200,
                                .answer = 12});
  }

  std::unique_ptr<DiskCache> open() {
    auto cache = DiskCache::open({.root = folder_.path(),
                                  .fingerprint = std::string(32, 'a'),
                                  .shape = shape_,
                                  .limits = {.bytes_max = 1 << 30},
                                  .write_bytes_a_second = int64_t{1} << 40},
                                 std::make_unique<MemoryFiles>(files_));
    EXPECT_TRUE(cache) << cache.error().message;
    return std::move(*cache);
  }

  // Runs all requests with a cache on disk; what was read of it.
  uint64_t run(int32_t page_count, int32_t running_max) {
    const std::unique_ptr<DiskCache> disk = open();
    RunnerOptions options = world_->options(page_count, /*prefix_cache=*/true);
    options.engine.running_max = running_max;
    options.engine.disk = disk.get();
    world_->expect_equal(world_->run(options));
    EXPECT_FALSE(disk->failed());
    EXPECT_EQ(disk->figures().corrupt_extents.value(), 0u);
    return disk->figures().read_bytes.value();
  }

  const kv::disk::TestFolder folder_;
  const std::shared_ptr<MemoryFiles::State> files_ = std::make_shared<MemoryFiles::State>();
  kv::disk::PageShape shape_;
  std::optional<ExactnessWorld> world_;
};

TEST_F(DiskExactness, TheBitsAreTheSameAfterRestarts) {
  EXPECT_EQ(run(/*page_count=*/1024, /*running_max=*/8), 0u);
  EXPECT_GT(run(1024, 8), 0u) << "what two have shared, or is long, was kept at the end";
  const uint64_t hits = world_->hits();
  EXPECT_GT(hits, 8u * 480) << "and counts as found";
  EXPECT_GT(run(1024, 1), 0u);
}

TEST_F(DiskExactness, TheBitsAreTheSameWherePagesAreFewAndReadsAreSlow) {
  files_->read_time = std::chrono::milliseconds(3);
  for (int32_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    run(/*page_count=*/66, /*running_max=*/6);  // The context, and little more.
  }
  EXPECT_GT(world_->preemptions() + world_->hits(), 0u);
}

TEST_F(DiskExactness, ADamagedDiskCostsNothingButTime) {
  run(1024, 8);
  for (auto& [name, bytes] : files_->files)
    if (name.ends_with(".kv"))
      for (size_t i = 9000; i < bytes->size(); i += 30'011)
        (*bytes)[i] = static_cast<char>((*bytes)[i] ^ 1);
  const std::unique_ptr<DiskCache> disk = open();
  RunnerOptions options = world_->options(1024, /*prefix_cache=*/true);
  options.engine.disk = disk.get();
  world_->expect_equal(world_->run(options));
  EXPECT_GT(disk->figures().corrupt_extents.value(), 0u);
}

TEST_F(DiskExactness, ARequestMayBeCancelledWhileItsBlocksAreRead) {
  run(1024, 8);
  files_->read_time = std::chrono::milliseconds(20);
  const std::unique_ptr<DiskCache> disk = open();
  RunnerOptions options = world_->options(1024, /*prefix_cache=*/true);
  options.engine.disk = disk.get();
  options.held = true;
  for (int32_t round = 0; round < 3; ++round) {
    Requests requests = make_requests({.count = 24, .shared = 500, .long_own = 900, .own = 200,
                                       .answer = 12},
                                      world_->model().spec().vocab_size);
    EngineRunner runner(world_->model(), kernels::ops_for(kernels::detect_isa()), options);
    for (const auto& request : requests) ASSERT_TRUE(runner.handle().submit(request.get()));
    runner.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(8 * round));
    for (const auto& request : requests) runner.handle().cancel(request.get());
    for (const auto& request : requests) runner.wait(*request);
    runner.stop();
  }
}

}  // namespace
}  // namespace weir::sched
