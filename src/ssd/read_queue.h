// ReadQueue: which reads go to the disk, and when. A read that the kernel has cannot be cancelled
// or overtaken, so reads wait here, and only as many bytes are in flight as the disk needs to be
// busy. Errors that a second attempt may cure are cured here.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
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
  // Its owner knows a checksum. Else the read fails once the file was seen to have been changed in
  // place: what is there now may not belong to what was read before.
  bool verified = false;
};

struct ReadFailure {
  int32_t file = 0;
  uint64_t offset = 0;
  uint32_t bytes = 0;
  // errno; 0: the file ends inside the needed bytes; ESTALE: it was changed; ETIMEDOUT: stuck.
  int32_t error = 0;
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
  using ReadId = uint32_t;  // Never 0; not used again before 4 million other reads.

  // `disk` outlives the queue, and its files are open. REQUIRES: no other user of `disk`.
  ReadQueue(Disk& disk, const QueueLimits& limits);
  ~ReadQueue();
  ReadQueue(const ReadQueue&) = delete;
  ReadQueue& operator=(const ReadQueue&) = delete;

  // Puts a read after those of its class; submit() sends it. nullopt: kReadsMax are waiting.
  std::optional<ReadId> add(const Extent& extent, ReadClass cls, uint64_t owner);

  // It waits here, for its turn or for another attempt: drop() would take it.
  bool waits(ReadId id) const;
  // True: it was still waiting here and is gone. False: it is in the kernel and will land (or has).
  bool drop(ReadId id);

  // Raises a read to a class of more precedence, wherever it is: one in the kernel counts as of the
  // new class from now on. Nothing happens to a read that has landed or is of that class already.
  void promote(ReadId id, ReadClass cls);

  void submit();  // Sends what the windows allow, by precedence, FIFO within a class.
  std::span<const Landed> poll();  // Also submits. Never blocks. Valid until the next poll or wait.
  std::span<const Landed> wait(std::chrono::nanoseconds timeout);  // As poll, but sleeps for one.

  int32_t in_flight() const { return active_ + stuck_; }  // In the kernel, stuck ones too.
  int32_t queued(ReadClass cls) const { return queued_[index(cls)]; }  // Waiting here.
  bool demand_outstanding() const {
    return queued(ReadClass::kDemand) > 0 || class_reads_[index(ReadClass::kDemand)] > 0;
  }
  // Nothing has completed for 5 s: no speculation, here and, better, not even its planning.
  bool stalled() const { return stalled_; }
  // What has become of a file, as of the last look: every 10 s, and after an error in it.
  FileChange file_change(int32_t file) const;
  bool changed_in_place(int32_t file) const { return weir::changed_in_place(file_change(file)); }

  // Looks at each file of which something has landed since its last look: a system call or two for
  // each.
  void look_at_files_read();
  // Looks so far, of any file. What landed while it was less than good_look() of its file was there
  // when that look found the file as it was opened, and so is good.
  int64_t looks() const { return looks_; }
  int64_t good_look(int32_t file) const { return good_looks_[static_cast<size_t>(file)]; }
  // A file was found to be changed in place by a look since the last call.
  bool take_changed() { return std::exchange(found_changed_, false); }
  // Why reads of a file that was changed in place are not to be believed.
  std::string describe_change(int32_t file) const;

  const ReadStats& stats() const { return stats_; }

  // The next line for the log, if there is one. Of failed reads the first is told at once, those of
  // the next ten seconds in one line after them. One thread, one that may log: the owner may not.
  std::optional<std::string> take_notice();

  void check() const;  // Walks everything and CHECKs the invariants.

 private:
  using Nanoseconds = std::chrono::nanoseconds;

  enum class State : uint8_t {
    kFree,
    kQueued,  // In its class's list.
    kPaused,  // Waits for its next attempt, in the list of paused reads.
    kInKernel,
    kStuck,  // In the kernel; its owner has been told to give up.
  };

  struct Read {
    Extent extent;
    uint64_t owner = 0;
    State state = State::kFree;
    ReadClass cls = ReadClass::kDemand;
    uint8_t shorts = 0;  // Times that the rest was asked for again.
    uint8_t errors = 0;  // Failed attempts, by what may be done about them.
    uint8_t refusals = 0;
    uint8_t shortages = 0;
    uint32_t generation = 1;  // Of the id; counts the reads that this place has held.
    uint32_t done = 0;        // Bytes that are there, whole blocks.
    int32_t prev = -1;        // Neighbours in the list that holds it.
    int32_t next = -1;
    Nanoseconds asked{0};  // When it was added or promoted.
    Nanoseconds submitted{0};
    Nanoseconds due{0};  // Paused: of the next attempt.
  };

  struct List {
    int32_t head = -1;
    int32_t tail = -1;
  };

  static constexpr size_t index(ReadClass cls) { return static_cast<size_t>(cls); }

  // Lists.
  void push_back(List& list, int32_t place);
  void push_front(List& list, int32_t place);
  void remove(List& list, int32_t place);
  List& list_of(const Read& read);
  Read* find(ReadId id);
  const Read* find(ReadId id) const;
  ReadId id_of(int32_t place) const;
  Read& at(int32_t place) { return reads_[static_cast<size_t>(place)]; }
  int32_t place_of(const Read& read) const { return static_cast<int32_t>(&read - reads_.data()); }

  // To the kernel and back.
  bool has_room(const Read& read) const;
  bool send(Read& read, Nanoseconds now);
  void leave_kernel(Read& read);
  void reap();
  void complete(const DiskDone& done, Nanoseconds now);
  void take_bytes(Read& read, uint32_t bytes, Nanoseconds now);
  void take_error(Read& read, int32_t error, Nanoseconds now);
  void take_late(Read& read, int32_t result);
  void take_whole(Read& read, Nanoseconds now);
  void again(Read& read, Nanoseconds pause, Nanoseconds now);

  // To the owner.
  void land(Read& read, Nanoseconds now);
  void land_failure(Read& read, int32_t error, const std::string& found, bool released = true);
  void free(Read& read);

  // What happens by the clock.
  void look_around(Nanoseconds now);
  void resume_paused(Nanoseconds now);
  void watch(Nanoseconds now);
  void give_up_old(Nanoseconds now);
  void look_at_file(int32_t file);
  void note_read(int32_t file);
  void notice(std::string line);
  void notice_failure(const Read& read, const std::string& message);
  Nanoseconds next_event(Nanoseconds now) const;

  Disk& disk_;
  QueueLimits limits_;

  std::vector<Read> reads_;
  List free_;
  List paused_;
  std::array<List, kReadClasses> lists_;
  std::array<int32_t, kReadClasses> queued_{};  // In the class's list or paused.

  // In the kernel and not stuck.
  std::array<int32_t, kReadClasses> class_reads_{};
  std::array<uint64_t, kReadClasses> class_bytes_{};
  int32_t active_ = 0;
  int32_t stuck_ = 0;

  std::vector<Landed> landed_;
  std::vector<ReadFailure> failures_;

  Nanoseconds busy_since_{0};
  Nanoseconds progress_{0};  // The last completion, or submission to an idle disk.
  Nanoseconds next_watch_{0};
  Nanoseconds next_file_{0};
  bool stalled_ = false;
  int32_t files_ = 0;  // Files that reads have named: 0 to files_ - 1.
  int32_t file_looked_at_ = 0;
  std::vector<FileChange> file_changes_;
  int64_t looks_ = 0;
  std::vector<int64_t> good_looks_;    // By file: the number of the last one that found no change.
  std::vector<bool> read_since_look_;  // By file,
  std::vector<int32_t> files_read_;    // and which those are.
  bool found_changed_ = false;

  ReadStats stats_;
  SpscRing<std::string> notices_;
  std::atomic<uint64_t> failures_untold_{0};
  std::atomic<int64_t> failures_due_ns_{0};  // Until then they are counted only.
};

}  // namespace weir::ssd
