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
    EXPECT_EQ(find_text(*store, text).end, 21);
    const Store::Found rest = find_text(*store, text, std::vector<PageSet>(16, 1));
    EXPECT_EQ(rest.end, 21);
    EXPECT_EQ(rest.bytes, 3 * static_cast<int64_t>(kBlockBytes)) << "the last extent: 5 KiB";
  }
  const OpenStore store(folder.path());
  EXPECT_EQ(store->secret(), secret);
  EXPECT_NE(secret, 0u);
  const Text text(secret, made_up_blocks(1, 30));
  EXPECT_EQ(find_text(*store, text).end, 21);
  EXPECT_EQ(read_text(*store, text), 21);
  EXPECT_EQ(read_text(*store, text, 11), 10) << "in the middle of an extent";
  const Text other(secret, made_up_blocks(2, 30, /*shared=*/3));
  EXPECT_EQ(find_text(*store, other).end, 0);
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

// By group of all_kinds_of_pages().
constexpr PageSet kSpine = page_bit(0), kWindow = page_bit(1), kHot = page_bit(2),
                  kState = page_bit(3);

TEST(DiskStore, ASequenceGoesOnWhereAllIsThereThatItNeeds) {
  const PageShape shape = all_kinds_of_pages();
  const TestFolder folder;
  const OpenStore store(folder.path(), {.bytes_max = 1 << 30}, shape);
  const Text text(store->secret(), made_up_blocks(1, 20));
  ASSERT_TRUE(write_text(*store, text, 0, 20, shape).value());
  EXPECT_EQ(find_text(*store, text).end, 0);

  std::vector<PageSet> pages(20, 0);
  pages[0] = kHot;
  pages[8] = pages[9] = pages[10] = kWindow;  // What an answer leaves that ends after block 10:
  pages[10] |= kState;                        // positions 273 to 351 are in blocks 8 to 10.
  ASSERT_TRUE(write_pages(*store, text, pages, shape).value());
  std::vector<PageSet> wanted;
  EXPECT_EQ(find_text(*store, text, {}, &wanted).end, 11);
  std::vector<PageSet> expected(20, 0);
  for (size_t i = 0; i < 11; ++i) expected[i] = kSpine;
  for (size_t i = 0; i < 11; ++i) expected[i] |= pages[i];
  EXPECT_EQ(wanted, expected);
  read_pages(*store, text, wanted);
  EXPECT_EQ(wanted, std::vector<PageSet>(20, 0)) << "all has come";

  const std::vector<PageSet> in_memory(14, kSpine | kHot);
  const Store::Found rest = find_text(*store, text, in_memory, &wanted);
  EXPECT_EQ(rest.end, 11) << "what is in memory need not be read";
  pages[0] = 0;
  EXPECT_EQ(wanted, pages);
  EXPECT_EQ(rest.bytes, static_cast<int64_t>(kBlockBytes + whole_blocks(3 * 512 + 3072)));

  pages[9] = 0;
  const Text again(store->secret(), made_up_blocks(2, 20));
  ASSERT_TRUE(write_text(*store, again, 0, 20, shape).value());
  ASSERT_TRUE(write_pages(*store, again, pages, shape).value());
  EXPECT_EQ(find_text(*store, again).end, 0)
      << "one page of the window is missing, and the hot one";
  store->check();
}

TEST(DiskStore, WhatEndsLaterIsWrittenBesideAndFoundAfterARestart) {
  const PageShape shape = all_kinds_of_pages();
  const TestFolder folder;
  uint64_t written = 0;
  for (int32_t round = 0; round < 3; ++round) {
    const OpenStore store(folder.path(), {.bytes_max = 1 << 30, .segment_bytes = 12 << 10}, shape);
    const Text text(store->secret(), made_up_blocks(0, 24));
    std::vector<PageSet> pages(24, kSpine);
    pages[0] |= kHot;
    for (const size_t end : {5, 15, 23}) {
      for (size_t i = end - 2; i <= end; ++i) pages[i] |= kWindow;
      pages[end] |= kState;
      ASSERT_TRUE(write_pages(*store, text, pages, shape).value());
      store->check();
    }
    for (const int32_t end : {6, 16, 24}) {
      const Text part(store->secret(), made_up_blocks(0, end + 1));
      std::vector<PageSet> wanted;
      EXPECT_EQ(find_text(*store, part, {}, &wanted).end, std::min(end, 24)) << round;
      read_pages(*store, part, wanted);
      EXPECT_EQ(std::ranges::count(wanted, 0), part.blocks());
    }
    if (round == 0) written = store.figures.written_bytes.value();
    EXPECT_EQ(store.figures.written_bytes.value(), round == 0 ? written : 0) << "once";
  }
}

TEST(DiskStore, OfAnExtentAllIsWrittenThatIsMissingWhateverLiesBetween) {
  const PageShape shape = all_kinds_of_pages();
  const TestFolder folder;
  std::vector<PageSet> pages = {kSpine | kHot, kSpine, kSpine, kSpine};
  for (int32_t round = 0; round < 2; ++round) {
    const OpenStore store(folder.path(), {.bytes_max = 1 << 30}, shape);
    const Text text(store->secret(), made_up_blocks(0, 8));
    if (round == 0) {
      ASSERT_TRUE(write_pages(*store, text, pages, shape).value());
      pages[1] |= kWindow;
      pages.resize(8, kSpine);
      for (const size_t block : {5, 6, 7}) pages[block] |= kWindow;
      pages[7] |= kState;
      ASSERT_TRUE(write_pages(*store, text, pages, shape).value());
    }
    for (size_t i = 0; i < pages.size(); ++i)
      EXPECT_EQ(store->pages_of(text.keys[i]), pages[i]) << i << ", round " << round;
    EXPECT_EQ(find_text(*store, text).end, 8);
    std::vector<PageSet> wanted = pages;
    read_pages(*store, text, wanted);
    EXPECT_EQ(wanted, std::vector<PageSet>(8, 0)) << "round " << round;
    store->check();
  }
}

TEST(DiskStore, AReadThatIsNotWantedAnyMoreEndsBeforeTheNextExtent) {
  const TestFolder folder;
  const OpenStore store(folder.path());
  const Text text(store->secret(), made_up_blocks(0, 40));
  ASSERT_TRUE(write_text(*store, text, 0, 40).value());
  std::vector<PageSet> wanted(40, kSpine);
  std::atomic<bool> unwanted{false};
  const auto take = [&](int32_t block, int32_t, std::span<const std::byte>) {
    if (block == 9) unwanted = true;
  };
  ASSERT_TRUE(store->read(text.view(), wanted, take, unwanted));
  EXPECT_EQ(std::ranges::count(wanted, 0), 16);
}

using MemoryState = std::shared_ptr<MemoryFiles::State>;

OpenStore open_in_memory(const MemoryState& state, const StoreLimits& limits,
                         const PageShape& shape = small_pages()) {
  return OpenStore("folder", limits, shape, std::make_unique<MemoryFiles>(state));
}

using FileMap = decltype(MemoryFiles::State::files);

FileMap copies_of(const FileMap& files) {
  FileMap copies;
  for (const auto& [name, bytes] : files) copies[name] = std::make_shared<std::string>(*bytes);
  return copies;
}

// `in_heads`: in what is read first: heads, sidecars, the secret.
void flip_a_bit(FileMap& files, std::mt19937& random, bool in_heads) {
  auto it = files.begin();
  std::advance(it, random() % files.size());
  const size_t size = it->second->size(), bytes = in_heads ? std::min<size_t>(size, 5000) : size;
  const size_t bit = random() % (bytes * 8);
  char& flipped = (*it->second)[bit / 8];
  flipped = static_cast<char>(flipped ^ (1 << bit % 8));
}

// Pages as a text leaves them that others have ended in, at random.
std::vector<PageSet> pages_of_ends(std::mt19937& random, int32_t blocks) {
  std::vector<PageSet> pages(static_cast<size_t>(blocks), kSpine);
  pages.front() |= kHot;
  for (uint32_t ends = 1 + random() % 2; ends > 0; --ends) {
    const size_t end = random() % pages.size();
    for (size_t i = end < 2 ? 0 : end - 2; i <= end; ++i) pages[i] |= kWindow;
    pages[end] |= kState;
  }
  if (random() % 3 == 0)  // The spine was written before.
    for (PageSet& page : pages) page &= static_cast<PageSet>(~kSpine);
  return pages;
}

// What is found of the text is read; how many blocks are there with all that they need.
int32_t read_found(Store& store, const Text& text) {
  std::vector<PageSet> wanted;
  const int32_t end = find_text(store, text, {}, &wanted).end;
  read_pages(store, text, wanted);
  return std::ranges::all_of(wanted, [](PageSet pages) { return pages == 0; }) ? end : 0;
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
    state->files = copies_of(whole);
    flip_a_bit(state->files, random, /*in_heads=*/i % 2 != 0);
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

TEST(DiskStore, FlippedBitsGiveNoWrongPageOfAnyKind) {
  const StoreLimits limits{.bytes_max = 1 << 30, .segment_bytes = 48 << 10};
  const PageShape shape = all_kinds_of_pages();
  const auto state = std::make_shared<MemoryFiles::State>();
  std::vector<Text> texts;
  std::mt19937 random(9);
  {
    const OpenStore store = open_in_memory(state, limits, shape);
    for (int32_t i = 0; i < 6; ++i) {
      texts.emplace_back(store->secret(), made_up_blocks(i, 16, i % 2 == 0 ? 0 : 6));
      ASSERT_TRUE(write_text(*store, texts.back(), 0, 16, shape).value());
      for (int32_t j = 0; j < 2; ++j)
        ASSERT_TRUE(write_pages(*store, texts.back(), pages_of_ends(random, 16), shape).value());
    }
  }
  const auto whole = state->files;
  int64_t read = 0, there = 0;
  for (int32_t i = 0; i < 1000; ++i) {
    state->files = copies_of(whole);
    if (i > 0) flip_a_bit(state->files, random, /*in_heads=*/i % 2 != 0);
    const OpenStore store = open_in_memory(state, limits, shape);
    int64_t now = 0;
    for (const Text& text : texts) now += read_found(*store, text);
    (i == 0 ? there : read) += now;
    store->check();
  }
  EXPECT_GT(there, 6 * 5) << "the bit of none was flipped";
  EXPECT_GT(read, 1000 * there / 2) << "most is still read";
}

// Writes until it is killed; says so when it has begun.
[[noreturn]] void write_for_ever(const std::string& folder, int32_t round, int begun,
                                 const PageShape& shape) {
  OpenStore store(folder, {.bytes_max = 2 << 20, .segment_bytes = 256 << 10}, shape);
  std::mt19937 random(5);
  for (int32_t number = 0;; ++number) {
    const Text text(store->secret(), made_up_blocks(round * 1000 + number % 1000, 24));
    (void)write_text(*store, text, 0, 24, shape);
    if (shape.has_sides()) (void)write_pages(*store, text, pages_of_ends(random, 24), shape);
    if (number == 0 && ::write(begun, "b", 1) != 1) std::_Exit(1);
  }
}

void kill_while_it_writes(const PageShape& shape) {
  const TestFolder folder;
  std::mt19937 random(11);
  int32_t all = 0;
  for (int32_t round = 0; round < 50; ++round) {
    int begun[2];
    ASSERT_EQ(::pipe(begun), 0);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) write_for_ever(folder.path(), round, begun[1], shape);
    char byte = 0;
    EXPECT_EQ(::read(begun[0], &byte, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 5000));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    ::close(begun[0]);
    ::close(begun[1]);
    const OpenStore store(folder.path(), {.bytes_max = 2 << 20, .segment_bytes = 256 << 10}, shape);
    store->check();
    int32_t read = 0;
    for (int32_t number = 0; number < 1000; ++number) {
      const Text text(store->secret(), made_up_blocks(round * 1000 + number, 24));
      if (find_text(*store, text).end == 0) continue;
      read += shape.has_sides() ? read_found(*store, text) : read_text(*store, text);
    }
    EXPECT_TRUE(read >= 16 || shape.has_sides()) << "round " << round;
    all += read;
    EXPECT_EQ(store.figures.corrupt_extents.value(), 0u) << "what is torn is cut off at the start";
  }
  EXPECT_GE(all, 50 * 8);
}

TEST(DiskStore, KilledWhileWritingFiftyTimesItGivesNoWrongBlock) {
  kill_while_it_writes(small_pages());
}

TEST(DiskStore, KilledWhileWritingFiftyTimesItGivesNoWrongPageOfAnyKind) {
  kill_while_it_writes(all_kinds_of_pages());
}

TEST(DiskStore, WhatCanNeverFitTakesNothingAway) {
  const PageShape shape{.page_bytes = {16 << 10}, .groups = 1};
  const OpenStore store =
      open_in_memory(std::make_shared<MemoryFiles::State>(), {.bytes_max = 100 << 10}, shape);
  const Text small(store->secret(), made_up_blocks(0, 2)),
      large(store->secret(), made_up_blocks(1, 8));
  ASSERT_TRUE(write_text(*store, small, 0, 2, shape).value());
  EXPECT_FALSE(write_text(*store, large, 0, 8, shape).value());
  EXPECT_EQ(store.figures.evicted_blocks.value(), 0u);
  EXPECT_EQ(read_text(*store, small), 2);
  EXPECT_TRUE(write_text(*store, large, 0, 5, shape).value()) << "which fits, if the other goes";
}

// All blocks of the texts that are found.
std::set<std::pair<uint64_t, int32_t>> found_blocks(const Store& store,
                                                    const std::vector<Text>& texts) {
  std::set<std::pair<uint64_t, int32_t>> found;
  for (const Text& text : texts)
    for (const PrefixKey& key : text.keys)
      if (has_page(store.pages_of(key), 0)) found.emplace(key.low, key.pages);
  return found;
}

void evict_while_it_is_used(const PageShape& shape, uint32_t seed) {
  SCOPED_TRACE(seed);
  const OpenStore store = open_in_memory(std::make_shared<MemoryFiles::State>(),
                                         {.bytes_max = 1 << 20, .segment_bytes = 128 << 10}, shape);
  std::mt19937 random(seed);
  std::vector<Text> texts;
  for (int32_t i = 0; i < 40; ++i)
    texts.emplace_back(store->secret(),
                       made_up_blocks(i, 8 + static_cast<int32_t>(random() % 40), i % 3 * 9));
  int32_t reads = 0, wholes = 0;
  for (int32_t step = 0; step < 1200; ++step) {
    const Text& text = texts[random() % (step % 2 == 0 ? 5 : texts.size())];
    const auto before = found_blocks(*store, texts);
    if (random() % 3 == 0) {
      reads += shape.has_sides() ? read_found(*store, text) : read_text(*store, text);
    } else {
      const Result<bool> written = write_text(*store, text, 0, text.blocks(), shape);
      ASSERT_TRUE(written);
      if (shape.has_sides()) {
        const std::vector<PageSet> ends = pages_of_ends(random, text.blocks());
        ASSERT_TRUE(write_pages(*store, text, ends, shape));
      } else if (*written) {
        ++wholes;
        EXPECT_EQ(find_text(*store, text).end, text.blocks()) << "just written";
      }
    }
    store->check();
    EXPECT_LE(store->bytes(), 1 << 20);
    for (const Text& each : texts)
      for (size_t i = 1; i < each.keys.size(); ++i) {
        const auto& [parent, child] = std::pair{each.keys[i - 1], each.keys[i]};
        const bool was = before.contains({parent.low, parent.pages}) &&
                         before.contains({child.low, child.pages});
        EXPECT_FALSE(was && store->pages_of(child) != 0 && !has_page(store->pages_of(parent), 0));
      }
  }
  EXPECT_GT(store.figures.evicted_blocks.value(), 500u);
  EXPECT_GT(reads, 2000) << "what is read often stays";
  EXPECT_TRUE(wholes > 700 || shape.has_sides()) << "nearly all that is written has room";
}

TEST(DiskStore, EvictionLeavesNoBlockWhoseParentHasGone) {
  for (uint32_t seed = 1; seed <= 4; ++seed) evict_while_it_is_used(small_pages(), seed);
}

TEST(DiskStore, EvictionLeavesNoPageWhoseBlockHasGone) {
  for (uint32_t seed = 1; seed <= 4; ++seed) evict_while_it_is_used(all_kinds_of_pages(), seed);
}

}  // namespace
}  // namespace weir::kv::disk
