#include "kv/disk/segment.h"

#include <gtest/gtest.h>

#include "kv/disk/disk_world.h"

namespace weir::kv::disk {
namespace {

ExtentHead some_head(int32_t blocks) {
  const Text text(5, made_up_blocks(1, 20));
  ExtentHead head;
  head.parent = text.keys[3];
  head.blocks = blocks;
  for (int32_t i = 0; i < blocks; ++i) {
    head.pages[static_cast<size_t>(i)] = 1;
    head.tokens[static_cast<size_t>(i)] = text.tokens[static_cast<size_t>(4 + i)];
  }
  return head;
}

TEST(DiskExtent, AHeadIsReadAsItWasWritten) {
  const PageShape shape = small_pages();
  std::vector<std::byte> bytes(kBlockBytes);
  const ExtentHead head = some_head(5);
  write_head(head, shape, bytes);
  EXPECT_EQ(read_head(bytes, shape).value(), head);
  EXPECT_EQ(head.keys()[4], Text(5, made_up_blocks(1, 20)).keys[8]);
  EXPECT_EQ(head.bytes(shape), kBlockBytes + 2 * kBlockBytes);
  EXPECT_FALSE(read_head(bytes, {.page_bytes = {2048}, .groups = 1}));
}

TEST(DiskExtent, NoFlippedBitOfAHeadIsOverlooked) {
  const PageShape shape = small_pages();
  std::vector<std::byte> bytes(kBlockBytes);
  write_head(some_head(8), shape, bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; bit += 7) {
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
    EXPECT_FALSE(read_head(bytes, shape)) << bit;
    bytes[bit / 8] ^= std::byte(1 << bit % 8);
  }
}

TEST(DiskSidecar, IsReadAsItWasWrittenOrNotAtAll) {
  const PageShape shape = small_pages();
  SegmentContents contents;
  for (const int32_t blocks : {8, 3, 1}) {
    contents.extents.push_back(stored(some_head(blocks), contents.end));
    contents.end += contents.extents.back().bytes(shape);
  }
  const std::string bytes = write_sidecar(contents);
  const auto read = read_sidecar(bytes, contents.end, shape);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->extents, contents.extents);
  EXPECT_FALSE(read_sidecar(bytes, contents.end - kBlockBytes, shape)) << "the segment is shorter";
  for (size_t length = 0; length < bytes.size(); length += 13)
    EXPECT_FALSE(read_sidecar(bytes.substr(0, length), contents.end, shape));
  for (size_t bit = 0; bit < bytes.size() * 8; bit += 5) {
    std::string flipped = bytes;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << bit % 8));
    const auto other = read_sidecar(flipped, contents.end, shape);
    EXPECT_TRUE(!other || other->extents == contents.extents) << bit;
  }
}

}  // namespace
}  // namespace weir::kv::disk
