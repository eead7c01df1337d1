#include "kv/disk/segment.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/huge_pages.h"

namespace weir::kv::disk {

namespace {

constexpr uint32_t kSegmentMagic = 0x53564b57;  // "WKVS" as it lies in the file.
constexpr uint32_t kSidecarMagic = 0x49564b57;  // "WKVI".
constexpr uint32_t kVersion = 2;

constexpr size_t kIdentityMax = 128;

struct RawSegment {
  uint32_t magic = kSegmentMagic;
  uint32_t version = kVersion;
  int32_t groups = 0;
  int32_t page_tokens = kPageTokens;
  std::array<int64_t, kShapeGroupsMax> page_bytes{};
  std::array<char, kIdentityMax> identity{};
};
static_assert(sizeof(RawSegment) <= kBlockBytes);

struct RawSidecar {
  uint32_t magic = kSidecarMagic;
  uint32_t version = kVersion;
  uint64_t segment_end = 0;
  uint32_t extents = 0;
  uint32_t crc = 0;  // Of the extents.
};

struct RawExtent {
  uint64_t offset = 0;
  uint64_t parent_low = 0, parent_high = 0;
  int32_t first_block = 0;
  int32_t blocks = 0;
  std::array<PageSet, kExtentBlocksMax> pages{};
  struct Key {
    uint64_t low = 0, high = 0;
  };
  std::array<Key, kExtentBlocksMax> keys{};
};
static_assert(std::has_unique_object_representations_v<RawExtent>);

// What a disk block takes of memory that O_DIRECT reads into.
Result<HugeBuffer> block_buffer() { return HugeBuffer::allocate(kBlockBytes); }
std::span<std::byte> block_of(const HugeBuffer& buffer) { return {buffer.data(), kBlockBytes}; }

RawSegment raw_segment(std::string_view identity, const PageShape& shape) {
  CHECK(identity.size() <= kIdentityMax);
  RawSegment raw;
  raw.groups = shape.groups;
  raw.page_bytes = shape.page_bytes;
  std::ranges::copy(identity, raw.identity.begin());
  return raw;
}

RawExtent raw_extent(const StoredExtent& extent) {
  RawExtent raw{.offset = extent.offset,
                .parent_low = extent.parent.low,
                .parent_high = extent.parent.high,
                .first_block = extent.parent.pages,
                .blocks = extent.blocks,
                .pages = extent.pages,
                .keys = {}};
  for (size_t i = 0; i < extent.keys.size(); ++i)
    raw.keys[i] = {extent.keys[i].low, extent.keys[i].high};
  return raw;
}

tl::unexpected<Error> useless(const char* what) {
  return fail(ErrorCode::kIo, std::string("sidecar: ") + what);
}

Result<StoredExtent> extent_of(const RawExtent& raw, const PageShape& shape) {
  if (raw.blocks < 1 || raw.blocks > kExtentBlocksMax || raw.first_block < 0 ||
      raw.first_block > kChainBlocksMax - raw.blocks)
    return useless("it names blocks that cannot be");
  StoredExtent extent{
      .offset = raw.offset,
      .parent = {.low = raw.parent_low, .high = raw.parent_high, .pages = raw.first_block},
      .blocks = raw.blocks,
      .pages = raw.pages,
      .keys = {}};
  for (int32_t i = 0; i < extent.blocks; ++i) {
    const auto at = static_cast<size_t>(i);
    if (raw.pages[at] == 0 || raw.pages[at] >> shape.groups != 0)
      return useless("it names pages that cannot be");
    extent.keys[at] = {
        .low = raw.keys[at].low, .high = raw.keys[at].high, .pages = raw.first_block + i + 1};
  }
  if (extent.bytes(shape) > static_cast<uint64_t>(extent_bytes_max(shape)))
    return useless("it names more pages than an extent has");
  return extent;
}

}  // namespace

int64_t StoredExtent::payload_bytes(const PageShape& shape) const {
  int64_t bytes = 0;
  for (int32_t i = 0; i < blocks; ++i) bytes += shape.bytes_of(pages[static_cast<size_t>(i)]);
  return bytes;
}

uint64_t StoredExtent::bytes(const PageShape& shape) const {
  return kBlockBytes + whole_blocks(static_cast<uint64_t>(payload_bytes(shape)));
}

StoredExtent stored(const ExtentHead& head, uint64_t offset) {
  return {.offset = offset,
          .parent = head.parent,
          .blocks = head.blocks,
          .pages = head.pages,
          .keys = head.keys()};
}

Result<void> write_segment_head(File& file, std::string_view identity, const PageShape& shape) {
  WEIR_ASSIGN(const HugeBuffer buffer, block_buffer());
  const RawSegment raw = raw_segment(identity, shape);
  std::memcpy(buffer.data(), &raw, sizeof raw);
  return file.write(0, block_of(buffer));
}

Result<SegmentContents> scan_segment(File& file, std::string_view identity,
                                     const PageShape& shape) {
  WEIR_ASSIGN(const HugeBuffer buffer, block_buffer());
  WEIR_ASSIGN(const uint64_t size, file.size());
  const std::span<std::byte> block = block_of(buffer);
  if (size < kSegmentBegin) return fail(ErrorCode::kIo, "segment: it has no head");
  WEIR_TRY(file.read(0, block));
  const RawSegment expected = raw_segment(identity, shape);
  if (std::memcmp(block.data(), &expected, sizeof expected) != 0)
    return fail(ErrorCode::kIo, "segment: it belongs to another model, format or version");
  SegmentContents contents;
  while (contents.end + kBlockBytes <= size) {
    WEIR_TRY(file.read(contents.end, block));
    const Result<ExtentHead> head = read_head(block, shape);
    if (!head || head->bytes(shape) > size - contents.end) break;
    contents.extents.push_back(stored(*head, contents.end));
    contents.end += head->bytes(shape);
  }
  return contents;
}

std::string write_sidecar(const SegmentContents& contents) {
  std::vector<RawExtent> extents;
  extents.reserve(contents.extents.size());
  for (const StoredExtent& extent : contents.extents) extents.push_back(raw_extent(extent));
  RawSidecar raw;
  raw.segment_end = contents.end;
  raw.extents = static_cast<uint32_t>(extents.size());
  raw.crc = crc32c(std::as_bytes(std::span(extents)));
  std::string bytes(sizeof raw + extents.size() * sizeof(RawExtent), '\0');
  std::memcpy(bytes.data(), &raw, sizeof raw);
  if (!extents.empty())
    std::memcpy(bytes.data() + sizeof raw, extents.data(), extents.size() * sizeof(RawExtent));
  return bytes;
}

Result<SegmentContents> read_sidecar(std::string_view bytes, uint64_t segment_bytes,
                                     const PageShape& shape) {
  RawSidecar raw;
  if (bytes.size() < sizeof raw) return useless("it is too short");
  std::memcpy(&raw, bytes.data(), sizeof raw);
  bytes.remove_prefix(sizeof raw);
  if (raw.magic != kSidecarMagic || raw.version != kVersion) return useless("it is none");
  if (bytes.size() != raw.extents * sizeof(RawExtent)) return useless("its length is wrong");
  if (crc32c(std::as_bytes(std::span(bytes))) != raw.crc)
    return useless("its checksum is wrong");
  if (raw.segment_end > segment_bytes) return useless("its segment is shorter");
  SegmentContents contents;
  contents.extents.reserve(raw.extents);
  for (; !bytes.empty(); bytes.remove_prefix(sizeof(RawExtent))) {
    RawExtent each;
    std::memcpy(&each, bytes.data(), sizeof each);
    WEIR_ASSIGN(StoredExtent extent, extent_of(each, shape));
    if (extent.offset != contents.end ||
        extent.bytes(shape) > raw.segment_end - std::min(raw.segment_end, extent.offset))
      return useless("its extents do not lie one after another");
    contents.end += extent.bytes(shape);
    contents.extents.push_back(std::move(extent));
  }
  if (contents.end != raw.segment_end) return useless("its extents are not all of the segment");
  return contents;
}

}  // namespace weir::kv::disk
