// Prefetcher guesses which experts the layers ahead will need, from routing already known, and
// knows what each source of guesses was worth. It reads nothing: the store asks it for the best
// guess when the disk has nothing better to do, and tells it what became of it.
//
// Sources:
//  - the previous token: what the layers ahead chose for this sequence's last token, and what they
//    usually choose when this layer chooses what it has just chosen (counted while running);
//  - lookahead: the next layer's router, applied early to this layer's hidden state. It knows
//  better,
//    one layer ahead: it confirms, drops or adds.
// What a guess is worth is measured, not believed: each source's raw scores are mapped to the share
// of such guesses that came true. Layers wrap: behind the last one comes the next token's first.
//
// Order of calls in a step: begin_step(); then layer by layer routed() for each row (and
// looked_ahead() where wants_lookahead()), missed() for each read on demand, next() as long as the
// disk is idle; step_done().
//
// Threads: owned by the engine's leader; only the stats are read by others. Allocates nothing after
// construction.
//
// Invariant: for each source, in bytes: issued == used + wasted + dropped + outstanding.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/metrics.h"
#include "ssd/expert_cache.h"

namespace weir::ssd {

enum class PrefetchMode : uint8_t { kAuto, kPreviousToken, kLookahead, kOff };

enum class GuessSource : uint8_t { kPreviousToken, kLookahead };
inline constexpr size_t kGuessSources = 2;
std::string_view name_of(GuessSource source);  // "previous-token", "lookahead": metric labels.

// What a source was worth. Precision is right / guesses, recall is right / routed; on misses,
// foreseen / misses, of the experts that were not in memory when their layer was routed.
struct SourceStats {
  Counter guesses;   // Each visit of a layer: its top_k best guesses for each row.
  Counter right;     // Those that the layer was routed to.
  Counter routed;    // What layers were routed to, where the source had guessed.
  Counter misses;    // Of them: absent, or read because of a guess.
  Counter foreseen;  // Of the misses: among the source's guesses.
  Counter issued_bytes;
  Counter used_bytes;  // Routed to before it was evicted; late ones too.
  Counter late_bytes;  // Of used_bytes: still under way when needed.
  Counter wasted_bytes;
  Counter dropped_bytes;  // Taken back before the disk saw them.
  Gauge on;               // 1: guesses of this source are read.
};

class Prefetcher {
 public:
  struct Guess {
    ExpertKey key;
    float probability = 0;  // That the layer's next visit routes to it, as measured.
    GuessSource source = GuessSource::kPreviousToken;
  };

  // sequences: rows of a batch that decode are told apart by a slot number below sequences_max.
  Prefetcher(int32_t layers, int32_t experts, int32_t top_k, int32_t sequences_max,
             PrefetchMode mode);

  void begin_step();
  // The slot number belongs to another request from now on.
  void forget(int32_t sequence);

  // Layer `layer` was routed for a decode row of `sequence`, best expert first. Learns, settles
  // what was guessed for this layer, and guesses for the layers ahead.
  void routed(int32_t layer, int32_t sequence, std::span<const int32_t> experts);
  // The same for a row of a prompt: learns only what sequence `sequence` chose last.
  void routed_prompt(int32_t layer, int32_t sequence, std::span<const int32_t> experts);
  // Layer `layer`'s router, applied early to a hidden state of `sequence`, best first; more than
  // top_k entries are welcome. REQUIRES: behind routed() of the layer before, for the same row.
  void looked_ahead(int32_t layer, int32_t sequence, std::span<const int32_t> experts);
  // Whether looked_ahead() is worth its arithmetic in this step.
  bool wants_lookahead() const { return wants_lookahead_; }
  // An expert of the layer just routed had to be read on demand.
  void missed(ExpertKey key);

  // The best guess for which absent(key) is true, if it is worth a read now; it is not returned
  // again before its layer has run. Say issued() when it is taken.
  template <class F>
  bool next(F&& absent, Guess& out) {
    while (pop(out))
      if (absent(out.key)) return true;
    return false;
  }
  // Experts that the layers ahead most likely need, by the last routed() or looked_ahead(): to be
  // protected where they are in memory (ExpertCache::protect). Valid until the next call of either.
  std::span<const ExpertKey> likely() const { return likely_; }
  // Guesses issued and not used that newer knowledge contradicts: to be dropped, where the disk has
  // not seen them. Each is named once; valid until the next call that is not const.
  std::span<const ExpertKey> contradicted();

  // What became of a guess. After issued(), exactly one of the others, in the end.
  void issued(const Guess& guess, int64_t bytes);
  void used(ExpertKey key, int64_t bytes, bool late);  // Its layer routed to it.
  void wasted(ExpertKey key, int64_t bytes);           // Evicted, or its read failed, unused.
  void dropped(ExpertKey key, int64_t bytes);          // Never submitted to the disk.
  // Whether the expert was issued and nothing more was said of it.
  bool outstanding(ExpertKey key) const { return issued_[index(key)].bytes != 0; }

  // Once per layer: whether reads on demand kept the disk busy when guesses could have been read.
  void disk_busy(bool busy_at_issue);
  // A forward pass is over: decode tokens it made, its duration, the part spent waiting for the
  // disk.
  void step_done(double seconds, double stall_seconds, int32_t tokens);

  PrefetchMode mode() const { return mode_; }
  float busy_share() const;  // Of the last 64 layers.
  const SourceStats& stats(GuessSource source) const { return stats_[static_cast<size_t>(source)]; }

 private:
  size_t index(ExpertKey key) const {
    return static_cast<size_t>(key.layer) * static_cast<size_t>(experts_) +
           static_cast<size_t>(key.expert);
  }
  bool pop(Guess& out);

  struct Issued {
    int64_t bytes = 0;
    GuessSource source = GuessSource::kPreviousToken;
  };

  const int32_t layers_;
  const int32_t experts_;
  const PrefetchMode mode_;
  bool wants_lookahead_ = false;
  std::vector<Issued> issued_;  // [layers, experts]
  std::vector<ExpertKey> likely_;
  std::array<SourceStats, kGuessSources> stats_;
};

}  // namespace weir::ssd
