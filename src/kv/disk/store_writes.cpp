// Store: how it writes, and how it makes room.
#include <algorithm>
#include <cmath>
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
// However little space there is, it has so many segments, so that what goes is a part of it.
constexpr int64_t kSegmentsLeast = 4;
// What was used at least once since it was written, decayed, is worth a copy.
constexpr double kSurvivorValue = 1.0;

// An extent of blocks [first, end) of another, with these of their pages.
ExtentHead part_of(const ExtentHead& head, std::span<const PrefixKey> keys,
                   std::span<const PageSet> pages, int32_t first, int32_t end) {
  ExtentHead part;
  part.parent = first == 0 ? head.parent : keys[static_cast<size_t>(first) - 1];
  part.blocks = end - first;
  for (int32_t i = first; i < end; ++i) {
    const auto from = static_cast<size_t>(i), to = static_cast<size_t>(i - first);
    part.pages[to] = pages[from];
    part.tokens[to] = head.tokens[from];
  }
  return part;
}

// The payload of a part that begins with block `first`, out of that of the whole.
void copy_payload(const ExtentHead& head, std::span<const std::byte> payload, const ExtentHead& part,
                  int32_t first, const PageShape& shape, std::span<std::byte> to) {
  size_t from = 0, at = 0;
  for (int32_t i = 0; i < first + part.blocks; ++i) {
    const PageSet wanted = i < first ? PageSet{0} : part.pages[static_cast<size_t>(i - first)];
    for (int32_t g = 0; g < shape.groups; ++g) {
      if (!has_page(head.pages[static_cast<size_t>(i)], g)) continue;
      const auto bytes = static_cast<size_t>(shape.page_bytes[static_cast<size_t>(g)]);
      if (has_page(wanted, g)) {
        std::ranges::copy(payload.subspan(from, bytes), to.subspan(at).begin());
        at += bytes;
      }
      from += bytes;
    }
  }
}

}  // namespace

// Blocks one after another of which anything is missing make an extent; a gap parts two.
Result<bool> Store::append(const ExtentHead& head, std::span<std::byte> bytes) {
  CHECK(bytes.size() >= head.bytes(shape_));
  const std::array<PrefixKey, kExtentBlocksMax> keys = head.keys();
  std::array<PageSet, kExtentBlocksMax> missing{};
  {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < static_cast<size_t>(head.blocks); ++i) {
      if (!has_page(head.pages[i], 0) && !index_.contains(keys[i])) continue;  // Of no use.
      missing[i] = static_cast<PageSet>(head.pages[i] & ~known_pages(keys[i]));
    }
  }
  for (int32_t first = 0; first < head.blocks;) {
    int32_t end = first;
    while (end < head.blocks && missing[static_cast<size_t>(end)] != 0) ++end;
    if (end > first) {
      const ExtentHead part = part_of(head, keys, missing, first, end);
      WEIR_ASSIGN(const bool room, append_part(head, bytes, part, first));
      if (!room) return false;
    }
    first = end + 1;
  }
  return true;
}

// What is the whole is written from where it lies. A segment may begin for it. Children may be
// written before their parents; but one whose parent goes to make room for it would not be found.
Result<bool> Store::append_part(const ExtentHead& head, std::span<std::byte> bytes, ExtentHead part,
                                int32_t first) {
  const bool followed = follows_known(part);
  WEIR_ASSIGN(const bool room,
              make_room(static_cast<int64_t>(kSegmentBegin + part.bytes(shape_))));
  if (!room || (followed && !follows_known(part))) return false;
  const auto payload = static_cast<size_t>(part.payload_bytes(shape_));
  if (!(part == head)) {
    const std::span<std::byte> copy(copy_buffer_.data(), copy_buffer_.bytes());
    CHECK(part.bytes(shape_) <= copy.size());
    copy_payload(head, bytes.subspan(kBlockBytes), part, first, shape_, copy.subspan(kBlockBytes));
    bytes = copy;
  }
  std::byte* const begin = bytes.data() + kBlockBytes;
  std::fill(begin + payload, bytes.data() + part.bytes(shape_), std::byte{0});
  part.payload_crc = crc32c({begin, payload});
  WEIR_TRY(write_extent(part, bytes, /*uses=*/1));
  return true;
}

// What comes before it is there, and the pages of the spine of its blocks that it has not itself.
bool Store::follows_known(const ExtentHead& head) const {
  const std::array<PrefixKey, kExtentBlocksMax> keys = head.keys();
  const std::lock_guard lock(mutex_);
  if (head.parent.pages > 0 && !index_.contains(head.parent)) return false;
  for (size_t i = 0; i < static_cast<size_t>(head.blocks); ++i)
    if (!has_page(head.pages[i], 0) && !index_.contains(keys[i])) return false;
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
    const bool fits = number && (offset == kSegmentBegin || offset + length <= segment_bytes());
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

uint64_t Store::segment_bytes() const {
  return std::min(limits_.segment_bytes, static_cast<uint64_t>(bytes_max() / kSegmentsLeast));
}

// What can never fit takes nothing away.
Result<bool> Store::make_room(int64_t bytes) {
  if (bytes > bytes_max()) return false;
  WEIR_ASSIGN(int64_t free, files_.free_bytes(folder_));
  while (bytes_ + bytes > bytes_max() || free - bytes < limits_.free_bytes_min ||
         places_.load(std::memory_order_relaxed) + kExtentBlocksMax > kStoredBlocksMax) {
    WEIR_ASSIGN(bool progress, evict());
    if (!progress && bytes_ + bytes > bytes_max()) {
      WEIR_ASSIGN(progress, end_growing());
    }
    if (!progress) return false;
    WEIR_ASSIGN(free, files_.free_bytes(folder_));
  }
  return true;
}

// The segment that grows may go as others do: it is all there is, since others share the space.
// False: none grows.
Result<bool> Store::end_growing() {
  {
    const std::lock_guard lock(mutex_);
    if (segments_.empty() || !segments_.rbegin()->second.grows) return false;
  }
  WEIR_TRY(end_segment());
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
// the only one. All are about as long, so how often their pages' bytes are used is what they are
// worth; a block without bytes counts as one.
std::optional<uint32_t> Store::least_used() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::pair<double, uint32_t>> candidates;
  for (const auto& [number, segment] : segments_) {
    if (segment.grows || segment.readers > 0) continue;
    double worth = 0;
    for (const ExtentId id : segment.extents)
      worth += static_cast<double>(extents_[id].is.payload_bytes(shape_) + extents_[id].is.blocks) *
               value(extents_[id]);
    candidates.emplace_back(worth, number);
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
      leave_index(id);
    }
    WEIR_TRY(write_extent(*head, bytes, known.uses));
  }
  return {};
}

}  // namespace weir::kv::disk
