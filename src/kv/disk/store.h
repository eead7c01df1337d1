// Store: the blocks of the prefix cache that lie on disk, of one model in one format: segments of
// extents in a folder, and an index of them in memory.
//
// What is read is compared before it is believed: the checksums, the tokens of each block, and the
// key of what comes before them. A key is a hash that begins with a random number of the folder
// (secret()), which no client knows, so that none can make two texts of one key.
//
// When the folder is full, a whole segment goes: of those that grow no more the one whose blocks
// were used least. What was used again is copied to the segment that grows, if it is at most a
// quarter. A block goes with all that follow it, so none is left that could never be found.
//
// A block is there when its page of the spine is. Its other pages (page_shape.h) lie in the same
// extent, or in others that were written later, when a text came to end there; when it goes, those
// go too.
//
// Nothing is written for safety, but one thing: a segment's sidecar, only once all of it is on the
// disk. What a crash has lost is computed again; what it has torn is seen.
//
// Threads: find() is called by any thread, and never waits. One thread reads, read(); one writes,
// append(). The mutex is held for work in memory alone, never while a file is read or written.
//
// Invariants:
// (1) A block is in the index at most once, and so is each of its further pages.
// (2) What evict() takes out leaves no block whose parent was there and is gone.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/huge_pages.h"
#include "base/metrics.h"
#include "kv/disk/files.h"
#include "kv/disk/page_shape.h"
#include "kv/disk/segment.h"

namespace weir::kv::disk {

struct StoreLimits {
  int64_t bytes_max = 0;                         // Of all segments.
  int64_t free_bytes_min = 0;                    // What the file system keeps for others.
  uint64_t segment_bytes = uint64_t{256} << 20;  // One that has so many grows no more.
  // How many stores of this process share `bytes_max`, each an equal part. Null: one.
  const std::atomic<int32_t>* sharers = nullptr;
};

// Blocks of all extents, counted in each of them: the index takes kIndexBytes for each.
inline constexpr int32_t kStoredBlocksMax = 1 << 20;
inline constexpr int64_t kIndexBytes = 128;

// Of one store, or of several, one after another.
struct StoreFigures {
  Counter read_bytes, written_bytes, evicted_blocks, corrupt_extents;
};

// The blocks of a text, as they are looked for.
struct ChainView {
  PrefixKey salt;                         // Before the first block.
  std::span<const PrefixKey> keys;        // Of each block.
  std::span<const BlockTokens> tokens{};  // The same; not needed by find().
};

class Store {
 public:
  // Reads what is in the folder, which this process owns (folder.h). `identity`: of the model and
  // the format; files of another one are removed. `files` and `figures` outlive the store.
  static Result<std::unique_ptr<Store>> open(std::string folder, std::string identity,
                                             const PageShape& shape, const StoreLimits& limits,
                                             Files& files, StoreFigures& figures);
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  uint64_t secret() const { return secret_; }

  // Of pages in memory (of each block of the chain) and those that are here: after how many blocks a
  // sequence could go on. `wanted`, as long, gets what is to be read for that, and `bytes` is what
  // that takes. Nullopt: the index is in use, ask again.
  struct Found {
    int32_t end = 0;
    int64_t bytes = 0;
  };
  std::optional<Found> find(std::span<const PrefixKey> keys, std::span<const PageSet> in_memory,
                            std::span<PageSet> wanted) const;

  // Reads the pages that are wanted of the blocks of the chain, gives each to `take`, blocks in
  // about their order, and takes it out of `wanted`. Ends at the first that is not there any more,
  // or not right: such an extent is forgotten with all that follows it; and before the next extent
  // once `unwanted` is set, by any thread. An error: the disk has failed.
  using Take = std::function<void(int32_t block, int32_t group, std::span<const std::byte> bytes)>;
  Result<void> read(const ChainView& chain, std::span<PageSet> wanted, const Take& take,
                    const std::atomic<bool>& unwanted);

  // Writes an extent, but for pages that are there already; makes room first. `bytes` are its head,
  // which is written here, its payload and the padding, in memory aligned to kBlockBytes. False:
  // there is no room, or making it took what the extent follows. An error: the disk has failed.
  Result<bool> append(const ExtentHead& head, std::span<std::byte> bytes);
  // The pages of a block that are there.
  PageSet pages_of(const PrefixKey& key) const;

  // What lies in the folder now, and how many blocks the index knows.
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }
  int32_t blocks() const { return blocks_.load(std::memory_order_relaxed); }

  // Walks everything and checks the invariants; for tests.
  void check() const;

 private:
  using ExtentId = uint32_t;
  struct Place {
    ExtentId extent = 0;
    int32_t position = 0;  // Of the block in it.
  };
  struct Known {
    StoredExtent is;
    uint32_t segment = 0;
    bool live = false;   // False: a free place in the list.
    double uses = 1;     // Since then, decayed:
    int64_t used = 0;    // written_ when it was used last.
  };
  struct Segment {
    std::shared_ptr<File> file;
    uint64_t end = kSegmentBegin;
    std::vector<ExtentId> extents;  // Those that are live.
    bool grows = false;
    int32_t readers = 0;
  };
  struct KeyHash {
    size_t operator()(const PrefixKey& key) const { return key.low; }
  };

  Store(std::string folder, std::string identity, const PageShape& shape, const StoreLimits& limits,
        Files& files, StoreFigures& figures);

  // Opening.
  Result<void> read_secret();
  Result<void> read_segments();
  Result<void> read_segment(uint32_t number, uint64_t bytes, bool last);
  std::string path_of(uint32_t number, const char* end) const;

  // The writer's.
  Result<bool> append_part(const ExtentHead& head, std::span<std::byte> bytes, ExtentHead part,
                           int32_t first);
  bool follows_known(const ExtentHead& head) const;
  Result<void> write_extent(const ExtentHead& head, std::span<std::byte> bytes, double uses);
  Result<void> begin_segment();
  Result<void> end_segment();
  Result<bool> end_growing();
  Result<bool> make_room(int64_t bytes);
  int64_t bytes_max() const;
  uint64_t segment_bytes() const;
  Result<bool> evict();
  std::optional<uint32_t> least_used() const;
  Result<void> copy_on(uint32_t victim);
  std::vector<ExtentId> survivors(const Segment& segment) const;

  // Under the mutex.
  ExtentId add(const StoredExtent& extent, uint32_t segment, double uses, int64_t used);
  void remove(ExtentId id);
  void leave_index(ExtentId id);
  void touch(ExtentId id, int32_t uses);
  PageSet known_pages(const PrefixKey& key) const;
  const Place* place_of(const PrefixKey& key, int32_t group) const;
  PageSet pages_at(const Place& place) const {
    return extents_[place.extent].is.pages[static_cast<size_t>(place.position)];
  }
  int64_t bytes_to_read(std::span<const PrefixKey> keys, std::span<const PageSet> wanted) const;
  size_t places() const { return index_.size() + sides_.size(); }
  void count_places();
  double value(const Known& extent) const;

  // The reader's.
  struct Reading {
    StoredExtent extent;
    ExtentId id = 0;
    uint32_t segment = 0;
    std::shared_ptr<File> file;
  };
  std::optional<Reading> begin_reading(const PrefixKey& key, int32_t group);
  void end_reading(const Reading& reading, bool right);
  std::optional<ExtentHead> verified(const Reading& reading, const ChainView& chain) const;
  void give(const ExtentHead& head, const ChainView& chain, std::span<PageSet> wanted,
            const Take& take) const;

  const std::string folder_;
  const std::string identity_;
  const PageShape shape_;
  const StoreLimits limits_;
  Files& files_;
  StoreFigures& figures_;
  uint64_t secret_ = 0;

  mutable std::mutex mutex_;  // Guards what follows.
  std::unordered_map<PrefixKey, Place, KeyHash> index_;       // Where the page of the spine lies.
  std::unordered_multimap<PrefixKey, Place, KeyHash> sides_;  // Where further pages lie by themselves.
  std::unordered_multimap<PrefixKey, ExtentId, KeyHash> children_;  // By their parent's key.
  std::vector<Known> extents_;
  std::vector<ExtentId> free_;
  std::map<uint32_t, Segment> segments_;
  int64_t written_ = 0;  // Bytes since it was opened: what age is measured in.

  std::atomic<int64_t> bytes_{0};
  std::atomic<int32_t> blocks_{0};  // index_
  std::atomic<int32_t> places_{0};  // places()
  HugeBuffer read_buffer_;  // The reader's.
  HugeBuffer copy_buffer_;  // The writer's.
};

}  // namespace weir::kv::disk
