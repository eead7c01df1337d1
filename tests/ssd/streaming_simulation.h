// A decode loop that streams experts from a disk, on a simulated clock: the cache, the prefetcher
// and the order of reads are those of the store, the disk serves one read after another at a fixed
// rate, and compute takes fixed times. For comparing policies, not for predicting speed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "measure/route_trace.h"
#include "ssd/expert_cache.h"
#include "ssd/prefetcher.h"

namespace weir::ssd {

// A model like Qwen3-30B-A3B in 4 bits on a machine that reads 34 GB/s from memory: 8 experts of
// 2.7 MB in 48 layers, 30 ms a token when all is in memory.
struct SimulatedMachine {
  double disk_bytes_per_second = 2.1e9;
  double disk_latency_seconds = 100e-6;
  int64_t expert_bytes = 2'700'000;
  double layer_seconds = 245e-6;  // A layer's attention and router, before its experts are known.
  double expert_seconds = 47.5e-6;
  double lookahead_seconds = 4e-6;  // One more router.
  double speculation_seconds =
      0;  // A disk that speculative reads slow down for others: each so much.
  int32_t speculative_reads_max = 2;
};

struct SimulatedRun {
  int64_t tokens = 0;
  double seconds = 0, stall_seconds = 0;
  int64_t requests = 0, ready = 0;  // Experts asked for; in memory when asked for.
  int64_t demand_bytes = 0;
  double stall_ms() const { return 1e3 * stall_seconds / static_cast<double>(tokens); }
};

class StreamingSimulation {
 public:
  StreamingSimulation(const measure::RouteTrace& trace, int32_t slots, PrefetchMode mode,
                      const SimulatedMachine& machine)
      : trace_(trace),
        machine_(machine),
        cache_(trace.layers(), trace.experts(),
               std::vector<int32_t>(static_cast<size_t>(trace.layers()), 0),
               std::vector<int32_t>{slots}),
        prefetcher_(trace.layers(), trace.experts(), trace.top_k(), 64, mode),
        key_of_(static_cast<size_t>(slots), ExpertKey{-1, -1}),
        landed_at_(static_cast<size_t>(slots), 0),
        speculative_(static_cast<size_t>(slots), false),
        source_(static_cast<size_t>(slots), GuessSource::kPreviousToken) {
    cache_.set_usable(0, slots);
  }

  // Runs the steps that are left, `steps` at most, and returns what they took.
  SimulatedRun run(int64_t steps = INT64_MAX) {
    run_ = {};
    const std::span<const measure::RouteRow> rows = trace_.rows();
    for (; steps > 0 && at_ < rows.size(); --steps) {
      const double begin = now_, stall_before = run_.stall_seconds;
      prefetcher_.begin_step();
      const int32_t step = rows[at_].step;
      const size_t first = at_;
      int32_t tokens = 0;
      while (at_ < rows.size() && rows[at_].step == step) tokens = run_layer();
      CHECK(at_ > first);
      cache_.advance();
      prefetcher_.step_done(now_ - begin, run_.stall_seconds - stall_before, tokens);
      run_.tokens += tokens;
      run_.seconds += now_ - begin;
    }
    return run_;
  }

  const Prefetcher& prefetcher() const { return prefetcher_; }
  const ExpertCache& cache() const { return cache_; }
  // Bytes in memory that a guess of the source read, and nobody has used.
  int64_t unused_bytes(GuessSource source) const {
    int64_t bytes = 0;
    for (size_t slot = 0; slot < key_of_.size(); ++slot)
      if (speculative_[slot] && source_[slot] == source) bytes += machine_.expert_bytes;
    return bytes;
  }
  // What the prefetcher's books say of the same.
  int64_t outstanding_bytes(GuessSource source) const {
    const SourceStats& s = prefetcher_.stats(source);
    return static_cast<int64_t>(s.issued_bytes.value() - s.used_bytes.value() -
                                s.wasted_bytes.value() - s.dropped_bytes.value());
  }

 private:
  // One layer's rows of one step. Returns how many rows decode.
  int32_t run_layer() {
    const std::span<const measure::RouteRow> rows = trace_.rows();
    const int32_t step = rows[at_].step, layer = rows[at_].layer;
    layer_now_ = layer;
    pump();
    now_ += machine_.layer_seconds;
    wanted_.clear();
    int32_t decodes = 0;
    for (; at_ < rows.size() && rows[at_].step == step && rows[at_].layer == layer; ++at_) {
      if (rows[at_].kind == measure::RouteKind::kLookahead) continue;
      const auto experts = trace_.experts_of(rows[at_]);
      if (rows[at_].kind == measure::RouteKind::kPrompt) continue;
      prefetcher_.routed(layer, rows[at_].sequence, experts);
      for (const int32_t expert : experts) {
        cache_.touch({layer, expert}, 1);
        if (std::find(wanted_.begin(), wanted_.end(), expert) == wanted_.end())
          wanted_.push_back(expert);
      }
      ++decodes;
    }
    demand(layer);
    look_ahead(step, layer);
    for (const ExpertKey key : prefetcher_.likely()) cache_.protect(key);
    compute();
    for (const int32_t expert : wanted_) cache_.unpin(cache_.slot_of({layer, expert}));
    cache_.layer_done(layer);
    return decodes;
  }

  // Pins what is there and reads what is not.
  void demand(int32_t layer) {
    for (const int32_t expert : wanted_) {
      const int32_t slot = cache_.slot_of({layer, expert});
      ++run_.requests;
      if (slot < 0) continue;
      cache_.pin(slot);
      const size_t s = static_cast<size_t>(slot);
      const bool late = landed_at_[s] > now_;
      if (!late) ++run_.ready;
      if (speculative_[s]) prefetcher_.used({layer, expert}, machine_.expert_bytes, late);
      speculative_[s] = false;
    }
    for (const int32_t expert : wanted_) {
      const ExpertKey key{layer, expert};
      if (cache_.slot_of(key) >= 0) continue;
      const int32_t slot = cache_.place(key, layer);
      CHECK(slot >= 0);
      take(slot, key, false);
      prefetcher_.missed(key);
      read(slot);
      demand_until_ = landed_at_[static_cast<size_t>(slot)];
      run_.demand_bytes += machine_.expert_bytes;
    }
  }

  void look_ahead(int32_t step, int32_t layer) {
    if (!prefetcher_.wants_lookahead()) return;
    now_ += machine_.lookahead_seconds;
    const std::span<const measure::RouteRow> rows = trace_.rows();
    for (size_t i = at_; i < rows.size() && rows[i].layer == layer + 1 && rows[i].step == step; ++i)
      if (rows[i].kind == measure::RouteKind::kLookahead)
        prefetcher_.looked_ahead(layer + 1, rows[i].sequence, trace_.experts_of(rows[i]));
  }

  // What is there first, then what lands, in order.
  void compute() {
    std::vector<double> landings;
    for (const int32_t expert : wanted_)
      landings.push_back(landed_at_[static_cast<size_t>(cache_.slot_of({layer_now_, expert}))]);
    std::sort(landings.begin(), landings.end());
    bool waited = false;
    for (const double landing : landings) {
      if (landing > now_) {
        waited = true;
        run_.stall_seconds += landing - now_;
        now_ = landing;
      }
      now_ += machine_.expert_seconds;
      pump();
    }
    prefetcher_.disk_busy(waited);
  }

  // Reads guesses while the disk has nothing on demand.
  void pump() {
    std::erase_if(in_flight_, [&](double landing) { return landing <= now_; });
    Prefetcher::Guess guess;
    while (now_ >= demand_until_ &&
           static_cast<int32_t>(in_flight_.size()) < machine_.speculative_reads_max &&
           prefetcher_.next([&](ExpertKey key) { return cache_.slot_of(key) < 0; }, guess)) {
      const int32_t slot = cache_.place_speculative(guess.key, layer_now_, guess.probability);
      if (slot < 0) continue;
      take(slot, guess.key, true);
      source_[static_cast<size_t>(slot)] = guess.source;
      prefetcher_.issued(guess, machine_.expert_bytes);
      read(slot);
      disk_free_at_ += machine_.speculation_seconds;
      in_flight_.push_back(landed_at_[static_cast<size_t>(slot)]);
      // The simulated disk cannot fail: the memory may be taken again as soon as it has landed, and
      // a guess is protected until its layer has run, which is later.
      cache_.unpin(slot);
    }
  }

  // The slot changes hands; a guess that nobody used was wasted.
  void take(int32_t slot, ExpertKey key, bool speculative) {
    const size_t s = static_cast<size_t>(slot);
    if (speculative_[s]) prefetcher_.wasted(key_of_[s], machine_.expert_bytes);
    key_of_[s] = key;
    speculative_[s] = speculative;
  }

  void read(int32_t slot) {
    disk_free_at_ = std::max(disk_free_at_, now_) +
                    static_cast<double>(machine_.expert_bytes) / machine_.disk_bytes_per_second;
    landed_at_[static_cast<size_t>(slot)] = disk_free_at_ + machine_.disk_latency_seconds;
  }

  const measure::RouteTrace& trace_;
  const SimulatedMachine machine_;
  ExpertCache cache_;
  Prefetcher prefetcher_;
  size_t at_ = 0;  // The next row.
  int32_t layer_now_ = 0;
  double now_ = 0;
  double disk_free_at_ = 0;
  double demand_until_ = 0;          // When the last read on demand lands.
  std::vector<ExpertKey> key_of_;    // [slots]
  std::vector<double> landed_at_;    // [slots]
  std::vector<bool> speculative_;    // [slots]: read because of a guess, and not used yet.
  std::vector<GuessSource> source_;  // [slots]: whose guess.
  std::vector<double> in_flight_;    // When speculative reads land.
  std::vector<int32_t> wanted_;      // The experts of the layer that runs.
  SimulatedRun run_;
};

}  // namespace weir::ssd
