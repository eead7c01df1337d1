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
  int32_t on_disk(const Text& text) const { return find_text(*disk, text).end; }
  void flush() const { disk->flush(steady_clock::now() + seconds(20)); }
  // What is loaded into fresh pages, each compared.
  int32_t load(const Text& text) {
    DiskCache::Load load;
    load.salt = text.salt;
    load.keys = text.keys;
    load.tokens = text.tokens;
    load.memory = &pages;
    load.wanted.assign(text.keys.size(), 1);
    for (int32_t i = 0; i < text.blocks(); ++i) load.pages[0].push_back(i);
    disk->load(load);
    while (!load.done.load(std::memory_order_acquire)) std::this_thread::yield();
    std::vector<std::byte> page(static_cast<size_t>(pages.bytes_of_page(0)));
    const auto loaded = static_cast<int32_t>(std::ranges::count(load.wanted, 0));
    for (int32_t i = 0; i < loaded; ++i) {
      pages.copy_out(0, i, page);
      EXPECT_EQ(page, page_of(text.keys[static_cast<size_t>(i)], pages.bytes_of_page(0)));
    }
    return loaded;
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

// Layers that see all, a window of 80 tokens, and states.
struct MixedWorld {
  static constexpr int32_t kRunning = 2, kStates = 2;  // The group of checkpoints.

  const TestFolder folder;
  const std::shared_ptr<MemoryFiles::State> state = std::make_shared<MemoryFiles::State>();
  KvCache pages = cache_of_layers();
  SequenceMemory memory{pages.groups(), /*prefix_cache=*/true, pages.state_slots()};
  std::unique_ptr<DiskCache> disk;
  std::optional<Spill> spill;
  Text text{0, {}};

  static KvCache cache_of_layers() {
    const PagedNeed all{.heads = 1, .k_dim = 4, .v_dim = 4};
    const PagedNeed windowed{.heads = 1, .k_dim = 4, .v_dim = 4, .window = 80};
    auto layout = MemoryLayout::make({all, windowed, StateNeed{.bytes = 192, .tape_bytes = 64}},
                                     kernels::FloatType::kF16, /*tape_tokens=*/3);
    const std::vector<int32_t> counts = {80, 80};
    return std::move(*KvCache::create(std::move(*layout), counts,
                                      {.running = kRunning, .checkpoints = 8}));
  }
  MixedWorld() {
    open();
    text = Text(disk->secret(), made_up_blocks(1, 40));
  }

  // Once more, as after a restart, if it was open.
  void open() {
    spill.reset();
    disk.reset();
    const PageShape shape = PageShape::of(
        std::vector<MemoryLayout::Group>{{.window = 0, .page_bytes = 512},
                                         {.window = 80, .page_bytes = 512}},
        /*state_bytes=*/192);
    auto opened = DiskCache::open({.root = folder.path(),
                                   .fingerprint = std::string(32, 'a'),
                                   .shape = shape,
                                   .limits = {.bytes_max = 1 << 30},
                                   .write_bytes_a_second = 1 << 30},
                                  std::make_unique<MemoryFiles>(state));
    EXPECT_TRUE(opened) << opened.error().message;
    disk = std::move(*opened);
    spill.emplace(*memory.cache(), pages, *disk);
  }
  void put(int32_t group, int32_t page, size_t block) {
    pages.copy_in(group, page, page_of(text.keys[block], pages.kept_bytes(group), group));
  }
  // A prompt that ends in block 36, and an answer that ends with block 39.
  void compute() {
    Holding holding;
    holding.reserve(2, 64);
    Tokens tokens;
    tokens.blocks = text.tokens;
    memory.begin(holding, text.salt, /*prompt_tokens=*/36 * kPageTokens + 5);
    for (int32_t block = 0; block < 40; ++block) {
      const int32_t begin = block * kPageTokens, end = begin + kPageTokens;
      memory.leave(holding, begin);
      memory.grow(holding, end);
      memory.plan(holding, tokens, begin, end);
      const MemoryView view = holding.view();
      for (const int32_t group : {0, 1})
        put(group, view.pages(group)[block], static_cast<size_t>(block));
      for (const StateMark& mark : view.marks) {
        EXPECT_EQ(mark.position, end);
        put(kStates, mark.slot - kRunning, static_cast<size_t>(block));
      }
      memory.share(holding, tokens, end);
    }
    memory.release(holding);
  }
  // The blocks of which that page is on disk.
  std::vector<int32_t> on_disk(int32_t group) const {
    std::vector<int32_t> blocks;
    for (int32_t block = 0; block < 40; ++block)
      if (has_page(disk->pages_of(text.keys[static_cast<size_t>(block)]), group))
        blocks.push_back(block);
    return blocks;
  }
  void write_all() { spill->write_all(steady_clock::now() + seconds(20)); }
};

std::vector<int32_t> blocks_between(int32_t first, int32_t end) {
  std::vector<int32_t> blocks;
  for (int32_t block = first; block < end; ++block) blocks.push_back(block);
  return blocks;
}

TEST(DiskCache, BesideTheSpineThatIsKeptWhichTheEndsOfTextsNeed) {
  MixedWorld world;
  world.compute();
  world.write_all();
  EXPECT_EQ(world.on_disk(0), blocks_between(0, 40));
  EXPECT_EQ(world.on_disk(1), blocks_between(33, 40)) << "the last windows of prompt and answer";
  EXPECT_EQ(world.on_disk(2), (std::vector{35, 39})) << "and not those on the way";
  std::vector<PageSet> wanted;
  EXPECT_EQ(find_text(*world.disk, world.text, {}, &wanted).end, 40);

  DiskCache::Load load;
  load.salt = world.text.salt;
  load.keys = world.text.keys;
  load.tokens = world.text.tokens;
  load.memory = &world.pages;
  load.wanted = wanted;
  for (int32_t i = 0; i < 40; ++i)
    for (const size_t group : {0, 1}) load.pages[group].push_back(39 - i);
  load.pages[2].assign(40, 5);
  world.disk->load(load);
  while (!load.done.load(std::memory_order_acquire)) std::this_thread::yield();
  EXPECT_EQ(std::ranges::count(load.wanted, 0), 40);
  for (const int32_t group : {0, 1, 2}) {
    std::vector<std::byte> page(static_cast<size_t>(world.pages.kept_bytes(group)));
    world.pages.copy_out(group, group == 2 ? 5 : 0, page);  // Of the last block.
    EXPECT_EQ(page, page_of(world.text.keys.back(), std::ssize(page), group)) << group;
  }
}

TEST(DiskCache, AStateThatLeavesMemoryBeforeItsTextIsKeptByItself) {
  MixedWorld world;
  world.compute();
  world.memory.cache()->side(MixedWorld::kStates).evict(8);
  world.memory.cache()->side(1).evict(80);
  world.disk->flush(steady_clock::now() + seconds(20));
  EXPECT_FALSE(world.on_disk(2).empty()) << "as far as there are buffers";
  const auto before = world.on_disk(2);
  world.write_all();
  EXPECT_EQ(world.on_disk(0), blocks_between(0, 40));
  EXPECT_EQ(world.on_disk(2), before) << "what is gone is gone";
}

TEST(DiskCache, NothingIsWrittenThatIsComputedFasterThanItIsRead) {
  MixedWorld world;
  world.disk->learn_prompts(/*tokens=*/1 << 20, /*seconds=*/1e-3);
  world.compute();
  world.write_all();
  EXPECT_EQ(world.disk->figures().written_bytes.value(), 0u);
  EXPECT_FALSE(world.disk->pays(/*bytes=*/40 * 512 + 3 * 512 + 192, /*tokens=*/40 * kPageTokens));
  EXPECT_TRUE(world.disk->pays(/*bytes=*/100, /*tokens=*/40 * kPageTokens));
}

// Twenty bytes are read in the time that a token takes, and a block of 32 has 512, of the spine: with
// the 1,728 that the end of a text needs besides, texts of 14 blocks and more are worth it.
TEST(DiskCache, BlocksOfATextTooShortToPayAreKeptForTheLongerOnesThatDo) {
  MixedWorld world;
  world.disk->learn_prompts(/*tokens=*/25'000'000, /*seconds=*/1);  // Of 500 MB.
  ASSERT_FALSE(world.disk->pays(13 * 512 + 1728, 13 * kPageTokens));
  ASSERT_TRUE(world.disk->pays(14 * 512 + 1728, 14 * kPageTokens));
  world.compute();
  world.write_all();
  world.open();
  EXPECT_EQ(world.on_disk(0), blocks_between(0, 40));
  EXPECT_EQ(find_text(*world.disk, world.text).end, 40);
}

TEST(DiskCache, TheEndOfATextTooShortToPayIsNotKept) {
  MixedWorld world;
  world.disk->learn_prompts(/*tokens=*/28'700'000, /*seconds=*/1);  // 17.42 bytes each.
  ASSERT_FALSE(world.disk->pays(36 * 512 + 1728, 36 * kPageTokens));
  ASSERT_TRUE(world.disk->pays(40 * 512 + 1728, 40 * kPageTokens));
  world.compute();
  world.write_all();
  EXPECT_EQ(world.on_disk(0), blocks_between(0, 40));
  EXPECT_EQ(world.on_disk(2), std::vector{39}) << "and not the state of the prompt's end";
}

}  // namespace
}  // namespace weir::kv::disk
