#include "kv/disk/disk_cache.h"

#include "kv/disk/disk_world.h"
#include "kv/disk/memory_files.h"
#include "kv/disk/spill.h"
#include "kv/kv_cache.h"
#include "kv/sequence_memory.h"

namespace weir::kv::disk {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// 2 layers of 1 head of 4 numbers: a page of 32 tokens has 1 KiB.
KvCache small_cache(int32_t pages) {
  const PagedNeed need{.heads = 1, .k_dim = 4, .v_dim = 4};
  return std::move(*KvCache::create({need, need}, kernels::FloatType::kF16, pages));
}

// Tokens by position.
struct Tokens final : TokenKeys {
  std::vector<BlockTokens> blocks;
  void read(int32_t block, BlockTokens& tokens) const override {
    tokens = blocks[static_cast<size_t>(block)];
  }
};

// A memory of so many pages, with a cache on disk, and sequences that fill pages as page_of() says.
struct World {
  static constexpr int32_t kPages = 80;

  std::shared_ptr<MemoryFiles::State> state;
  std::unique_ptr<DiskCache> disk;
  KvCache pages = small_cache(kPages);
  SequenceMemory memory{pages.groups(), /*prefix_cache=*/true};
  std::optional<Spill> spill;

  World(const TestFolder& folder, std::shared_ptr<MemoryFiles::State> files,
        int64_t bytes_a_day = int64_t{1} << 40, int64_t free_min = 0)
      : state(std::move(files)) {
    auto opened = DiskCache::open({.root = folder.path(),
                                   .fingerprint = std::string(32, 'a'),
                                   .shape = small_pages(),
                                   .limits = {.bytes_max = 1 << 30, .free_bytes_min = free_min},
                                   .write_bytes_a_second = 1 << 30,
                                   .write_bytes_a_day = bytes_a_day},
                                  std::make_unique<MemoryFiles>(state));
    EXPECT_TRUE(opened) << opened.error().message;
    disk = std::move(*opened);
    spill.emplace(*memory.cache(), pages, *disk);
  }

  // A sequence computes the blocks of a text that the cache does not have, and ends.
  void compute(const Text& text) {
    Holding holding;
    holding.reserve(1, 64);
    Tokens tokens;
    tokens.blocks = text.tokens;
    memory.begin(holding, text.salt);
    const int32_t all = text.blocks() * kPageTokens;
    const int32_t known = memory.match(holding, tokens, 0, all);
    memory.grow(holding, all);
    for (int32_t b = known / kPageTokens; b < text.blocks(); ++b)
      pages.copy_in(0, holding.view().pages(0)[b],
                    page_of(text.keys[static_cast<size_t>(b)], pages.bytes_of_page(0)));
    memory.share(holding, tokens, all);
    memory.release(holding);
  }
  Text text(int32_t number, int32_t blocks, int32_t shared = 0) const {
    return Text(disk->secret(), made_up_blocks(number, blocks, shared));
  }
  int32_t on_disk(const Text& text) const { return disk->find(text.keys, 0)->blocks; }
  void flush() const { disk->flush(steady_clock::now() + seconds(20)); }
  // What is loaded into fresh pages, each compared.
  int32_t load(const Text& text) {
    DiskCache::Load load;
    load.salt = text.salt;
    load.keys = text.keys;
    load.tokens = text.tokens;
    load.memory = &pages;
    for (int32_t i = 0; i < text.blocks(); ++i) load.pages.push_back(i);
    disk->load(load);
    while (!load.done.load(std::memory_order_acquire)) std::this_thread::yield();
    std::vector<std::byte> page(static_cast<size_t>(pages.bytes_of_page(0)));
    for (int32_t i = 0; i < load.loaded; ++i) {
      pages.copy_out(0, i, page);
      EXPECT_EQ(page, page_of(text.keys[static_cast<size_t>(i)], pages.bytes_of_page(0)));
    }
    return load.loaded;
  }
};

TEST(DiskCache, ALongTextIsKeptWhenItLeavesAndAShortOneIsNot) {
  const TestFolder folder;
  World world(folder, std::make_shared<MemoryFiles::State>());
  const Text lasting = world.text(1, 40), brief = world.text(2, 20);
  world.compute(lasting);
  world.compute(brief);
  world.flush();
  EXPECT_EQ(world.disk->blocks(), 0) << "nothing is written while it is in memory";
  world.memory.cache()->evict(World::kPages);
  world.flush();
  EXPECT_GT(world.disk->blocks(), 0);
  EXPECT_EQ(world.on_disk(brief), 0);
  EXPECT_EQ(world.load(lasting), world.on_disk(lasting));
}

TEST(DiskCache, AtTheEndAllThatIsWorthItIsKeptAndLoadedAfterARestart) {
  const TestFolder folder;
  const auto state = std::make_shared<MemoryFiles::State>();
  {
    World world(folder, state);
    world.compute(world.text(0, 20));
    world.compute(world.text(3, 24, /*shared=*/11));  // It takes eleven blocks of the one before.
    world.compute(world.text(4, 35));
    world.spill->write_all(steady_clock::now() + seconds(20));
  }
  World world(folder, state);
  EXPECT_EQ(world.load(world.text(4, 35)), 35);
  EXPECT_EQ(world.load(world.text(0, 20)), 11) << "what two texts have used";
  const uint64_t written = world.disk->figures().written_bytes.value();
  world.compute(world.text(4, 35));
  world.spill->write_all(steady_clock::now() + seconds(20));
  EXPECT_EQ(world.disk->figures().written_bytes.value(), written) << "it is there already";
}

TEST(DiskCache, WhatIsNotComputedYetIsNotKept) {
  const TestFolder folder;
  World world(folder, std::make_shared<MemoryFiles::State>());
  world.memory.cache()->set_steps(/*planned=*/8, /*done=*/7);
  const Text text = world.text(1, 40);
  world.compute(text);
  world.memory.cache()->evict(20);
  world.spill->write_all(steady_clock::now() + seconds(20));
  EXPECT_EQ(world.disk->blocks(), 0);
  world.memory.cache()->set_steps(9, 8);
  world.spill->write_all(steady_clock::now() + seconds(20));
  EXPECT_EQ(world.disk->blocks(), 20);
}

TEST(DiskCache, ForgottenBlocksAreNotKept) {
  const TestFolder folder;
  World world(folder, std::make_shared<MemoryFiles::State>());
  world.compute(world.text(1, 40));
  world.memory.forget_shared();
  world.flush();
  EXPECT_EQ(world.disk->blocks(), 0);
}

TEST(DiskCache, AFullDiskOrABrokenOneSwitchesItOff) {
  for (const bool full : {true, false}) {
    const TestFolder folder;
    const auto state = std::make_shared<MemoryFiles::State>();
    World world(folder, state);
    const Text text = world.text(1, 64);
    world.compute(text);
    {
      const std::lock_guard lock(state->mutex);
      (full ? state->quota_is_spent : state->writes_fail) = true;
    }
    world.spill->write_all(steady_clock::now() + seconds(20));
    EXPECT_TRUE(world.disk->failed());
    EXPECT_EQ(world.on_disk(text), 0) << "nothing is found any more";
    EXPECT_EQ(world.disk->take_buffer(), nullptr);
  }
}

TEST(DiskCache, WhatOthersNeedOfTheDiskStaysFree) {
  const TestFolder folder;
  const auto state = std::make_shared<MemoryFiles::State>();
  state->room = 100'000;
  World world(folder, state, int64_t{1} << 40, /*free_min=*/60'000);
  world.compute(world.text(1, 64));
  world.spill->write_all(steady_clock::now() + seconds(20));
  EXPECT_GE(state->room, 60'000);
  EXPECT_GT(world.disk->blocks(), 0);
  EXPECT_GT(world.disk->dropped_bytes(), 0u);
  EXPECT_FALSE(world.disk->failed());
}

TEST(DiskCache, AReadThatFailsSwitchesItOffAndGivesNothing) {
  const TestFolder folder;
  const auto state = std::make_shared<MemoryFiles::State>();
  World world(folder, state);
  const Text text = world.text(1, 40);
  world.compute(text);
  world.spill->write_all(steady_clock::now() + seconds(20));
  ASSERT_EQ(world.on_disk(text), 40);
  {
    const std::lock_guard lock(state->mutex);
    state->reads_fail = true;
  }
  EXPECT_EQ(world.load(text), 0);
  EXPECT_TRUE(world.disk->failed());
}

TEST(DiskCache, ADayHasItsLimit) {
  const TestFolder folder;
  World world(folder, std::make_shared<MemoryFiles::State>(), /*bytes_a_day=*/40'000);
  world.compute(world.text(1, 64));
  world.spill->write_all(steady_clock::now() + seconds(20));
  EXPECT_LE(world.disk->figures().written_bytes.value(), 40'000u);
  EXPECT_GT(world.disk->dropped_bytes(), 0u);
  EXPECT_FALSE(world.disk->failed());
}

}  // namespace
}  // namespace weir::kv::disk
