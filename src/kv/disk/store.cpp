// Store: what it knows, and how it reads. How it writes and makes room is in store_writes.cpp.
#include "kv/disk/store.h"

#include <algorithm>
#include <bit>
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
  const auto extent = static_cast<size_t>(extent_bytes_max(shape));
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
    if (static_cast<int32_t>(places()) + extent.blocks <= kStoredBlocksMax)
      (void)add(extent, number, /*uses=*/1, written_);
  return {};
}

// --- Under the mutex.

// A page that is there already stays where it is.
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
  for (int32_t i = 0; i < extent.blocks; ++i) {
    const PrefixKey& key = extent.keys[static_cast<size_t>(i)];
    const PageSet pages = extent.pages[static_cast<size_t>(i)];
    if (has_page(pages, 0) && index_.try_emplace(key, Place{id, i}).second) continue;
    if ((pages & ~known_pages(key)) != 0) sides_.emplace(key, Place{id, i});
  }
  count_places();
  return id;
}

void Store::count_places() {
  blocks_.store(static_cast<int32_t>(index_.size()), std::memory_order_relaxed);
  places_.store(static_cast<int32_t>(places()), std::memory_order_relaxed);
}

const Store::Place* Store::place_of(const PrefixKey& key, int32_t group) const {
  if (const auto place = index_.find(key);
      place != index_.end() && has_page(pages_at(place->second), group))
    return &place->second;
  if (group == 0) return nullptr;
  for (auto [it, end] = sides_.equal_range(key); it != end; ++it)
    if (has_page(pages_at(it->second), group)) return &it->second;
  return nullptr;
}

PageSet Store::known_pages(const PrefixKey& key) const {
  PageSet pages = 0;
  if (const auto place = index_.find(key); place != index_.end()) pages = pages_at(place->second);
  for (auto [it, end] = sides_.equal_range(key); it != end; ++it)
    pages |= static_cast<PageSet>(pages_at(it->second) & ~page_bit(0));
  return pages;
}

// The places that its blocks have in the index.
void Store::leave_index(ExtentId id) {
  const StoredExtent& extent = extents_[id].is;
  for (int32_t i = 0; i < extent.blocks; ++i) {
    const PrefixKey& key = extent.keys[static_cast<size_t>(i)];
    if (const auto place = index_.find(key); place != index_.end() && place->second.extent == id)
      index_.erase(place);
    for (auto [it, end] = sides_.equal_range(key); it != end; ++it) {
      if (it->second.extent != id) continue;
      sides_.erase(it);
      break;
    }
  }
  count_places();
}

// With all extents that follow it, and what other extents have of its blocks.
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
      figures_.evicted_blocks.add();
      for (auto [it, end] = children_.equal_range(key); it != end; ++it) gone.push_back(it->second);
      for (auto [it, end] = sides_.equal_range(key); it != end; ++it)
        gone.push_back(it->second.extent);
    }
    leave_index(id);
    free_.push_back(id);
  }
}

// It is used, or written, and so is all that comes before it: at each step the blocks of an extent,
// wherever their pages of the spine lie, then the extent that has the block before them. Blocks that
// follow each other lie in the same extent, which is used once for all of them.
void Store::touch(ExtentId id, int32_t uses) {
  std::optional<ExtentId> last;
  const auto use = [&](ExtentId used) {
    if (used == last) return;
    last = used;
    Known& extent = extents_[used];
    extent.uses = value(extent) + uses;
    extent.used = written_;
  };
  for (int32_t steps = 0; steps < kChainBlocksMax; ++steps) {
    const Known& extent = extents_[id];
    use(id);
    for (int32_t i = 0; i < extent.is.blocks; ++i) {
      const auto spine = index_.find(extent.is.keys[static_cast<size_t>(i)]);
      if (spine != index_.end() && spine->second.extent != id) use(spine->second.extent);
    }
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

// `wanted` has all pages that are known, until it is clear which of them are of use.
std::optional<Store::Found> Store::find(std::span<const PrefixKey> keys,
                                        std::span<const PageSet> in_memory,
                                        std::span<PageSet> wanted) const {
  CHECK(keys.size() == in_memory.size() && keys.size() == wanted.size());
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return std::nullopt;
  size_t known = 0;
  for (; known < keys.size(); ++known) {
    wanted[known] = in_memory[known];
    if (shape_.all() != wanted[known]) wanted[known] |= known_pages(keys[known]);
    if (!has_page(wanted[known], 0)) break;
  }
  Found found = {.end = shape_.last_end(wanted.first(known))};
  std::ranges::fill(wanted, PageSet{0});
  for (int32_t g = 0; g < shape_.groups; ++g) {
    const BlockRange range = shape_.needed(g, found.end);
    for (int32_t block = range.first; block < range.end; ++block) {
      const auto at = static_cast<size_t>(block);
      wanted[at] |= static_cast<PageSet>(page_bit(g) & ~in_memory[at]);
    }
  }
  found.bytes = bytes_to_read(keys, wanted);
  return found;
}

// Each extent once: it lies beside itself, in the order of blocks, for each group that it has.
int64_t Store::bytes_to_read(std::span<const PrefixKey> keys,
                             std::span<const PageSet> wanted) const {
  std::array<std::optional<ExtentId>, kShapeGroupsMax> last;
  int64_t bytes = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    for (int32_t g = 0; g < shape_.groups; ++g) {
      if (!has_page(wanted[i], g)) continue;
      const Place* const place = place_of(keys[i], g);
      CHECK(place != nullptr);
      const bool counted = std::ranges::find(last, std::optional(place->extent)) != last.end();
      last[static_cast<size_t>(g)] = place->extent;
      if (!counted) bytes += static_cast<int64_t>(extents_[place->extent].is.bytes(shape_));
    }
  }
  return bytes;
}

PageSet Store::pages_of(const PrefixKey& key) const {
  const std::lock_guard lock(mutex_);
  return known_pages(key);
}

// --- The reader.

std::optional<Store::Reading> Store::begin_reading(const PrefixKey& key, int32_t group) {
  const std::lock_guard lock(mutex_);
  const Place* const place = place_of(key, group);
  if (place == nullptr) return std::nullopt;
  const Known& extent = extents_[place->extent];
  Segment& segment = segments_[extent.segment];
  ++segment.readers;
  return Reading{extent.is, place->extent, extent.segment, segment.file};
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

Result<void> Store::read(const ChainView& chain, std::span<PageSet> wanted, const Take& take,
                         const std::atomic<bool>& unwanted) {
  CHECK(wanted.size() <= chain.keys.size() && chain.keys.size() == chain.tokens.size());
  for (size_t next = 0; next < wanted.size() && !unwanted.load(std::memory_order_relaxed);) {
    if (wanted[next] == 0) {
      ++next;
      continue;
    }
    const int32_t group = std::countr_zero(wanted[next]);
    const std::optional<Reading> reading = begin_reading(chain.keys[next], group);
    if (!reading) return {};
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
      return {};
    }
    give(*head, chain, wanted, take);
    if (has_page(wanted[next], group)) return {};  // Other tokens of the same key.
  }
  return {};
}

// What the extent in the buffer has of what is wanted.
void Store::give(const ExtentHead& head, const ChainView& chain, std::span<PageSet> wanted,
                 const Take& take) const {
  const std::byte* page = read_buffer_.data() + kBlockBytes;
  for (int32_t i = 0; i < head.blocks; ++i) {
    const auto at = static_cast<size_t>(i), block = static_cast<size_t>(head.parent.pages + i);
    if (block >= wanted.size() || head.tokens[at] != chain.tokens[block]) return;
    for (int32_t g = 0; g < shape_.groups; ++g) {
      if (!has_page(head.pages[at], g)) continue;
      const auto bytes = static_cast<size_t>(shape_.page_bytes[static_cast<size_t>(g)]);
      if (has_page(wanted[block], g)) {
        take(static_cast<int32_t>(block), g, {page, bytes});
        wanted[block] &= static_cast<PageSet>(~page_bit(g));
      }
      page += bytes;
    }
  }
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
  for (const auto& [key, place] : sides_) {
    const Known& extent = extents_[place.extent];
    CHECK(extent.live && extent.is.keys[static_cast<size_t>(place.position)] == key);
    CHECK((pages_at(place) & ~page_bit(0)) != 0);
    const auto spine = index_.find(key);
    if (spine != index_.end()) CHECK(extents_[spine->second.extent].used >= extent.used);
  }
  for (const auto& [key, place] : index_) {
    const Known& extent = extents_[place.extent];
    CHECK(extent.live && extent.is.keys[static_cast<size_t>(place.position)] == key);
    CHECK(has_page(pages_at(place), 0));
    // A parent is used whenever its child is.
    const auto parent = index_.find(extent.is.parent);
    if (parent != index_.end()) CHECK(extents_[parent->second.extent].used >= extent.used);
  }
}

}  // namespace weir::kv::disk
