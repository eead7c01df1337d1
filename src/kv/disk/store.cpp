// Store: what it knows, and how it reads. How it writes and makes room is in store_writes.cpp.
#include "kv/disk/store.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>
#include <utility>

#include "base/check.h"
#include "kv/hash128.h"

namespace weir::kv::disk {

namespace {

constexpr size_t kSecretBytes = 8;

// "000123.kv": 123; nullopt: another file.
std::optional<uint32_t> segment_number(std::string_view name) {
  constexpr std::string_view kEnd = ".kv";
  if (!name.ends_with(kEnd)) return std::nullopt;
  name.remove_suffix(kEnd.size());
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (name.size() < 6 || error != std::errc{} || end != name.data() + name.size())
    return std::nullopt;
  return number;
}

uint64_t random_number() {
  std::random_device device;
  return uint64_t{device()} << 32 | device();
}

}  // namespace

Store::Store(std::string folder, std::string identity, const PageShape& shape,
             const StoreLimits& limits, Files& files, StoreFigures& figures)
    : folder_(std::move(folder)),
      identity_(std::move(identity)),
      shape_(shape),
      limits_(limits),
      files_(files),
      figures_(figures) {}

Result<std::unique_ptr<Store>> Store::open(std::string folder, std::string identity,
                                           const PageShape& shape, const StoreLimits& limits,
                                           Files& files, StoreFigures& figures) {
  for (const int64_t bytes : shape.page_bytes) CHECK(bytes >= 0 && bytes <= kPageBytesMax);
  std::unique_ptr<Store> store(
      new Store(std::move(folder), std::move(identity), shape, limits, files, figures));
  const int64_t page = shape.bytes_of(static_cast<uint8_t>((1 << shape.groups) - 1));
  const size_t extent = kBlockBytes + whole_blocks(static_cast<uint64_t>(page * kExtentBlocksMax));
  WEIR_ASSIGN(store->read_buffer_, HugeBuffer::allocate(extent));
  WEIR_ASSIGN(store->copy_buffer_, HugeBuffer::allocate(extent));
  WEIR_TRY(store->read_secret());
  WEIR_TRY(store->read_segments());
  WEIR_TRY(store->make_room(0));
  return store;
}

std::string Store::path_of(uint32_t number, const char* end) const {
  std::string digits = std::to_string(number);
  digits.insert(0, std::max<size_t>(digits.size(), 6) - digits.size(), '0');
  return folder_ + "/" + digits + end;
}

// Without it nothing that lies here can be found: it goes as other unused blocks do.
Result<void> Store::read_secret() {
  const std::string path = folder_ + "/secret";
  if (const Result<std::string> text = files_.read_whole(path, kSecretBytes);
      text && text->size() == kSecretBytes) {
    secret_ = hash128(*text)[0];
    return {};
  }
  const uint64_t number = random_number();
  const std::string text(reinterpret_cast<const char*>(&number), sizeof number);
  WEIR_TRY(files_.write_whole(path, text));
  secret_ = hash128(text)[0];
  return {};
}

Result<void> Store::read_segments() {
  WEIR_ASSIGN(const std::vector<Files::Entry> entries, files_.list(folder_));
  std::vector<std::pair<uint32_t, uint64_t>> found;
  for (const Files::Entry& entry : entries)
    if (const auto number = segment_number(entry.name)) found.emplace_back(*number, entry.bytes);
  std::ranges::sort(found);
  for (const auto& [number, bytes] : found)
    WEIR_TRY(read_segment(number, bytes, number == found.back().first));
  return {};
}

// The last one goes on growing, if it had not ended.
Result<void> Store::read_segment(uint32_t number, uint64_t bytes, bool last) {
  const std::string path = path_of(number, ".kv");
  WEIR_ASSIGN(std::shared_ptr<File> file, files_.open(path, /*create=*/false));
  const Result<std::string> sidecar = files_.read_whole(path_of(number, ".idx"), kSidecarBytesMax);
  Result<SegmentContents> contents =
      sidecar ? read_sidecar(*sidecar, bytes, shape_) : tl::unexpected(sidecar.error());
  const bool grows = !contents && last;
  if (!contents) {
    contents = scan_segment(*file, identity_, shape_);
    if (!contents) return files_.remove(path);
    if (contents->end < bytes) WEIR_TRY(file->truncate(contents->end));
    WEIR_TRY(files_.remove(path_of(number, ".idx")));
  }
  const std::lock_guard lock(mutex_);
  segments_[number] = {.file = std::move(file), .end = contents->end, .extents = {}, .grows = grows};
  bytes_ += static_cast<int64_t>(contents->end);
  for (const StoredExtent& extent : contents->extents)
    if (std::ssize(index_) + extent.blocks <= kStoredBlocksMax)
      (void)add(extent, number, /*uses=*/1, written_);
  return {};
}

// --- Under the mutex.

// A block that is there already stays where it is.
Store::ExtentId Store::add(const StoredExtent& extent, uint32_t segment, double uses,
                           int64_t used) {
  ExtentId id = static_cast<ExtentId>(extents_.size());
  if (free_.empty()) {
    extents_.emplace_back();
  } else {
    id = free_.back();
    free_.pop_back();
  }
  extents_[id] = {.is = extent, .segment = segment, .live = true, .uses = uses, .used = used};
  segments_[segment].extents.push_back(id);
  children_.emplace(extent.parent, id);
  for (int32_t i = 0; i < extent.blocks; ++i)
    index_.try_emplace(extent.keys[static_cast<size_t>(i)], Place{id, i});
  blocks_.store(static_cast<int32_t>(index_.size()), std::memory_order_relaxed);
  return id;
}

// With all extents that follow it.
void Store::remove(ExtentId first) {
  std::vector<ExtentId> gone{first};
  while (!gone.empty()) {
    const ExtentId id = gone.back();
    gone.pop_back();
    Known& extent = extents_[id];
    if (!extent.live) continue;
    extent.live = false;
    for (auto [it, end] = children_.equal_range(extent.is.parent); it != end; ++it) {
      if (it->second != id) continue;
      children_.erase(it);
      break;
    }
    std::erase(segments_[extent.segment].extents, id);
    for (int32_t i = 0; i < extent.is.blocks; ++i) {
      const PrefixKey& key = extent.is.keys[static_cast<size_t>(i)];
      const auto place = index_.find(key);
      if (place == index_.end() || place->second.extent != id) continue;
      index_.erase(place);
      figures_.evicted_blocks.add();
      for (auto [it, end] = children_.equal_range(key); it != end; ++it) gone.push_back(it->second);
    }
    free_.push_back(id);
  }
  blocks_.store(static_cast<int32_t>(index_.size()), std::memory_order_relaxed);
}

// It is used, or written, and so is all that comes before it.
void Store::touch(ExtentId id, int32_t uses) {
  for (int32_t steps = 0; steps < kChainBlocksMax; ++steps) {
    Known& extent = extents_[id];
    extent.uses = value(extent) + uses;
    extent.used = written_;
    const auto parent = index_.find(extent.is.parent);
    if (parent == index_.end() || parent->second.extent == id) return;
    id = parent->second.extent;
  }
}

// How often it was used, where a use counts half after half of what may lie here was written.
double Store::value(const Known& extent) const {
  const double age = static_cast<double>(written_ - extent.used);
  const double half = std::max(1.0, static_cast<double>(limits_.bytes_max) / 2);
  return extent.uses * std::exp2(-age / half);
}

// --- Any thread.

std::optional<Store::Found> Store::find(std::span<const PrefixKey> keys, int32_t from) const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;
  Found found;
  std::optional<ExtentId> last;
  for (size_t i = static_cast<size_t>(from); i < keys.size(); ++i, ++found.blocks) {
    const auto place = index_.find(keys[i]);
    if (place == index_.end()) break;
    if (last == place->second.extent) continue;
    last = place->second.extent;
    found.bytes += static_cast<int64_t>(extents_[*last].is.bytes(shape_));
  }
  return found;
}

bool Store::contains(const PrefixKey& key) const {
  const std::lock_guard lock(mutex_);
  return index_.contains(key);
}

// --- The reader.

std::optional<Store::Reading> Store::begin_reading(const PrefixKey& key) {
  const std::lock_guard lock(mutex_);
  const auto place = index_.find(key);
  if (place == index_.end()) return std::nullopt;
  const Known& extent = extents_[place->second.extent];
  Segment& segment = segments_[extent.segment];
  ++segment.readers;
  return Reading{extent.is, place->second.extent, extent.segment, segment.file};
}

void Store::end_reading(const Reading& reading, bool right) {
  const std::lock_guard lock(mutex_);
  // A segment that is read stays, and so do its extents, unless they were found to be damaged.
  --segments_[reading.segment].readers;
  const Known& extent = extents_[reading.id];
  if (!extent.live || !(extent.is == reading.extent)) return;
  if (right) {
    touch(reading.id, 1);
  } else {
    remove(reading.id);
  }
}

// The head in the buffer is what the index says, its payload is whole, and its blocks follow what
// comes before them in the chain. Nullopt: the extent is not right.
std::optional<ExtentHead> Store::verified(const Reading& reading, const ChainView& chain) const {
  const std::span<const std::byte> bytes(read_buffer_.data(), reading.extent.bytes(shape_));
  const Result<ExtentHead> head = read_head(bytes.first(kBlockBytes), shape_);
  if (!head || !(stored(*head, reading.extent.offset) == reading.extent)) return std::nullopt;
  const auto payload = static_cast<size_t>(head->payload_bytes(shape_));
  if (!holds(*head, bytes.subspan(kBlockBytes, payload))) return std::nullopt;
  const int32_t first = head->parent.pages;
  const PrefixKey& before = first == 0 ? chain.salt : chain.keys[static_cast<size_t>(first) - 1];
  if (!(head->parent == before)) return std::nullopt;
  return *head;
}

Result<int32_t> Store::read(const ChainView& chain, int32_t from, int32_t until,
                            const Take& take) {
  CHECK(from >= 0 && until <= std::ssize(chain.keys) && chain.keys.size() == chain.tokens.size());
  int32_t next = from;
  while (next < until) {
    const std::optional<Reading> reading = begin_reading(chain.keys[static_cast<size_t>(next)]);
    if (!reading) break;
    const uint64_t bytes = reading->extent.bytes(shape_);
    const Result<void> read =
        reading->file->read(reading->extent.offset, {read_buffer_.data(), bytes});
    if (!read) {
      end_reading(*reading, /*right=*/false);
      return tl::unexpected(read.error());
    }
    figures_.read_bytes.add(bytes);
    const std::optional<ExtentHead> head = verified(*reading, chain);
    end_reading(*reading, head.has_value());
    if (!head) {
      figures_.corrupt_extents.add();
      break;
    }
    const int32_t before = next;
    const std::byte* page = read_buffer_.data() + kBlockBytes;
    for (int32_t i = 0; i < head->blocks && head->parent.pages + i < until; ++i) {
      const auto at = static_cast<size_t>(i), block = static_cast<size_t>(head->parent.pages + i);
      if (head->tokens[at] != chain.tokens[block]) break;
      const auto page_bytes = static_cast<size_t>(shape_.bytes_of(head->pages[at]));
      if (static_cast<int32_t>(block) == next) {
        take(next, head->pages[at], {page, page_bytes});
        ++next;
      }
      page += page_bytes;
    }
    if (next == before) break;  // Other tokens of the same key.
  }
  return next - from;
}

void Store::check() const {
  const std::lock_guard lock(mutex_);
  size_t listed = 0;
  for (const auto& [number, segment] : segments_) {
    CHECK(segment.readers >= 0);
    for (const ExtentId id : segment.extents) {
      const Known& extent = extents_[id];
      CHECK(extent.live && extent.segment == number);
      CHECK(extent.is.offset + extent.is.bytes(shape_) <= segment.end);
      ++listed;
    }
  }
  CHECK(listed + free_.size() == extents_.size() && children_.size() == listed);
  for (const auto& [key, place] : index_) {
    const Known& extent = extents_[place.extent];
    CHECK(extent.live && extent.is.keys[static_cast<size_t>(place.position)] == key);
    // A parent is used whenever its child is.
    const auto parent = index_.find(extent.is.parent);
    if (parent != index_.end()) CHECK(extents_[parent->second.extent].used >= extent.used);
  }
}

}  // namespace weir::kv::disk
