// ReadQueue: which reads go to the disk, and when. A read that the kernel has cannot be cancelled
// or overtaken, so reads wait here, and only as many bytes are in flight as the disk needs to be
// busy. Errors that a second attempt may cure are cured here.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/ring.h"
#include "ssd/disk.h"
#include "ssd/read_stats.h"

namespace weir::ssd {

struct Extent {
  int32_t file = 0;
  uint64_t offset = 0;  // A multiple of kBlockBytes, as are `bytes` and the address `to`.
  uint32_t bytes = 0;   // May pass the end of the file by less than a block.
  uint32_t needed = 0;  // So many bytes must be there, or the read fails.
  std::byte* to = nullptr;
};

struct ReadFailure {
  int32_t file = 0;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  int32_t error = 0;    // errno; 0: the file ends inside the needed bytes; ETIMEDOUT: stuck.
  std::string message;  // Names the file, the offset, what was expected and what was found.
};

struct Landed {
  uint64_t owner = 0;
  const ReadFailure* failure = nullptr;  // Null: the needed bytes are there. Valid until the next
                                         // poll() or wait().
  // False only for a read that is stuck in the kernel: its owner is told that it failed, but the
  // memory must not be used for anything else. The owner lands once more when the read comes back
  // after all, then with `released`; without a failure, the bytes are there and good.
  bool released = true;
};

struct QueueLimits {
  // Bytes in flight of demand, and of demand and prefill together. 8 MiB is 4 ms of a 2 GB/s disk;
  // calibration.h measures what a disk needs.
  uint64_t demand_window_bytes = uint64_t{8} << 20;
  uint64_t warmup_window_bytes = uint64_t{4} << 20;
  // A speculative read in the kernel delays the next demand read by its own duration, about 1 ms
  // for 2 MiB: so at most two of them, and of so many bytes together (but always one).
  int32_t speculative_reads = 2;
  uint64_t speculative_window_bytes = uint64_t{4} << 20;
  int32_t depth = 256;  // Reads in the kernel, all classes; not above DiskOptions::depth.
};

// Threads: one owner (the engine's leader). stats() may be read by anybody.
//
// No allocation after construction, except for the message of a failure.
//
// Invariants:
// (1) Every read that add() took lands once (stuck ones twice, see Landed), unless drop() took it.
// (2) No read goes to the disk while one of a class before it waits and has room in its window.
// (3) Speculative reads go only while no demand or prefill read is outstanding.
// (4) At most `speculative_reads` in the kernel are speculative.
class ReadQueue {
 public:
  static constexpr int32_t kReadsMax = 1024;
  using ReadId = uint32_t;  // Never used again for another read before 4 million others.

  // `disk` outlives the queue, and its files are open. REQUIRES: no other user of `disk`.
  ReadQueue(Disk& disk, const QueueLimits& limits);
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // Puts a read behind those of its class; submit() sends it. nullopt: kReadsMax are waiting.
  std::optional<ReadId> add(const Extent& extent, ReadClass cls, uint64_t owner);

  // True: it was still waiting here and is gone. False: it is in the kernel and will land (or has).
  bool drop(ReadId id);

  // Raises a read to a class of more precedence, wherever it is: one in the kernel counts as of the
  // new class from now on. Nothing happens to a read that has landed or is of that class already.
  void promote(ReadId id, ReadClass cls);

  void submit();  // Sends what the windows allow, by precedence, FIFO within a class.
  std::span<const Landed> poll();  // Also submits. Never blocks. Valid until the next poll or wait.
  std::span<const Landed> wait(std::chrono::nanoseconds timeout);  // As poll, but sleeps for one.

  void set_limits(const QueueLimits& limits) { limits_ = limits; }

  int32_t in_flight() const { return in_flight_; }  // In the kernel, stuck ones too.
  int32_t queued(ReadClass cls) const { return queued_[index(cls)]; }  // Waiting here.
  bool demand_outstanding() const {
    return queued(ReadClass::kDemand) > 0 || class_reads_[index(ReadClass::kDemand)] > 0;
  }
  // Nothing has completed for 5 s: no speculation, here and, better, not even its planning.
  bool stalled() const { return stalled_; }
  // What has become of a file, as of the last look: every 10 s, and after an error in it.
  FileChange file_change(int32_t file) const;
  const ReadStats& stats() const { return stats_; }

  // The next line for the log, if there is one. One thread, one that may log: the owner may not.
  std::optional<std::string> take_notice() { return notices_.try_pop(); }

  void check() const;  // Walks everything and CHECKs the invariants.

 private:
  using Nanoseconds = std::chrono::nanoseconds;

  enum class State : uint8_t { kFree, kQueued, kPaused, kInKernel, kStuck };
  struct Read;
  struct List;

  static constexpr size_t index(ReadClass cls) { return static_cast<size_t>(cls); }

  Disk& disk_;
  QueueLimits limits_;
  std::vector<Read> reads_;
  std::array<int32_t, kReadClasses> queued_{};
  std::array<int32_t, kReadClasses> class_reads_{};
  int32_t in_flight_ = 0;
  bool stalled_ = false;
  ReadStats stats_;
  SpscRing<std::string> notices_;
};

}  // namespace weir::ssd
