// What tests of the cache on disk have in common: a folder that goes with the test, texts, and
// pages whose bytes follow from the text alone.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
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

// What the page of a block holds.
inline std::vector<std::byte> page_of(const PrefixKey& key, int64_t bytes) {
  std::mt19937_64 random(key.low ^ key.high);
  std::vector<std::byte> page(static_cast<size_t>(bytes));
  for (size_t i = 0; i + 8 <= page.size(); i += 8) {
    const uint64_t number = random();
    std::memcpy(page.data() + i, &number, sizeof number);
  }
  return page;
}

// Writes blocks [from, until) of the text, an extent for each eight.
inline Result<bool> write_text(Store& store, const Text& text, int32_t from, int32_t until,
                               const PageShape& shape = small_pages()) {
  auto buffer = HugeBuffer::allocate(1 << 20);
  if (!buffer) return tl::unexpected(buffer.error());
  for (int32_t first = from; first < until;) {
    const int32_t end = std::min(until, (first / kExtentBlocksMax + 1) * kExtentBlocksMax);
    ExtentHead head;
    head.parent = first == 0 ? text.salt : text.keys[static_cast<size_t>(first) - 1];
    head.blocks = end - first;
    std::byte* to = buffer->data() + kBlockBytes;
    for (int32_t i = 0; i < head.blocks; ++i) {
      const auto block = static_cast<size_t>(first + i);
      head.pages[static_cast<size_t>(i)] = 1;
      head.tokens[static_cast<size_t>(i)] = text.tokens[block];
      const std::vector<std::byte> page = page_of(text.keys[block], shape.page_bytes[0]);
      to = std::ranges::copy(page, to).out;
    }
    WEIR_ASSIGN(const bool done, store.append(head, {buffer->data(), buffer->bytes()}));
    if (!done) return false;
    first = end;
  }
  return true;
}

// How many blocks of the text are read from `from` on. Each is as it was written, or the test fails.
inline int32_t read_text(Store& store, const Text& text, int32_t from = 0) {
  int32_t next = from;
  const Result<int32_t> read = store.read(
      text.view(), from, text.blocks(),
      [&](int32_t block, uint8_t pages, std::span<const std::byte> bytes) {
        EXPECT_EQ(block, next++);
        EXPECT_EQ(pages, 1);
        const std::vector<std::byte> page = page_of(text.keys[static_cast<size_t>(block)],
                                                    static_cast<int64_t>(bytes.size()));
        EXPECT_TRUE(std::ranges::equal(bytes, page)) << "block " << block;
      });
  EXPECT_TRUE(!read || *read == next - from);
  return read.value_or(0);
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
