// With a real model and a cache on disk: requests get the tokens and the log-probabilities, to the
// bit, that each gets alone without it, whether what they share is computed, in memory or read from
// disk, after restarts too, and while pages are so few that everything comes and goes. With each
// kind of thing that layers remember: keys and values as numbers and as codes, of windows, states.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>

#include "card/default_model.h"
#include "kv/disk/disk_cache.h"
#include "kv/disk/disk_world.h"
#include "kv/disk/memory_files.h"
#include "sched/exactness_world.h"

namespace weir::sched {
namespace {

using kv::disk::DiskCache;
using kv::disk::MemoryFiles;

struct Kind {
  const char* name;
  const char* fixture;  // A folder of tests/data/families; empty: the built-in model.
  kv::Format::Kind format = kv::Format::kF16;
};
std::ostream& operator<<(std::ostream& out, const Kind& kind) { return out << kind.name; }

// The fixture, for contexts of 2,048 tokens and with windows that reach over pages.
Result<card::ModelCard> card_of(const Kind& kind, const std::string& folder) {
  namespace fs = std::filesystem;
  if (*kind.fixture == '\0') return card::ModelCard::open(card::default_model());
  const std::string from = std::string(WEIR_SOURCE_DIR "/tests/data/families/") + kind.fixture;
  for (const auto& file : fs::directory_iterator(from))
    fs::create_symlink(file.path(), folder + "/" + file.path().filename().string());
  std::ifstream config(from + "/config.json");
  std::string text((std::istreambuf_iterator<char>(config)), {});
  text = std::regex_replace(text, std::regex("(\"max_position_embeddings\": )256"), "$012048");
  text = std::regex_replace(text, std::regex("(\"sliding_window\": )8"), "$01100");
  fs::remove(folder + "/config.json");
  std::ofstream(folder + "/config.json") << text;
  return card::ModelCard::open_folder(folder);
}

class DiskExactness : public testing::TestWithParam<Kind> {
 protected:
  static constexpr RequestKinds kKinds = {
      .count = 24, .shared = 500, .long_own = 900, .own = 200, .answer = 12};

  void SetUp() override {
    const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
    ThreadTeam team(2);
    const Result<card::ModelCard> card = card_of(GetParam(), model_folder_.path());
    ASSERT_TRUE(card) << card.error().message;
    Result<std::unique_ptr<model::Model>> model = model::Model::load(
        *card, {.rows_max = 256, .draft_rows_max = 64, .context_max = 2048}, ops, team);
    ASSERT_TRUE(model) << model.error().message;
    const auto layout = kv::MemoryLayout::make((*model)->memory_needs(), GetParam().format);
    ASSERT_TRUE(layout) << layout.error().message;
    shape_ = kv::disk::PageShape::of(layout->groups(), layout->checkpoint_bytes());
    world_.emplace(std::move(*model), ops, 2, kKinds, kv::Format(GetParam().format));
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

  const kv::disk::TestFolder folder_, model_folder_;
  const std::shared_ptr<MemoryFiles::State> files_ = std::make_shared<MemoryFiles::State>();
  kv::disk::PageShape shape_;
  std::optional<ExactnessWorld> world_;
};

TEST_P(DiskExactness, TheBitsAreTheSameAfterRestarts) {
  EXPECT_EQ(run(/*page_count=*/1024, /*running_max=*/8), 0u);
  EXPECT_GT(run(1024, 8), 0u) << "what two have shared, or is long, was kept at the end";
  const uint64_t hits = world_->hits();
  EXPECT_GT(hits, 8u * 480) << "and counts as found";
  EXPECT_GT(run(1024, 1), 0u);
}

TEST_P(DiskExactness, TheBitsAreTheSameWherePagesAreFewAndReadsAreSlow) {
  files_->read_time = std::chrono::milliseconds(3);
  for (int32_t i = 0; i < 3; ++i) {
    SCOPED_TRACE(i);
    run(/*page_count=*/66, /*running_max=*/6);  // The context, and little more.
  }
  EXPECT_GT(world_->preemptions() + world_->hits(), 0u);
}

TEST_P(DiskExactness, ADamagedDiskCostsNothingButTime) {
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

TEST_P(DiskExactness, ARequestMayBeCancelledWhileItsBlocksAreRead) {
  run(1024, 8);
  files_->read_time = std::chrono::milliseconds(20);
  const std::unique_ptr<DiskCache> disk = open();
  RunnerOptions options = world_->options(1024, /*prefix_cache=*/true);
  options.engine.disk = disk.get();
  options.held = true;
  for (int32_t round = 0; round < 3; ++round) {
    Requests requests = make_requests(kKinds, world_->model().spec().vocab_size);
    EngineRunner runner(world_->model(), kernels::ops_for(kernels::detect_isa()), options);
    for (const auto& request : requests) ASSERT_TRUE(runner.handle().submit(request.get()));
    runner.begin();
    std::this_thread::sleep_for(std::chrono::milliseconds(8 * round));
    for (const auto& request : requests) runner.handle().cancel(request.get());
    for (const auto& request : requests) runner.wait(*request);
    runner.stop();
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, DiskExactness,
    testing::Values(Kind{"Numbers", ""}, Kind{"Bytes", "", kv::Format::kInt8},
                    Kind{"Codes", "", kv::Format::kTq4}, Kind{"Windows", "gpt_oss"},
                    Kind{"WindowsOfBytes", "gemma3_text_linear_rope", kv::Format::kInt8},
                    Kind{"States", "mamba2_biased"}, Kind{"StatesBesidePages", "qwen3_next"},
                    Kind{"Convolutions", "lfm2_biased"}),
    [](const testing::TestParamInfo<Kind>& kind) { return std::string(kind.param.name); });

}  // namespace
}  // namespace weir::sched
