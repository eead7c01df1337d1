// ExpertStore: the experts that are in memory, and how the others get there. It has a fixed number
// of slots, reads what a layer's tokens were routed to and lacks, guesses what the next ones want,
// and hands a layer its experts in waves: those that are there first, then as they land.
//
// A layer's run, by the leader (member 0 of the team) while the others wait or compute:
//   begin_layer(), next_wave() until ExpertWave::last, end_layer(); pump() now and then between.
// Two waves exist at a time: one is computed while the next is put together. So the experts of
// wave n are given up when wave n + 2 is made, behind the barrier that ends wave n.
//
// Threads: one, the engine's leader, but for stats(), allow() and a thread of its own that takes
// memory from the kernel ahead of use.
//
// Invariants:
// (1) a slot that the kernel may write to, or whose bytes wait to be unpacked, is pinned;
// (2) what is handed out in a wave is pinned until two waves later, or end_layer();
// (3) nothing is allocated after create().
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/huge_pages.h"
#include "base/metrics.h"
#include "base/result.h"
#include "base/ring.h"
#include "ssd/expert_cache.h"
#include "ssd/expert_catalogue.h"
#include "ssd/prefetcher.h"
#include "ssd/read_queue.h"

namespace weir::ssd {

class RouteTrace;
class RoutingTable;

struct StoreOptions {
  uint64_t memory = 0;  // Bytes for slots and staging buffers.
  int32_t top_k = 0;
  int32_t sequences_max = 0;
  PrefetchMode prefetch = PrefetchMode::kAuto;
  QueueLimits queue{};
  // False: a layer waits for all of its experts before it computes any; to measure what overlap
  // gives.
  bool overlap = true;
  // To measure with: routing in the place of the model's own, and a record of what was routed. Both
  // may be null, and outlive the store.
  const RoutingTable* routing = nullptr;
  RouteTrace* trace = nullptr;
};

// The least memory that holds so many times what a token needs.
uint64_t memory_for_cycles(const ExpertCatalogue& catalogue, int32_t top_k, double cycles);

// How many experts a memory holds; needs no store.
struct StorePlan {
  uint64_t memory = 0;  // Bytes given.
  int64_t slots = 0;
  int64_t experts = 0;       // Of the model.
  int32_t staging = 0;       // Buffers.
  uint64_t slot_memory = 0;  // Bytes.
  uint64_t cycle_bytes = 0;  // What one token needs.
  std::vector<int32_t> slots_of_class;

  double cycles() const {
    return static_cast<double>(slot_memory) /
           static_cast<double>(std::max<uint64_t>(cycle_bytes, 1));
  }
};

// An error says how much is needed at least.
Result<StorePlan> plan_store(const ExpertCatalogue& catalogue, uint64_t memory, int32_t top_k);

// An expert that rows of this step were routed to.
struct ExpertDemand {
  int32_t expert = 0;
  int32_t generated_rows = 0;
  int32_t prompt_rows = 0;
};

// What a row was routed to, best first. Of prompts only the last row of a slice is told.
struct RoutedRow {
  int32_t sequence = 0;
  bool prompt = false;
  const int32_t* experts = nullptr;
};

// Memory with which every expert finds a slot.
uint64_t whole_memory(const ExpertCatalogue& catalogue);

struct ExpertWave {
  // A part as stored, to be put into its slot's form before anything of this wave is computed.
  struct Unpack {
    int32_t layer = 0;
    int32_t expert = 0;
    int32_t part = 0;
    const std::byte* staged = nullptr;
    std::byte* slot = nullptr;
  };
  // A part of a bundle of which nobody has seen yet whether it is what was written: its CRC32C is
  // to be stored in `found`. Of use from the next wave on.
  struct Check {
    std::span<const std::byte> bytes;
    uint32_t* found = nullptr;
  };
  std::vector<Unpack> unpack;
  std::vector<Check> check;
  // Indices of this layer's demands.
  std::vector<int32_t> activate;  // Whose first part is there.
  std::vector<int32_t> down;      // Activated, now or before, and whose second part is there.
  std::vector<int32_t> failed;    // Cannot be read.
  bool first = false;
  bool last = false;
};

struct StoreStats {
  Counter ready, in_flight, absent;  // Experts asked for by generated tokens, each once a step.
  Counter prompt_ready, prompt_absent;
  Counter steps, tokens;
  Counter step_ns;
  Counter stall_ns;    // Of it: nothing to compute, and the leader waited for the disk.
  Counter read_ahead;  // Experts, before a prompt asked for them.
  Counter unpacked;    // Parts.
  Counter failed_experts;
  Counter crc_failures;  // Parts of a bundle that were not what had been written.
  Counter source_parts;  // Read from the checkpoint, because the bundle's could not be used.
  Gauge slots_usable;
  Gauge slots_shed;  // Whose memory went back to the kernel, for a while.
  // Of layers with so many generated rows (1, 2 to 3, 4 to 7, ...): how often one was run, and how
  // many experts they were routed to together.
  static constexpr int kBatchSizes = 9;
  std::array<Counter, kBatchSizes> layer_runs, layer_experts;
};

class ExpertStore {
 public:
  static Result<std::unique_ptr<ExpertStore>> create(const ExpertCatalogue& catalogue,
                                                     std::unique_ptr<Disk> disk,
                                                     const StoreOptions& options);
  ~ExpertStore();
  ExpertStore(const ExpertStore&) = delete;
  ExpertStore& operator=(const ExpertStore&) = delete;

  void begin_step(int32_t generated_rows);
  void end_step();
  // The sequence's slot number belongs to another request, or begins anew.
  void forget(int32_t sequence) { prefetcher_.forget(sequence); }

  // REQUIRES: `demands` ascend by expert and stay as they are until end_layer().
  void begin_layer(int32_t layer, std::span<const ExpertDemand> demands,
                   std::span<const RoutedRow> rows);
  void next_wave(ExpertWave& wave);
  void end_layer();
  // Takes what has landed, sends what may be sent. Never blocks; cheap when there is nothing.
  void pump();

  // What the router of `layer`, applied too early, says of the step's generated rows.
  void looked_ahead(int32_t layer, std::span<const RoutedRow> rows);
  bool wants_lookahead() const { return prefetcher_.wants_lookahead(); }

  // Where a demand of this layer's run lies. REQUIRES: it is in a wave.
  std::byte* memory_of(int32_t demand) const;
  // Why a demand has failed.
  const std::string& failure_of(int32_t demand) const;

  // How much of the planned slots may hold anything, in percent; from the next step on. The memory
  // of others goes back to the kernel, of the coldest experts first. Any thread.
  void allow(int32_t percent) { allowed_.store(percent, std::memory_order_relaxed); }

  // For who makes waves: one with room for everything.
  ExpertWave make_wave() const;

  const StoreStats& stats() const { return stats_; }
  const ReadStats& reads() const { return queue_.stats(); }
  const ExpertCache::Stats& cache() const { return cache_.stats(); }
  // The next line for the log about the disk, if there is one. One thread.
  std::optional<std::string> take_notice() {
    std::optional<std::string> own = notices_.try_pop();
    return own ? std::move(own) : queue_.take_notice();
  }
  const Prefetcher& prefetcher() const { return prefetcher_; }
  const StorePlan& plan() const { return plan_; }
  std::string_view mode() const { return disk_->mode(); }

 private:
  // What the reads of a slot are at.
  struct Slot {
    std::byte* memory = nullptr;
    ExpertKey key{};
    int32_t staging = -1;
    std::array<int32_t, kParts> pending{};  // Reads that have not landed.
    std::array<bool, kParts> unread{};      // Reads are not in the queue yet.
    std::array<bool, kParts> ready{};
    std::array<bool, kParts> again{};   // Read once more: its checksum was wrong.
    std::array<bool, kParts> source{};  // Not read from the bundle.
    bool reading = false;               // Pinned by us: not all of it is ready.
    bool failed = false;
    bool guessed = false;                  // Nobody has asked for it yet.
    std::vector<ReadQueue::ReadId> reads;  // Landed or not.
    std::string failure;
  };
  enum class State : uint8_t { kWaiting, kHeld, kActivated, kDone };
  struct Demand {
    State state = State::kWaiting;
    int32_t slot = -1;
    bool passing = false;  // In the place of an expert that is worth more.
  };
  struct SlotPart {
    int32_t slot = 0;
    int32_t part = 0;
    bool check = false;  // Else to be unpacked.
    int32_t found = 0;   // Where its checksum will be.
  };
  // What is known of a part in the bundle.
  enum class Trust : uint8_t { kNone, kSeenGood, kBad };

  ExpertStore(const ExpertCatalogue& catalogue, std::unique_ptr<Disk> disk,
              const StoreOptions& options, StorePlan plan);
  Result<void> allocate();
  void fault_in();  // The own thread.
  int32_t allowed_slots(size_t cls) const;
  void shed_or_grow(int32_t cls);

  Slot& slot(int32_t index) { return slots_[static_cast<size_t>(index)]; }
  int64_t bytes_of(ExpertKey key) const;
  size_t parts_in_work() const;
  std::byte* staged(const Slot& slot, int part) const;
  std::byte* part_memory(const Slot& slot, int part) const;
  void hold(size_t demand);
  void count_union(std::span<const ExpertDemand> demands);
  void take_new_guesses();
  bool can_start() const;
  int32_t place(size_t demand, ExpertKey key);
  void start_waiting();
  void begin_read(int32_t index, ExpertKey key);
  void add_reads(int32_t index, int part, ReadClass read_class);
  void take_landed(std::span<const Landed> landed);
  void settle(int32_t index);
  Trust& trust(ExpertKey key, int part);
  bool to_be_checked(ExpertKey key, int part);
  void checked(const SlotPart& part);
  void use_source(int32_t index, int part);
  void start_source_reads();
  void start_guesses();
  void plan_read_ahead();
  void read_ahead();
  void drop_contradicted();
  void finish_unpacking();
  void collect_raw(ExpertWave& wave);
  void collect(ExpertWave& wave);
  void fail_demand(int32_t demand, ExpertWave& wave);
  void retire(std::vector<int32_t>& demands);
  void await_reads();

  const ExpertCatalogue& catalogue_;
  std::unique_ptr<Disk> disk_;
  const StoreOptions options_;
  const StorePlan plan_;
  ExpertCache cache_;
  Prefetcher prefetcher_;
  ReadQueue queue_;
  std::vector<HugeBuffer> memory_;
  HugeBuffer staging_memory_;
  std::vector<Slot> slots_;
  std::vector<int32_t> free_staging_;
  std::vector<SlotPart> raw_;           // Landed, to be unpacked or checked.
  std::vector<SlotPart> unpacking_;     // Or checked, by the wave at hand.
  std::vector<uint32_t> found_crc_;     // By the wave at hand.
  std::vector<SlotPart> source_parts_;  // Wait for a staging buffer.
  std::vector<Trust> trust_;            // By layer, expert and part.
  uint32_t trusted_loads_ = 0;
  SpscRing<std::string> notices_;
  int32_t reading_ = 0;  // Slots.
  int32_t guesses_reading_ = 0;
  int64_t slots_shed_ = 0;
  const int32_t ahead_slots_max_;
  int32_t ahead_slots_ = 0;
  ExpertKey ahead_{.layer = -1};  // The next expert to be read ahead of a prompt; -1: none.
  int32_t passing_ = 0;           // Demands that are.

  // The layer's run.
  int32_t layer_ = -1;
  std::span<const ExpertDemand> asked_;
  bool generated_ = false;   // Some row is of a generated token.
  int32_t prompt_rows_ = 0;  // Of this step, in the layer that runs.
  std::vector<Demand> demands_;
  std::vector<std::string> failures_;  // By demand.
  std::vector<int32_t> order_;         // Demands that were absent, next first.
  size_t next_waiting_ = 0;
  std::vector<int32_t> given_, retiring_;  // To be done with by the last wave; by the one before.
  int32_t unfinished_ = 0;                 // Demands that no wave has finished.
  bool first_wave_ = false;

  std::chrono::steady_clock::time_point step_begin_;
  int64_t step_stall_ns_ = 0;
  int32_t step_tokens_ = 0;
  bool step_has_prompts_ = false;
  StoreStats stats_;
  std::atomic<bool> stopping_{false};
  std::atomic<int32_t> allowed_{100};         // Percent of slots.
  std::vector<std::atomic<int32_t>> usable_;  // By class: slots whose memory is there.
  std::thread faulter_;
};

}  // namespace weir::ssd
