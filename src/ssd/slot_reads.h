// SlotReads: how the bytes of experts get into slots, and what is to be done to them before they
// are of use. It turns an expert's parts into reads, follows them, hands out what has landed as
// jobs of a wave (unpack, check), and reads from the checkpoint what a bundle has lost. Which
// expert is to be in which slot, and why, is others' business.
//
// A slot: begin(), add() for each part, then it is reading until poll(), wait() or finish() names
// it among those that have settled: all of it is ready, or it has failed.
//
// Threads: one owner, the engine's leader; take_notice() one thread, that may log.
//
// Invariants:
// (1) at most kReadingMax slots are reading, so the queue always takes their reads;
// (2) a slot that the kernel may write to, or whose bytes wait for a wave's job, is reading;
// (3) a staging buffer is free, or one reading slot's;
// (4) nothing is allocated after construction, but for the words that say what went wrong.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ring.h"
#include "ssd/expert_cache.h"
#include "ssd/expert_catalogue.h"
#include "ssd/expert_wave.h"
#include "ssd/read_queue.h"
#include "ssd/slot_memory.h"
#include "ssd/store_stats.h"

namespace weir::ssd {

class SlotReads {
 public:
  // Slots that may be read at once; each has at most nine reads (three matrices, each with scales
  // and biases), and the queue holds 1,024.
  static constexpr int32_t kReadingMax = 96;

  // The catalogue's files are opened already. `slots` and `staging`: how many there are in
  // `memory`, which outlives this, as `catalogue` and `stats` do.
  SlotReads(const ExpertCatalogue& catalogue, std::unique_ptr<Disk> disk, const QueueLimits& limits,
            const SlotMemory& memory, int64_t slots, int32_t staging, StoreStats& stats);
  ~SlotReads();  // Waits for the kernel.
  SlotReads(const SlotReads&) = delete;
  SlotReads& operator=(const SlotReads&) = delete;

  // There is room for one more slot's reads.
  bool can_begin() const {
    return reading_ < kReadingMax && (catalogue_.in_slot_form() || !free_staging_.empty());
  }
  // The slot becomes this expert's, of which no byte is there. REQUIRES: can_begin(); the slot is
  // not reading.
  void begin(int32_t index, ExpertKey key);
  // Queues the reads of a part. Once for each, after begin().
  void add(int32_t index, int part, ReadClass read_class);
  void promote(int32_t index, ReadClass read_class);
  // Takes all reads of a slot back if the disk has seen none of them; false: it has, or they are
  // not the first attempt's.
  bool drop(int32_t index);

  void submit() { queue_.submit(); }
  // What has landed, without waiting and after waiting for some; what waits for staging buffers
  // goes on. Returns the slots that have settled. Valid until the next call of these or finish().
  std::span<const int32_t> poll();
  std::span<const int32_t> wait(std::chrono::nanoseconds timeout);

  // A wave's jobs: what has landed and is not as kernels want it yet, or may not be what was
  // written. REQUIRES: the jobs before are finished.
  void collect(ExpertWave& wave);
  // They are done. Returns the slots that have settled, as poll() does.
  std::span<const int32_t> finish();

  // Looks whether the files that were read have changed. Returns the slots that have settled.
  std::span<const int32_t> check_files();
  // Since the last call a file was found to be changed: slots may have failed that had been ready.
  bool take_distrusted() { return std::exchange(distrusted_, false); }
  // Why what has been computed since the files were last checked may be wrong; empty: it is not.
  std::string take_doubt() { return std::exchange(doubt_, {}); }
  // How many jobs of one kind a wave has at the most.
  size_t unpacks_max() const { return kParts * static_cast<size_t>(staging_); }
  size_t checks_max() const { return catalogue_.packed() ? kPartsMax : 0; }

  int32_t reading() const { return reading_; }  // Slots.
  bool reading(int32_t index) const { return at(index).reading; }
  bool failed(int32_t index) const { return at(index).failed; }
  const std::string& failure(int32_t index) const { return at(index).failure; }
  // The part can be computed with once the jobs collected last are done. Not where those check it:
  // no layer computes with what may be wrong.
  bool there(int32_t index, int part) const;
  ExpertKey key(int32_t index) const { return at(index).key; }  // Of the last begin().

  bool demand_outstanding() const { return queue_.demand_outstanding(); }
  bool stalled() const { return queue_.stalled(); }
  const ReadStats& stats() const { return queue_.stats(); }
  const Disk& disk() const { return *disk_; }
  // The next line for the log about the disk, if there is one.
  std::optional<std::string> take_notice() {
    std::optional<std::string> own = notices_.try_pop();
    return own ? std::move(own) : queue_.take_notice();
  }

 private:
  static constexpr size_t kPartsMax = kParts * static_cast<size_t>(kReadingMax);

  struct Slot {
    ExpertKey key{};
    int32_t staging = -1;
    std::array<int32_t, kParts> pending{};  // Reads that have not landed.
    std::array<bool, kParts> unread{};      // Reads are not in the queue yet.
    std::array<bool, kParts> ready{};
    std::array<bool, kParts> again{};   // Read once more: its checksum was wrong.
    std::array<bool, kParts> source{};  // Not read from the bundle.
    // Parts without a checksum: how many looks at files there had been when they landed. -1: none.
    std::array<int64_t, kParts> landed_look = {-1, -1};
    bool reading = false;
    bool failed = false;
    std::vector<ReadQueue::ReadId> reads;  // Landed or not.
    std::string failure;
  };
  struct SlotPart {
    int32_t slot = 0;
    int32_t part = 0;
    bool check = false;  // Else to be unpacked.
    int32_t found = 0;   // Where its checksum will be.
  };
  // What is known of a part in the bundle.
  enum class Trust : uint8_t { kNone, kSeenGood, kBad };

  Slot& at(int32_t index) { return slots_[static_cast<size_t>(index)]; }
  const Slot& at(int32_t index) const { return slots_[static_cast<size_t>(index)]; }
  std::byte* staged(const Slot& slot, int part) const;
  std::byte* part_memory(int32_t index, int part) const;
  static void push(std::vector<SlotPart>& list, const SlotPart& part);

  void take_landed(std::span<const Landed> landed);
  void part_landed(int32_t index, int part, bool lost);
  void settle(int32_t index);
  bool from_bundle(const Slot& slot, int part) const {
    return catalogue_.packed() && !slot.source[static_cast<size_t>(part)];
  }
  std::span<const StoredRange> ranges_of(const Slot& slot, int part, StoredRange& whole) const;
  void note_landed(Slot& slot, int part);
  void distrust_changed();
  int32_t doubtful_file(const Slot& slot) const;
  void end_reading(Slot& slot);
  Trust& trust(ExpertKey key, int part);
  bool to_be_checked(ExpertKey key, int part);
  void checked(const SlotPart& part);
  void use_source(int32_t index, int part);
  void start_source_reads();

  const ExpertCatalogue& catalogue_;
  const SlotMemory& memory_;
  StoreStats& stats_;
  std::unique_ptr<Disk> disk_;
  ReadQueue queue_;
  const int32_t staging_;  // Buffers.
  std::vector<Slot> slots_;
  std::vector<int32_t> free_staging_;
  int32_t reading_ = 0;
  // Each part of a reading slot is in one of these three at the most.
  std::vector<SlotPart> raw_;           // Landed, to be unpacked or checked.
  std::vector<SlotPart> in_work_;       // Being so, by the wave at hand.
  std::vector<SlotPart> source_parts_;  // Wait for a staging buffer.
  std::vector<uint32_t> found_crc_;     // By the wave at hand.
  std::vector<int32_t> settled_;        // The answer of poll(), wait() and finish().
  std::vector<Trust> trust_;            // By layer, expert and part.
  uint32_t trusted_loads_ = 0;
  std::vector<int64_t> landed_look_;  // By file: of the last part without a checksum.
  bool distrusted_ = false;
  std::string doubt_;
  SpscRing<std::string> notices_;
};

}  // namespace weir::ssd
