#include "kv/disk/store.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>
#include <thread>

#include "kv/disk/disk_world.h"
#include "kv/disk/memory_files.h"

namespace weir::kv::disk {
namespace {

namespace fs = std::filesystem;

TEST(DiskStore, WhatIsWrittenIsFoundAndReadAfterARestart) {
  const TestFolder folder;
  uint64_t secret = 0;
  {
    const OpenStore store(folder.path());
    secret = store->secret();
    const Text text(secret, made_up_blocks(1, 21));
    ASSERT_TRUE(write_text(*store, text, 0, 21).value());
    EXPECT_EQ(store->find(text.keys, 0)->blocks, 21);
    EXPECT_EQ(store->find(text.keys, 5)->blocks, 16);
  }
  const OpenStore store(folder.path());
  EXPECT_EQ(store->secret(), secret);
  EXPECT_NE(secret, 0u);
  const Text text(secret, made_up_blocks(1, 30));
  EXPECT_EQ(store->find(text.keys, 0)->blocks, 21);
  EXPECT_EQ(read_text(*store, text), 21);
  EXPECT_EQ(read_text(*store, text, 11), 10) << "in the middle of an extent";
  const Text other(secret, made_up_blocks(2, 30, /*shared=*/3));
  EXPECT_EQ(store->find(other.keys, 0)->blocks, 0);
  store->check();
}

TEST(DiskStore, ABlockIsWrittenOnceForAllThatExtendIt) {
  const TestFolder folder;
  const OpenStore store(folder.path());
  const Text one(store->secret(), made_up_blocks(0, 12));
  const Text two(store->secret(), made_up_blocks(2, 16, /*shared=*/11));
  ASSERT_TRUE(write_text(*store, one, 0, 12).value());
  const uint64_t before = store.figures.written_bytes.value();
  ASSERT_TRUE(write_text(*store, two, 0, 16).value());
  EXPECT_EQ(store.figures.written_bytes.value() - before, kBlockBytes + 2 * kBlockBytes)
      << "5 blocks of 1 KiB that part from the first text within an extent";
  EXPECT_EQ(read_text(*store, two), 16);
  EXPECT_EQ(read_text(*store, one), 12);
  store->check();
}

TEST(DiskStore, TokensAndParentAreComparedNotOnlyKeys) {
  const TestFolder folder;
  const OpenStore store(folder.path());
  const Text text(store->secret(), made_up_blocks(0, 16));
  ASSERT_TRUE(write_text(*store, text, 0, 16).value());
  Text forged = text;  // As if another text had these keys.
  forged.tokens[3][7] += 1;
  EXPECT_EQ(read_text(*store, forged), 3);
  forged = text;
  forged.tokens[5].media[1] += 1;  // Of another picture.
  EXPECT_EQ(read_text(*store, forged), 5);
  forged = text;
  forged.keys[7].high ^= 1;  // As if what comes before the second extent were another text.
  EXPECT_EQ(read_text(*store, forged, 8), 0);
  EXPECT_GT(store.figures.corrupt_extents.value(), 0u);
}

TEST(DiskStore, AnotherModelsSegmentsAreNotBelieved) {
  const TestFolder folder;
  {
    const OpenStore store(folder.path());
    ASSERT_TRUE(write_text(*store, Text(store->secret(), made_up_blocks(0, 8)), 0, 8).value());
  }
  const OpenStore store(folder.path(), {.bytes_max = 1 << 30}, {.page_bytes = {2048}, .groups = 1});
  EXPECT_EQ(store->blocks(), 0);
}

using MemoryState = std::shared_ptr<MemoryFiles::State>;

OpenStore open_in_memory(const MemoryState& state, const StoreLimits& limits) {
  return OpenStore("folder", limits, small_pages(), std::make_unique<MemoryFiles>(state));
}

TEST(DiskStore, AThousandFlippedBitsGiveNoWrongBlock) {
  const StoreLimits limits{.bytes_max = 1 << 30, .segment_bytes = 48 << 10};
  const auto state = std::make_shared<MemoryFiles::State>();
  std::vector<Text> texts;
  {
    const OpenStore store = open_in_memory(state, limits);
    for (int32_t i = 0; i < 6; ++i) {
      texts.emplace_back(store->secret(), made_up_blocks(i, 16, i % 2 == 0 ? 0 : 6));
      ASSERT_TRUE(write_text(*store, texts.back(), 0, 16).value());
    }
  }
  const auto whole = state->files;
  EXPECT_GT(std::ranges::count_if(whole, [](auto& f) { return f.first.ends_with(".idx"); }), 1);
  std::mt19937 random(7);
  int64_t read = 0;
  for (int32_t i = 0; i < 1000; ++i) {
    state->files.clear();
    for (const auto& [name, bytes] : whole)
      state->files[name] = std::make_shared<std::string>(*bytes);
    auto it = state->files.begin();
    std::advance(it, random() % whole.size());
    // Half of them in what is read first: heads, sidecars, the secret.
    const size_t bytes =
        i % 2 == 0 ? it->second->size() : std::min<size_t>(it->second->size(), 5000);
    const size_t bit = random() % (bytes * 8);
    char& flipped = (*it->second)[bit / 8];
    flipped = static_cast<char>(flipped ^ (1 << bit % 8));
    const OpenStore store = open_in_memory(state, limits);
    for (const Text& text : texts) read += read_text(*store, text);
    store->check();
  }
  EXPECT_GT(read, 1000 * 48) << "most of the blocks are still read";
}

TEST(DiskStore, ATornTailLosesNoMoreThanItTears) {
  const TestFolder folder;
  std::string name;
  std::vector<Text> texts;
  {
    const OpenStore store(folder.path());
    texts.emplace_back(store->secret(), made_up_blocks(0, 32));
    ASSERT_TRUE(write_text(*store, texts[0], 0, 32).value());
    name = folder.path() + "/000001.kv";
  }
  std::ifstream file(name, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(file)), {});
  const size_t extent = kBlockBytes + 8 * 1024;
  ASSERT_EQ(whole.size(), kBlockBytes + 4 * extent);
  for (size_t bytes = 0; bytes < whole.size(); bytes += 2777) {
    std::ofstream(name, std::ios::binary) << whole.substr(0, bytes);
    {
      const OpenStore store(folder.path());
      const auto left =
          bytes < kBlockBytes ? 0 : static_cast<int32_t>((bytes - kBlockBytes) / extent) * 8;
      EXPECT_EQ(read_text(*store, texts[0]), left) << bytes;
      // It grows on from there.
      ASSERT_TRUE(write_text(*store, texts[0], 0, 32).value());
      EXPECT_EQ(read_text(*store, texts[0]), 32) << bytes;
    }
    const OpenStore again(folder.path());
    EXPECT_EQ(read_text(*again, texts[0]), 32) << bytes;
    fs::remove(name);
  }
}

// Writes until it is killed; says so when it has begun.
[[noreturn]] void write_for_ever(const std::string& folder, int32_t round, int begun) {
  OpenStore store(folder, {.bytes_max = 2 << 20, .segment_bytes = 256 << 10});
  for (int32_t number = 0;; ++number) {
    const Text text(store->secret(), made_up_blocks(round * 1000 + number % 1000, 24));
    (void)write_text(*store, text, 0, 24);
    if (number == 0 && ::write(begun, "b", 1) != 1) std::_Exit(1);
  }
}

TEST(DiskStore, KilledWhileWritingFiftyTimesItGivesNoWrongBlock) {
  const TestFolder folder;
  std::mt19937 random(11);
  for (int32_t round = 0; round < 50; ++round) {
    int begun[2];
    ASSERT_EQ(::pipe(begun), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_for_ever(folder.path(), round, begun[1]);
    char byte = 0;
    EXPECT_EQ(::read(begun[0], &byte, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(begun[0]);
    ::close(begun[1]);
    const OpenStore store(folder.path(), {.bytes_max = 2 << 20, .segment_bytes = 256 << 10});
    store->check();
    int32_t read = 0;
    for (int32_t number = 0; number < 1000; ++number) {
      const Text text(store->secret(), made_up_blocks(round * 1000 + number, 24));
      if (store->find(text.keys, 0)->blocks > 0) read += read_text(*store, text);
    }
    EXPECT_GE(read, 16) << "round " << round;
    EXPECT_EQ(store.figures.corrupt_extents.value(), 0u) << "what is torn is cut off at the start";
  }
}

// All blocks of the texts that are found.
std::set<std::pair<uint64_t, int32_t>> found_blocks(const Store& store,
                                                    const std::vector<Text>& texts) {
  std::set<std::pair<uint64_t, int32_t>> found;
  for (const Text& text : texts)
    for (const PrefixKey& key : text.keys)
      if (store.contains(key)) found.emplace(key.low, key.pages);
  return found;
}

TEST(DiskStore, EvictionLeavesNoBlockWhoseParentHasGone) {
  const OpenStore store = open_in_memory(std::make_shared<MemoryFiles::State>(),
                                         {.bytes_max = 1 << 20, .segment_bytes = 128 << 10});
  std::mt19937 random(3);
  std::vector<Text> texts;
  for (int32_t i = 0; i < 40; ++i)
    texts.emplace_back(store->secret(),
                       made_up_blocks(i, 8 + static_cast<int32_t>(random() % 40), i % 3 * 9));
  int32_t reads = 0;
  for (int32_t step = 0; step < 1200; ++step) {
    const Text& text = texts[random() % (step % 2 == 0 ? 5 : texts.size())];
    const auto before = found_blocks(*store, texts);
    if (random() % 3 == 0) {
      reads += read_text(*store, text);
    } else {
      ASSERT_TRUE(write_text(*store, text, 0, text.blocks()).value());
      EXPECT_EQ(store->find(text.keys, 0)->blocks, text.blocks()) << "just written";
    }
    store->check();
    EXPECT_LE(store->bytes(), 1 << 20);
    for (const Text& each : texts)
      for (size_t i = 1; i < each.keys.size(); ++i) {
        const auto& [parent, child] = std::pair{each.keys[i - 1], each.keys[i]};
        const bool was = before.contains({parent.low, parent.pages}) &&
                         before.contains({child.low, child.pages});
        EXPECT_FALSE(was && store->contains(child) && !store->contains(parent));
      }
  }
  EXPECT_GT(store.figures.evicted_blocks.value(), 500u);
  EXPECT_GT(reads, 2000) << "what is read often stays";
}

}  // namespace
}  // namespace weir::kv::disk
