// DiskCache: a store with the threads that read and write for it, so that none who uses it waits
// for a disk. When a disk fails it is off from then on, with one warning in the log.
//
// A text is found with find(), and its blocks are loaded into pages by load(), which says when they
// are there. Blocks that shall be kept are handed over in a buffer, take_buffer() and write(); there
// are few of those, and while all are on their way to the disk nothing more is kept.
//
// Threads: one owner, the engine's thread, for all but the figures and the constructor; the threads
// of its own, weir-disk-read and weir-disk-write.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/bell.h"
#include "base/huge_pages.h"
#include "base/ring.h"
#include "kv/disk/folder.h"
#include "kv/disk/store.h"
#include "kv/disk/write_budget.h"
#include "kv/page_memory.h"

namespace weir::kv::disk {

struct DiskCacheOptions {
  std::string root;         // The folder of all models' folders.
  std::string fingerprint;  // Of the model, the format and the arithmetic, in hexadecimal digits.
  PageShape shape;
  StoreLimits limits;
  // How many caches of this process are open: each has an equal part of the space. May be null.
  std::atomic<int32_t>* open_caches = nullptr;
  int64_t write_bytes_a_second = 100'000'000;
  int64_t write_bytes_a_day = int64_t{64} << 30;
};

inline constexpr int32_t kWriteBuffers = 3;

// Texts that are loaded at once: so many, or as many as need no more than this of pages that only
// the end of a text has, but one.
inline constexpr int32_t kLoadsMax = 4;
inline constexpr int64_t kLoadSideBytesMax = int64_t{256} << 20;
int32_t loads_at_once(const PageShape& shape);
// The memory that a cache takes, whatever it holds: buffers, and the index of so many bytes.
int64_t cache_memory(const PageShape& shape, int64_t bytes_max);

class DiskCache {
 public:
  using Clock = std::chrono::steady_clock;

  // An error says why there is none.
  static Result<std::unique_ptr<DiskCache>> open(const DiskCacheOptions& options,
                                                 std::unique_ptr<Files> files = local_files());
  // Waits for what its threads are doing; what they have not begun is not done.
  ~DiskCache();
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  // Called on either of its threads whenever a load or a write has ended; empty: not any more, and
  // once this has returned it is not running either.
  void on_done(std::function<void()> call);

  // Of keys: PrefixIdentity::secret.
  uint64_t secret() const { return store_->secret(); }
  const PageShape& shape() const { return shape_; }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // What is measured of reads; 0: nothing yet.
  double read_bytes_a_second() const { return read_rate_.load(std::memory_order_relaxed); }

  // As Store::find(). Nothing once the disk has failed.
  std::optional<Store::Found> find(std::span<const PrefixKey> keys,
                                   std::span<const PageSet> in_memory,
                                   std::span<PageSet> wanted) const;

  // A text of so many tokens was computed in so many seconds.
  void learn_prompts(int32_t tokens, double seconds);
  // So many bytes are read faster than so many tokens are computed, as far as is known.
  bool pays(int64_t bytes, int32_t tokens) const;

  // Pages of the blocks of a chain, and where they are to lie.
  struct Load {
    PrefixKey salt;
    std::vector<PrefixKey> keys;
    std::vector<BlockTokens> tokens;
    std::vector<PageSet> wanted;  // Of each block; once it is done: those that have not come.
    // By group: the page of each block; entries of what is not wanted may be anything.
    std::array<std::vector<PageId>, kShapeGroupsMax> pages;
    PageMemory* memory = nullptr;

    std::atomic<bool> unwanted{false};  // Set by the owner: it is done soon, with what has come.
    std::atomic<bool> done{false};
  };
  // It is lent until it is done. REQUIRES: no more than kLoadsMax are; no pass reads or writes the
  // pages.
  void load(Load& load);

  struct Buffer {
    ExtentHead head;
    HugeBuffer bytes;  // The payload begins at kBlockBytes.
  };
  // Null: all of them are on their way.
  Buffer* take_buffer();
  // Whether it would give one.
  bool has_buffer();
  void write(Buffer& buffer);
  // A buffer comes back, or `until` has passed. False: it has.
  bool wait_for_buffer(Clock::time_point until);
  // All that was handed over is written, or `until` has passed. Nothing is kept back for the sake
  // of the rate from here on.
  void flush(Clock::time_point until);
  // Whether writes wait: others need the disk now.
  void hold_writes(bool hold) { held_.store(hold, std::memory_order_relaxed); }
  PageSet pages_of(const PrefixKey& key) const { return store_->pages_of(key); }

  const StoreFigures& figures() const { return figures_; }
  uint64_t dropped_bytes() const { return dropped_bytes_.value(); }  // For the limits' sake.
  int64_t bytes() const { return store_->bytes(); }
  int32_t blocks() const { return store_->blocks(); }

 private:
  DiskCache(const DiskCacheOptions& options, Folder folder, std::unique_ptr<Files> files);

  void read_main();
  void write_main();
  void run(Load& load);
  void run(Buffer& buffer);
  void wait_for_turn();
  void fail_with(const Error& error);
  void tell();

  const PageShape shape_;
  std::atomic<int32_t>* const open_caches_;
  const Folder folder_;
  const std::unique_ptr<Files> files_;
  StoreFigures figures_;
  Counter dropped_bytes_;
  std::unique_ptr<Store> store_;
  std::mutex on_done_mutex_;
  std::function<void()> on_done_;  // Guarded by it.

  std::atomic<bool> failed_{false};
  std::atomic<bool> ending_{false};
  std::atomic<bool> flushing_{false};
  std::atomic<bool> held_{false};
  std::atomic<double> read_rate_{0};
  double prompt_rate_ = 0;  // Tokens a second; 0: not measured. The owner's.

  SpscRing<Load*> loads_{kLoadsMax};
  std::vector<Buffer> buffers_{kWriteBuffers};
  SpscRing<Buffer*> full_{4}, empty_{4};  // A power of two, at least kWriteBuffers.
  Buffer* next_ = nullptr;                // An empty one that the owner has in hand.
  Bell empty_bell_;

  // The writer's.
  std::optional<WriteBudget> budget_;  // There from open() on.
  Clock::time_point next_write_{};

  Bell read_bell_, write_bell_;
  std::thread reader_, writer_;
};

}  // namespace weir::kv::disk
