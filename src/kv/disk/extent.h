// Extent: up to eight blocks of a chain of the prefix cache as they lie on disk, one after another.
//
//   head      4 KiB: whose blocks these are (the key of what comes before them, and their tokens),
//             and checksums of itself and of the payload
//   payload   of each block its page of each group that it has one of, as it lies in memory; a block
//             whose page of the spine lies elsewhere has only others
//   padding   to the next 4 KiB
//
// A head is read as bytes from outside: whatever they are, they give blocks whose pages lie within
// the payload, or an error.
//
// Threads: values, and pure functions.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/result.h"
#include "kv/block.h"
#include "kv/disk/page_shape.h"
#include "kv/prefix_cache.h"

namespace weir::kv::disk {

// What files are read and written in: offsets and lengths are multiples of it (O_DIRECT).
inline constexpr uint64_t kBlockBytes = 4096;
// 256 tokens: a read is long enough for a disk's full speed (23 KiB a token of a small model make
// 6 MB), and little is lost where texts part within one.
inline constexpr int32_t kExtentBlocksMax = 8;
// Blocks of a chain: 2 million tokens.
inline constexpr int32_t kChainBlocksMax = 1 << 16;
// Of one page, in all layers of its group.
inline constexpr int64_t kPageBytesMax = int64_t{1} << 30;

constexpr uint64_t whole_blocks(uint64_t bytes) {
  return (bytes + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
}

// What is copied into a buffer at once, unless one block alone has more: two thirds of a millisecond
// on one core for each MiB would be too much at 256 MiB, and is little at 16.
inline constexpr int64_t kWriteBytesMax = int64_t{16} << 20;

// The most bytes of an extent's pages.
int64_t payload_bytes_max(const PageShape& shape);
// The most that an extent takes on disk, and of the memory that it is read into.
int64_t extent_bytes_max(const PageShape& shape);

struct ExtentHead {
  PrefixKey parent;                               // Its `pages` is the number of the first block.
  int32_t blocks = 0;                             // At least one.
  std::array<PageSet, kExtentBlocksMax> pages{};  // Of each block; never none.
  std::array<BlockTokens, kExtentBlocksMax> tokens{};
  uint32_t payload_crc = 0;

  int64_t payload_bytes(const PageShape& shape) const {
    int64_t bytes = 0;
    for (int32_t i = 0; i < blocks; ++i) bytes += shape.bytes_of(pages[static_cast<size_t>(i)]);
    return bytes;
  }
  // On disk, with its padding.
  uint64_t bytes(const PageShape& shape) const {
    return kBlockBytes + whole_blocks(static_cast<uint64_t>(payload_bytes(shape)));
  }
  // Of each block.
  std::array<PrefixKey, kExtentBlocksMax> keys() const;

  bool operator==(const ExtentHead&) const = default;
};

// REQUIRES: at least one block. `to` has kBlockBytes.
void write_head(const ExtentHead& head, const PageShape& shape, std::span<std::byte> to);
// REQUIRES: `bytes` has kBlockBytes.
Result<ExtentHead> read_head(std::span<const std::byte> bytes, const PageShape& shape);

// The payload is what the head says.
bool holds(const ExtentHead& head, std::span<const std::byte> payload);

}  // namespace weir::kv::disk
