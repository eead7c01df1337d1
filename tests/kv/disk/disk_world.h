// What tests of the cache on disk have in common: a folder that goes with the test, texts, and
// pages whose bytes follow from the text alone.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "base/huge_pages.h"
#include "kv/disk/store.h"

namespace weir::kv::disk {

// Of mode 0700, empty.
class TestFolder {
 public:
  TestFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "weir-disk-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~TestFolder() { std::filesystem::remove_all(path_); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline PageShape small_pages() { return {.page_bytes = {1024}, .groups = 1}; }

// With all that a sequence may need: a window of 80 tokens, a hot page, a state.
inline PageShape all_kinds_of_pages() {
  return PageShape::of(std::vector<MemoryLayout::Group>{{.window = 0, .page_bytes = 1024},
                                                        {.window = 80, .page_bytes = 512},
                                                        {.window = 1, .page_bytes = 640, .hot = true}},
                       /*state_bytes=*/3072);
}

// A text of whole blocks.
struct Text {
  PrefixKey salt;
  std::vector<PrefixKey> keys;
  std::vector<BlockTokens> tokens;

  Text(uint64_t secret, const std::vector<BlockTokens>& blocks) : tokens(blocks) {
    PrefixIdentity identity;
    identity.secret = secret;
    salt = PrefixCache::salt(identity);
    PrefixKey before = salt;
    for (const BlockTokens& block : tokens)
      keys.push_back(before = PrefixCache::child(before, block));
  }
  ChainView view() const { return {salt, keys, tokens}; }
  int32_t blocks() const { return static_cast<int32_t>(keys.size()); }
};

// The first `shared` blocks are those of text 0.
inline std::vector<BlockTokens> made_up_blocks(int32_t number, int32_t blocks, int32_t shared = 0) {
  std::vector<BlockTokens> tokens(static_cast<size_t>(blocks));
  for (int32_t b = 0; b < blocks; ++b)
    for (int32_t i = 0; i < kPageTokens; ++i)
      tokens[static_cast<size_t>(b)][static_cast<size_t>(i)] =
          (b < shared ? 0 : number) * 10'000 + b * kPageTokens + i;
  return tokens;
}

// What the page of a block holds, of a group.
inline std::vector<std::byte> page_of(const PrefixKey& key, int64_t bytes, int32_t group = 0) {
  std::mt19937_64 random(key.low ^ key.high ^ static_cast<uint64_t>(group));
  std::vector<std::byte> page(static_cast<size_t>(bytes));
  for (size_t i = 0; i + 8 <= page.size(); i += 8) {
    const uint64_t number = random();
    std::memcpy(page.data() + i, &number, sizeof number);
  }
  return page;
}

// Writes these pages of the text's blocks, an extent for those of each eight that follow each other.
inline Result<bool> write_pages(Store& store, const Text& text, const std::vector<PageSet>& pages,
                                const PageShape& shape) {
  auto buffer = HugeBuffer::allocate(1 << 20);
  if (!buffer) return tl::unexpected(buffer.error());
  const auto blocks = static_cast<int32_t>(pages.size());
  const auto has_any = [&](int32_t block) { return pages[static_cast<size_t>(block)] != 0; };
  for (int32_t first = 0; first < blocks; ++first) {
    if (!has_any(first)) continue;
    const int32_t most = std::min(blocks, (first / kExtentBlocksMax + 1) * kExtentBlocksMax);
    int32_t end = first;
    while (end < most && has_any(end)) ++end;
    ExtentHead head;
    head.parent = first == 0 ? text.salt : text.keys[static_cast<size_t>(first) - 1];
    head.blocks = end - first;
    std::byte* to = buffer->data() + kBlockBytes;
    for (int32_t i = 0; i < head.blocks; ++i) {
      const auto at = static_cast<size_t>(i), block = static_cast<size_t>(first + i);
      head.pages[at] = pages[block];
      head.tokens[at] = text.tokens[block];
      for (int32_t g = 0; g < shape.groups; ++g) {
        if (!has_page(pages[block], g)) continue;
        const int64_t bytes = shape.page_bytes[static_cast<size_t>(g)];
        to = std::ranges::copy(page_of(text.keys[block], bytes, g), to).out;
      }
    }
    WEIR_ASSIGN(const bool done, store.append(head, {buffer->data(), buffer->bytes()}));
    if (!done) return false;
    first = end - 1;
  }
  return true;
}

// Blocks [from, until) of the text, their pages of the spine.
inline Result<bool> write_text(Store& store, const Text& text, int32_t from, int32_t until,
                               const PageShape& shape = small_pages()) {
  std::vector<PageSet> pages(static_cast<size_t>(until), 1);
  std::fill(pages.begin(), pages.begin() + from, PageSet{0});
  return write_pages(store, text, pages, shape);
}

// What is read of the pages that are wanted. Each is as it was written, or the test fails. Those
// that have not come stay wanted.
inline void read_pages(Store& store, const Text& text, std::vector<PageSet>& wanted) {
  const std::atomic<bool> unwanted{false};
  std::vector<PageSet> given(wanted.size(), 0);
  const std::vector<PageSet> asked = wanted;
  (void)store.read(text.view(), wanted,
                   [&](int32_t block, int32_t group, std::span<const std::byte> bytes) {
                     given[static_cast<size_t>(block)] |= page_bit(group);
                     const std::vector<std::byte> page =
                         page_of(text.keys[static_cast<size_t>(block)],
                                 static_cast<int64_t>(bytes.size()), group);
                     EXPECT_TRUE(std::ranges::equal(bytes, page)) << block << ", group " << group;
                   },
                   unwanted);
  for (size_t i = 0; i < asked.size(); ++i) EXPECT_EQ(given[i], asked[i] & ~wanted[i]);
}

// How many blocks of the text are read from `from` on, one after another.
inline int32_t read_text(Store& store, const Text& text, int32_t from = 0) {
  std::vector<PageSet> wanted(text.keys.size(), 1);
  std::fill(wanted.begin(), wanted.begin() + from, PageSet{0});
  read_pages(store, text, wanted);
  const auto missing = std::ranges::find_if(wanted, [](PageSet pages) { return pages != 0; });
  return static_cast<int32_t>(missing - wanted.begin()) - from;
}

// Where a sequence could go on of whose text these pages are in memory; `wanted` gets what is read.
template <class Where>
Store::Found find_text(const Where& where, const Text& text, std::vector<PageSet> in_memory = {},
                       std::vector<PageSet>* wanted = nullptr) {
  std::vector<PageSet> missing(text.keys.size());
  in_memory.resize(text.keys.size(), 0);
  const auto found = where.find(text.keys, in_memory, missing);
  EXPECT_TRUE(found.has_value());
  if (wanted != nullptr) *wanted = missing;
  return found.value_or(Store::Found());
}

struct OpenStore {
  std::unique_ptr<Files> files;
  StoreFigures figures;
  std::unique_ptr<Store> store;

  explicit OpenStore(const std::string& folder, const StoreLimits& limits = {.bytes_max = 1 << 30},
                     const PageShape& shape = small_pages(),
                     std::unique_ptr<Files> of = local_files())
      : files(std::move(of)) {
    Result<std::unique_ptr<Store>> opened =
        Store::open(folder, "model", shape, limits, *files, figures);
    EXPECT_TRUE(opened) << opened.error().message;
    if (opened) store = std::move(*opened);
  }
  Store* operator->() const { return store.get(); }
  Store& operator*() const { return *store; }
};

}  // namespace weir::kv::disk
