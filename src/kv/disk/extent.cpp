#include "kv/disk/extent.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/crc32c.h"

namespace weir::kv::disk {

namespace {

constexpr uint32_t kMagic = 0x58564b57;  // "WKVX" as it lies in the file.
constexpr uint32_t kVersion = 3;

// Little endian, as the machines are that Weir runs on.
struct RawHead {
  uint32_t magic = kMagic;
  uint32_t version = kVersion;
  uint64_t parent_low = 0, parent_high = 0;
  int32_t first_block = 0;
  int32_t blocks = 0;
  uint64_t payload_bytes = 0;
  uint32_t payload_crc = 0;
  uint32_t unused = 0;
  std::array<PageSet, kExtentBlocksMax> pages{};
  std::array<BlockTokens, kExtentBlocksMax> tokens{};
};
constexpr size_t kCrcAt = kBlockBytes - sizeof(uint32_t);
static_assert(sizeof(RawHead) <= kCrcAt);

tl::unexpected<Error> damaged(const std::string& what) {
  return fail(ErrorCode::kIo, "extent: " + what);
}

}  // namespace

int64_t payload_bytes_max(const PageShape& shape) {
  const int64_t block = shape.bytes_of(shape.all());
  return std::max(block, std::min(block * kExtentBlocksMax, kWriteBytesMax));
}

int64_t extent_bytes_max(const PageShape& shape) {
  return static_cast<int64_t>(kBlockBytes +
                              whole_blocks(static_cast<uint64_t>(payload_bytes_max(shape))));
}

std::array<PrefixKey, kExtentBlocksMax> ExtentHead::keys() const {
  std::array<PrefixKey, kExtentBlocksMax> keys{};
  PrefixKey before = parent;
  for (int32_t i = 0; i < blocks; ++i)
    before = keys[static_cast<size_t>(i)] =
        PrefixCache::child(before, tokens[static_cast<size_t>(i)]);
  return keys;
}

void write_head(const ExtentHead& head, const PageShape& shape, std::span<std::byte> to) {
  CHECK(to.size() == kBlockBytes && head.blocks > 0 && head.blocks <= kExtentBlocksMax);
  RawHead raw;
  raw.parent_low = head.parent.low;
  raw.parent_high = head.parent.high;
  raw.first_block = head.parent.pages;
  raw.blocks = head.blocks;
  raw.payload_bytes = static_cast<uint64_t>(head.payload_bytes(shape));
  raw.payload_crc = head.payload_crc;
  raw.pages = head.pages;
  raw.tokens = head.tokens;
  std::ranges::fill(to, std::byte{0});
  std::memcpy(to.data(), &raw, sizeof raw);
  const uint32_t crc = crc32c(to.first(kCrcAt));
  std::memcpy(to.data() + kCrcAt, &crc, sizeof crc);
}

Result<ExtentHead> read_head(std::span<const std::byte> bytes, const PageShape& shape) {
  CHECK(bytes.size() == kBlockBytes);
  RawHead raw;
  std::memcpy(&raw, bytes.data(), sizeof raw);
  uint32_t crc = 0;
  std::memcpy(&crc, bytes.data() + kCrcAt, sizeof crc);
  if (raw.magic != kMagic || raw.version != kVersion) return damaged("there is none");
  if (crc32c(bytes.first(kCrcAt)) != crc) return damaged("the checksum of its head is wrong");
  if (raw.blocks < 1 || raw.blocks > kExtentBlocksMax || raw.first_block < 0 ||
      raw.first_block > kChainBlocksMax - raw.blocks)
    return damaged("expected 1 to 8 blocks of a chain, found " + std::to_string(raw.blocks) +
                   " from " + std::to_string(raw.first_block) + " on");
  ExtentHead head{
      .parent = {.low = raw.parent_low, .high = raw.parent_high, .pages = raw.first_block},
      .blocks = raw.blocks,
      .pages = raw.pages,
      .tokens = raw.tokens,
      .payload_crc = raw.payload_crc};
  for (int32_t i = 0; i < kExtentBlocksMax; ++i) {
    const PageSet pages = raw.pages[static_cast<size_t>(i)];
    if (i < head.blocks ? pages == 0 || pages >> shape.groups != 0 : pages != 0)
      return damaged("its blocks have pages of groups that the model lacks, or none");
  }
  if (head.payload_bytes(shape) > payload_bytes_max(shape))
    return damaged("expected a payload of " + std::to_string(payload_bytes_max(shape)) +
                   " bytes at most, found " + std::to_string(head.payload_bytes(shape)));
  if (raw.payload_bytes != static_cast<uint64_t>(head.payload_bytes(shape)))
    return damaged("expected a payload of " + std::to_string(head.payload_bytes(shape)) +
                   " bytes, found " + std::to_string(raw.payload_bytes));
  return head;
}

bool holds(const ExtentHead& head, std::span<const std::byte> payload) {
  return crc32c(payload) == head.payload_crc;
}

}  // namespace weir::kv::disk
