// Store: how it writes, and how it makes room.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "kv/disk/store.h"

namespace weir::kv::disk {

namespace {

// Of a segment that goes, what may be copied on: each byte that is kept is written once more, so a
// quarter makes a third more writes at the most.
constexpr int64_t kSurvivorShare = 4;
// What was used at least once since it was written, decayed, is worth a copy.
constexpr double kSurvivorValue = 1.0;

}  // namespace

Result<bool> Store::append(ExtentHead head, std::span<std::byte> bytes) {
  CHECK(bytes.size() >= head.bytes(shape_));
  const std::array<PrefixKey, kExtentBlocksMax> keys = head.keys();
  int32_t first = 0, end = 0;
  size_t skipped = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto there = [&](int32_t i) { return index_.contains(keys[static_cast<size_t>(i)]); };
    for (; first < head.blocks && there(first); ++first)
      skipped += static_cast<size_t>(shape_.bytes_of(head.pages[static_cast<size_t>(first)]));
    for (end = first; end < head.blocks && !there(end);) ++end;
  }
  if (first == end) return true;
  if (first > 0) head.parent = keys[static_cast<size_t>(first) - 1];
  std::shift_left(head.pages.begin(), head.pages.end(), first);
  std::shift_left(head.tokens.begin(), head.tokens.end(), first);
  head.blocks = end - first;
  std::fill(head.pages.begin() + head.blocks, head.pages.end(), uint8_t{0});
  std::fill(head.tokens.begin() + head.blocks, head.tokens.end(), BlockTokens{});

  const auto payload = static_cast<size_t>(head.payload_bytes(shape_));
  std::byte* const begin = bytes.data() + kBlockBytes;
  if (skipped > 0) std::memmove(begin, begin + skipped, payload);
  const size_t whole = head.bytes(shape_) - kBlockBytes;
  std::fill(begin + payload, begin + whole, std::byte{0});
  head.payload_crc = crc32c({begin, payload});
  WEIR_ASSIGN(const bool room, make_room(static_cast<int64_t>(head.bytes(shape_))));
  if (!room) return false;
  WEIR_TRY(write_extent(head, bytes, /*uses=*/1));
  return true;
}

Result<void> Store::write_extent(const ExtentHead& head, std::span<std::byte> bytes, double uses) {
  const uint64_t length = head.bytes(shape_);
  write_head(head, shape_, bytes.first(kBlockBytes));
  std::optional<uint32_t> number;
  std::shared_ptr<File> file;
  uint64_t offset = 0;
  for (int32_t tries = 0; tries < 2; ++tries) {
    {
      const std::lock_guard lock(mutex_);
      if (!segments_.empty() && segments_.rbegin()->second.grows) {
        number = segments_.rbegin()->first;
        file = segments_.rbegin()->second.file;
        offset = segments_.rbegin()->second.end;
      }
    }
    const bool fits = number && (offset == kSegmentBegin || offset + length <= limits_.segment_bytes);
    if (fits) break;
    if (number) WEIR_TRY(end_segment());
    number.reset();
    WEIR_TRY(begin_segment());
  }
  CHECK(number.has_value());
  WEIR_TRY(file->write(offset, bytes.first(length)));
  figures_.written_bytes.add(length);
  const std::lock_guard lock(mutex_);
  written_ += static_cast<int64_t>(length);
  bytes_ += static_cast<int64_t>(length);
  segments_[*number].end = offset + length;
  touch(add(stored(head, offset), *number, uses, written_), 0);
  return {};
}

Result<void> Store::begin_segment() {
  uint32_t number = 1;
  {
    const std::lock_guard lock(mutex_);
    if (!segments_.empty()) number = segments_.rbegin()->first + 1;
  }
  WEIR_ASSIGN(std::shared_ptr<File> file, files_.open(path_of(number, ".kv"), /*create=*/true));
  WEIR_TRY(write_segment_head(*file, identity_, shape_));
  const std::lock_guard lock(mutex_);
  segments_[number] = {.file = std::move(file), .end = kSegmentBegin, .extents = {}, .grows = true};
  bytes_ += static_cast<int64_t>(kSegmentBegin);
  return {};
}

// All of it is on the disk before its sidecar says so. What is not live any more is in the sidecar
// all the same: the segment has it.
Result<void> Store::end_segment() {
  uint32_t number = 0;
  std::shared_ptr<File> file;
  {
    const std::lock_guard lock(mutex_);
    number = segments_.rbegin()->first;
    file = segments_.rbegin()->second.file;
    segments_.rbegin()->second.grows = false;
  }
  WEIR_TRY(file->sync());
  const Result<SegmentContents> contents = scan_segment(*file, identity_, shape_);
  if (!contents) return {};  // It was damaged since; a start will see the same.
  return files_.write_whole(path_of(number, ".idx"), write_sidecar(*contents));
}

int64_t Store::bytes_max() const {
  const int32_t sharers = limits_.sharers == nullptr ? 1 : limits_.sharers->load();
  return limits_.bytes_max / std::max(sharers, 1);
}

Result<bool> Store::make_room(int64_t bytes) {
  WEIR_ASSIGN(int64_t free, files_.free_bytes(folder_));
  while (bytes_ + bytes > bytes_max() || free - bytes < limits_.free_bytes_min ||
         blocks() + kExtentBlocksMax > kStoredBlocksMax) {
    WEIR_ASSIGN(const bool evicted, evict());
    if (!evicted) return false;
    WEIR_ASSIGN(free, files_.free_bytes(folder_));
  }
  return true;
}

// False: no segment can go.
Result<bool> Store::evict() {
  const std::optional<uint32_t> victim = least_used();
  if (!victim) return false;
  WEIR_TRY(copy_on(*victim));
  {
    const std::lock_guard lock(mutex_);
    Segment& segment = segments_[*victim];
    if (segment.readers > 0) return false;  // Since then: it goes when there is a next time.
    while (!segment.extents.empty()) remove(segment.extents.back());
    bytes_ -= static_cast<int64_t>(segment.end);
    segments_.erase(*victim);
  }
  WEIR_TRY(files_.remove(path_of(*victim, ".idx")));
  WEIR_TRY(files_.remove(path_of(*victim, ".kv")));
  return true;
}

// Of those that grow no more and are not being read; but for the one written last, unless it is
// the only one.
std::optional<uint32_t> Store::least_used() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<double, uint32_t>> candidates;
  for (const auto& [number, segment] : segments_) {
    if (segment.grows || segment.readers > 0) continue;
    double tokens = 0;
    for (const ExtentId id : segment.extents)
      tokens += extents_[id].is.blocks * value(extents_[id]);
    candidates.emplace_back(tokens, number);
  }
  if (candidates.size() > 1) candidates.pop_back();
  if (candidates.empty()) return std::nullopt;
  return std::ranges::min(candidates).second;
}

// What has been used again, the most used first; a parent, which is used whenever its child is,
// before its child.
std::vector<Store::ExtentId> Store::survivors(const Segment& segment) const {
  std::vector<ExtentId> kept;
  for (const ExtentId id : segment.extents)
    if (value(extents_[id]) > kSurvivorValue) kept.push_back(id);
  std::ranges::sort(kept, [this](ExtentId a, ExtentId b) {
    return std::tuple(-value(extents_[a]), extents_[a].is.parent.pages) <
           std::tuple(-value(extents_[b]), extents_[b].is.parent.pages);
  });
  int64_t left = static_cast<int64_t>(segment.end) / kSurvivorShare;
  const auto end = std::ranges::find_if(kept, [&](ExtentId id) {
    left -= static_cast<int64_t>(extents_[id].is.bytes(shape_));
    return left < 0;
  });
  kept.erase(end, kept.end());
  return kept;
}

// The index follows: a block that is copied is found in its new place, and what follows it stays.
Result<void> Store::copy_on(uint32_t victim) {
  std::vector<std::pair<ExtentId, Known>> kept;
  std::shared_ptr<File> file;
  {
    const std::lock_guard lock(mutex_);
    file = segments_[victim].file;
    for (const ExtentId id : survivors(segments_[victim])) kept.emplace_back(id, extents_[id]);
  }
  for (const auto& [id, known] : kept) {
    const std::span<std::byte> bytes(copy_buffer_.data(), known.is.bytes(shape_));
    WEIR_TRY(file->read(known.is.offset, bytes));
    const Result<ExtentHead> head = read_head(bytes.first(kBlockBytes), shape_);
    const bool right =
        head && stored(*head, known.is.offset) == known.is &&
        holds(*head, bytes.subspan(kBlockBytes, static_cast<size_t>(head->payload_bytes(shape_))));
    {
      const std::lock_guard lock(mutex_);
      if (!extents_[id].live || !(extents_[id].is == known.is)) continue;
      if (!right) {
        figures_.corrupt_extents.add();
        remove(id);
        continue;
      }
      // Its blocks leave the index, so that they can enter it in their new place.
      for (int32_t i = 0; i < known.is.blocks; ++i) {
        const auto place = index_.find(known.is.keys[static_cast<size_t>(i)]);
        if (place != index_.end() && place->second.extent == id) index_.erase(place);
      }
    }
    WEIR_TRY(write_extent(*head, bytes, known.uses));
  }
  return {};
}

}  // namespace weir::kv::disk
