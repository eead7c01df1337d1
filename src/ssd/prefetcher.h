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
// of such guesses that came true. Layers wrap: after the last one comes the next token's first.
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
#include "ssd/prefetch_switch.h"
#include "ssd/transition_counts.h"

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
  // The layer was routed for a row of a prompt: learns only what sequence `sequence` chose last.
  void routed_prompt(int32_t layer, int32_t sequence, std::span<const int32_t> experts);
  // Layer `layer`'s router, applied early to a hidden state of `sequence`, best first; more than
  // top_k entries are welcome. REQUIRES: after routed() of the layer before, for the same row.
  void looked_ahead(int32_t layer, int32_t sequence, std::span<const int32_t> experts);
  // Whether looked_ahead() is worth its arithmetic in this step.
  bool wants_lookahead() const { return wants_lookahead_; }
  // An expert of the layer that runs had to be read on demand; before or after its routed().
  void missed(ExpertKey key);

  // The best guess for which absent(key) is true, if it is worth a read now; it is not returned
  // again before its layer has run. Say issued() when it is taken.
  template <class F>
  bool next(F&& absent, Guess& out) {
    while (pop(out))
      if (absent(out.key)) {
        watch(out);
        return true;
      }
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
  void dropped(ExpertKey key);                         // Never submitted to the disk.
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
  static constexpr int32_t kDepth = TransitionCounts::kDepthMax;
  // Levels of a raw score, which is a share of transitions; as many again for what the last token
  // chose, too.
  static constexpr int32_t kLevels = 64;
  static constexpr int32_t kShareOfLevel = TransitionCounts::kShareOne / kLevels;
  static constexpr int32_t kWatchedMax = 256;

  // How often guesses of one raw score came true.
  struct Tally {
    float hits = 0;
    float trials = 0;
  };
  // What is known of one sequence's routing.
  struct Sequence {
    std::vector<int16_t> last;       // [layers, top_k]: the last choice; -1: none yet.
    std::vector<uint8_t> levels;     // [layers, depth, experts]: what was guessed for them.
    std::vector<uint8_t> guessed;    // [layers, depth]: whether it was.
    std::vector<int32_t> lookahead;  // Best first.
    int32_t lookahead_layer = -1;
  };
  struct Issued {
    int64_t bytes = 0;
    GuessSource source = GuessSource::kPreviousToken;
  };
  // A guess that was absent when asked for, or issued: what came of it is seen when its layer runs.
  struct Watched {
    Guess guess;
    bool came_true = false;
    bool named = false;  // By contradicted().
    bool issued = false;
  };

  size_t index(ExpertKey key) const {
    return static_cast<size_t>(key.layer) * static_cast<size_t>(experts_) +
           static_cast<size_t>(key.expert);
  }
  int32_t ahead(int32_t layer, int32_t distance) const { return (layer + distance) % layers_; }
  std::span<int16_t> last(Sequence& sequence, int32_t layer) const;
  std::span<float> chances(int32_t layer);
  float least_chance() const;
  float threshold() const;
  bool uses(GuessSource source) const;

  void enter_layer(int32_t layer);
  void leave_layer(int32_t layer);
  void settle(Sequence& sequence, int32_t layer, std::span<const int32_t> experts);
  void settle_lookahead(const Sequence& sequence, int32_t layer, std::span<const int32_t> experts);
  void count_right(GuessSource source, int32_t layer, std::span<const int32_t> guesses,
                   std::span<const int32_t> experts);
  void learn(Sequence& sequence, int32_t layer, std::span<const int32_t> experts);
  void guess(Sequence& sequence, int32_t layer, int32_t distance);
  std::span<uint8_t> levels(Sequence& sequence, int32_t layer, int32_t distance) const;
  void collect(int32_t layer);
  void count_misses(int32_t layer);
  bool pop(Guess& out);
  void watch(const Guess& guess);
  Issued take_issued(ExpertKey key);

  const int32_t layers_;
  const int32_t experts_;
  const int32_t top_k_;
  const int32_t depth_;
  const PrefetchMode mode_;
  bool wants_lookahead_ = false;
  int32_t layer_now_ = -1;        // Its rows are being routed; -1: between steps.
  int32_t layer_last_ = -1;       // The last one routed.
  int32_t lookahead_layer_ = -1;  // Of the last looked_ahead() since a layer was entered.
  int32_t steps_ = 0;             // Rotates the distance that a layer settles.
  uint64_t busy_layers_ = 0;      // A bit for each of the last 64.
  std::array<PrefetchSwitch, kGuessSources> switches_;
  TransitionCounts transitions_;
  std::vector<Sequence> sequences_;
  std::array<std::array<Tally, 2 * kLevels>, kDepth> tallies_;  // By distance; [in last, level].
  std::array<std::array<float, 2 * kLevels>, kDepth> worth_;    // The same as probabilities.
  std::array<uint8_t, kDepth> least_{};         // Levels below are worth nothing to speak of.
  std::vector<Tally> ranks_;                    // Of lookahead.
  std::array<float, kGuessSources> honesty_;    // Came true / promised, of guesses not in memory.
  std::vector<float> chance_;                   // [layers, experts]: that the next visit needs it.
  std::vector<uint8_t> marks_;                  // [layers, experts]
  std::array<bool, kGuessSources> counted_{};   // The layer's best guesses are marked.
  std::vector<Issued> issued_;                  // [layers, experts]
  std::vector<std::vector<Guess>> candidates_;  // [layers]: best last.
  std::vector<uint8_t> stale_;                  // [layers]: candidates_ are to be collected again.
  std::vector<Watched> watched_;
  std::vector<ExpertKey> likely_;
  std::vector<ExpertKey> contradicted_;
  std::vector<ExpertKey> misses_;  // Of the layer that runs.
  std::vector<uint16_t> shares_;   // [experts]
  std::vector<int32_t> order_;     // [experts]
  std::array<SourceStats, kGuessSources> stats_;
};

}  // namespace weir::ssd
