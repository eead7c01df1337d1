// Segment: a file of extents, one after another, which only grows; and its sidecar, a small file
// that says what is in one that grows no more, so that a start need not read all heads.
//
// Both are read as bytes from outside. A segment ends before the first extent that is not whole:
// what a crash has torn, and all that lies after it, is lost, and nothing else. A sidecar that is
// not right is as good as none.
//
// Threads: pure functions of a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kv/disk/extent.h"
#include "kv/disk/files.h"

namespace weir::kv::disk {

// Where the first extent lies, after the head that says whose segment it is.
inline constexpr uint64_t kSegmentBegin = kBlockBytes;

// An extent as the index knows it: everything but its tokens.
struct StoredExtent {
  uint64_t offset = 0;
  PrefixKey parent;
  int32_t blocks = 0;
  std::array<PageSet, kExtentBlocksMax> pages{};
  std::array<PrefixKey, kExtentBlocksMax> keys{};

  int64_t payload_bytes(const PageShape& shape) const;
  uint64_t bytes(const PageShape& shape) const;
  bool operator==(const StoredExtent&) const = default;
};
StoredExtent stored(const ExtentHead& head, uint64_t offset);

struct SegmentContents {
  std::vector<StoredExtent> extents;  // In the order in which they lie.
  uint64_t end = kSegmentBegin;       // Where the next one begins.
};

// `identity`: of the folder, so that a file of another one is none of ours.
Result<void> write_segment_head(File& file, std::string_view identity, const PageShape& shape);
// Reads head by head. An error: it is no segment of this folder, or cannot be read.
Result<SegmentContents> scan_segment(File& file, std::string_view identity, const PageShape& shape);

// The bytes of a sidecar of a segment.
std::string write_sidecar(const SegmentContents& contents);
// `segment_bytes`: of the segment's file. An error: it says nothing of use.
Result<SegmentContents> read_sidecar(std::string_view bytes, uint64_t segment_bytes,
                                     const PageShape& shape);
// More than the sidecar of any segment has.
inline constexpr size_t kSidecarBytesMax = size_t{64} << 20;

}  // namespace weir::kv::disk
