// ExpertStore: the experts that are in memory, and how the others get there. It has a fixed number
// of slots, reads what a layer's tokens were routed to and lacks, guesses what the next ones want,
// and hands a layer its experts in waves: those that are there first, then as they land.
//
// It owns the parts that do so and decides between them: ExpertCache knows what is in which slot,
// SlotMemory whether the slot has memory, SlotReads how bytes get there, ReadAhead what is read
// before a layer asks; which layer asks, and what it gets when, is here.
//
// A layer's run, by the leader (member 0 of the team) while the others wait or compute:
//   begin_layer(), next_wave() until ExpertWave::last, end_layer(); pump() now and then between.
// Before it expect(), once some of the step's rows have been routed and others not.
// Two waves exist at a time: one is computed while the next is put together. So the experts of
// wave n are given up when wave n + 2 is made, after the barrier that ends wave n.
//
// Threads: one, the engine's leader, but for stats(), oracle() and allow().
//
// Invariants:
// (1) a slot that is reading (SlotReads) is pinned once for that;
// (2) what is handed out in a wave is pinned until two waves later, or end_layer(); what is
//     expected, until the layer's demands are;
// (3) nothing is allocated after create(), but for the words that say what went wrong: lines for
//     the log, and failures of reads.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ssd/expert_cache.h"
#include "ssd/expert_catalogue.h"
#include "ssd/expert_wave.h"
#include "ssd/oracle_window.h"
#include "ssd/prefetcher.h"
#include "ssd/read_ahead.h"
#include "ssd/slot_memory.h"
#include "ssd/slot_reads.h"
#include "ssd/store_plan.h"
#include "ssd/store_stats.h"

namespace weir::ssd {

// Whether a layer's reads begin when some of the step's rows are routed; kAuto: where it pays. The
// others are to test and to measure with.
enum class EarlyReads : uint8_t { kAuto, kAlways, kNever };

struct StoreOptions {
  uint64_t memory = 0;  // Bytes for slots and staging buffers.
  int32_t top_k = 0;
  int32_t sequences_max = 0;
  PrefetchMode prefetch = PrefetchMode::kAuto;
  QueueLimits queue{};
  EarlyReads early_reads = EarlyReads::kAuto;
};

// An expert that rows of this step were routed to.
struct ExpertDemand {
  int32_t expert = 0;
  int32_t generated_rows = 0;
  int32_t prompt_rows = 0;
};

// What a row was routed to, best first, as many as StoreOptions::top_k; where it was to fewer, -1
// comes after them. Of prompts only the last row of a slice is told.
struct RoutedRow {
  int32_t sequence = 0;
  bool prompt = false;
  const int32_t* experts = nullptr;
};

class ExpertStore {
 public:
  static Result<std::unique_ptr<ExpertStore>> create(const ExpertCatalogue& catalogue,
                                                     std::unique_ptr<Disk> disk,
                                                     const StoreOptions& options);
  ExpertStore(const ExpertStore&) = delete;
  ExpertStore& operator=(const ExpertStore&) = delete;

  void begin_step(int32_t generated_rows);
  // Looks at the files that were read: see doubt().
  void end_step();
  // Why what the step has computed may be wrong, though nothing has failed: a file was written to
  // before it was read. Empty: it is right. Valid between end_step() and begin_step().
  const std::string& doubt() const { return doubt_; }
  // The sequence's slot number belongs to another request, or begins anew.
  void forget(int32_t sequence) { prefetcher_.forget(sequence); }

  // Some of the step's generated rows, not all, were routed to these experts of the layer that runs
  // next; they may repeat. What is absent begins to be read at once, as far as there is room, and
  // what is there stays; begin_layer() asks for all of the layer's.
  void expect(int32_t layer, std::span<const int32_t> experts);
  // Whether it pays to route rows in two groups, where that costs so much a layer.
  bool wants_early_reads(std::chrono::nanoseconds cost) const;

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
  std::byte* memory_of(int32_t demand) const {
    return memory_->slot(demands_[static_cast<size_t>(demand)].slot);
  }
  // Why a demand has failed.
  const std::string& failure_of(int32_t demand) const {
    return failures_[static_cast<size_t>(demand)];
  }

  // How much of the planned slots may hold anything, in percent; from the next adjust_memory() on,
  // which every step begins with. The memory of others goes back to the kernel, of the coldest
  // experts first. Any thread.
  void allow(int32_t percent) { memory_->allow(percent); }
  // For a leader that is idle. REQUIRES: no step runs.
  void adjust_memory();

  // For the maker of waves: one with room for everything.
  ExpertWave make_wave() const;

  const StoreStats& stats() const { return stats_; }
  const ReadStats& reads() const { return reads_.stats(); }
  const ExpertCache::Stats& cache() const { return cache_.stats(); }
  // The next line for the log about the disk, if there is one. One thread.
  std::optional<std::string> take_notice() { return reads_.take_notice(); }
  const Prefetcher& prefetcher() const { return prefetcher_; }
  const StorePlan& plan() const { return plan_; }
  std::string_view mode() const { return reads_.disk().mode(); }
  std::chrono::nanoseconds io_cpu_time() const { return reads_.disk().cpu_time(); }
  // What was found of the last demands beside what an oracle would have found in as many slots. Any
  // thread; takes milliseconds.
  OracleWindow::Rates oracle() const;

 private:
  enum class State : uint8_t { kWaiting, kHeld, kActivated, kDone };
  struct Demand {
    State state = State::kWaiting;
    int32_t slot = -1;
    bool passing = false;  // In the place of an expert that is worth more.
  };

  ExpertStore(const ExpertCatalogue& catalogue, std::unique_ptr<Disk> disk,
              const StoreOptions& options, StorePlan plan, std::unique_ptr<SlotMemory> memory);

  void hold(size_t demand);
  void ask(ExpertKey key, int32_t slot, bool generated);
  void begin_read(int32_t slot, ExpertKey key);
  void start_expected(int32_t layer, std::span<const int32_t> experts);
  void end_expecting();
  void end_early();
  void count_wait();
  std::span<const int32_t> experts_of(const RoutedRow& row) const;
  void count_union(std::span<const ExpertDemand> demands);
  bool has_waiting() const { return next_waiting_ < order_.size(); }
  bool can_start() const;
  int32_t place(size_t demand, ExpertKey key);
  void start_waiting();
  void take_settled(std::span<const int32_t> slots);
  void drop_distrusted();
  void release(int32_t slot);
  void retire(std::vector<int32_t>& demands);
  void collect(ExpertWave& wave);
  void fail_demand(int32_t demand, ExpertWave& wave);
  void await_reads();

  const ExpertCatalogue& catalogue_;
  const StoreOptions options_;
  const StorePlan plan_;
  StoreStats stats_;
  ExpertCache cache_;
  OracleWindow oracle_;
  Prefetcher prefetcher_;
  std::unique_ptr<SlotMemory> memory_;  // Outlives the reads into it.
  SlotReads reads_;
  ReadAhead ahead_;

  // The layer that runs next, of which some experts are known already.
  int32_t expected_layer_ = -1;
  std::vector<bool> expected_;           // By expert.
  std::vector<int32_t> expected_slots_;  // A pin each.
  bool expected_wait_ = false;           // Some found no slot or no room among the reads.
  bool expected_reads_ = false;          // Some are read.
  std::optional<std::chrono::steady_clock::time_point> early_since_;  // They are being read.

  // The layer's run.
  int32_t layer_ = -1;
  std::span<const ExpertDemand> asked_;
  bool generated_ = false;   // Some row is of a generated token.
  int32_t prompt_rows_ = 0;  // Of this step, in the layer that runs.
  std::vector<Demand> demands_;
  std::vector<std::string> failures_;  // By demand.
  std::vector<int32_t> order_;         // Demands that were absent, next first.
  size_t next_waiting_ = 0;
  int32_t passing_ = 0;                    // Demands that are.
  std::vector<int32_t> given_, retiring_;  // To be done with by the last wave; by the one before.
  int32_t unfinished_ = 0;                 // Demands that no wave has finished.
  bool first_wave_ = false;
  int64_t early_ns_ = 0;  // Its demands were read so long before it ran.
  int64_t stall_ns_ = 0;  // And so long it waited.

  std::chrono::steady_clock::time_point step_begin_;
  int64_t step_stall_ns_ = 0;
  int64_t step_wait_ns_ = 0;  // What its layers would have waited without early reads.
  int32_t step_layers_ = 0;
  double layer_wait_ns_ = 0;  // Of late, with several generated rows: see wants_early_reads().
  int32_t step_tokens_ = 0;
  bool step_has_prompts_ = false;
  std::string doubt_;
};

}  // namespace weir::ssd
