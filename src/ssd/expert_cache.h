// ExpertCache: which expert of a mixture-of-experts model is in which slot of memory, and whose
// slot goes next. Numbers only: it reads no file and touches no weight.
//
// What stays is decided by how often an expert was routed to lately: a score that loses a fixed
// share of its value with every generated token (an exponentially weighted count). Nothing decays
// in memory; increments grow instead. Among equals the expert whose layer comes last goes first.
//
// Experts of one size share a class of slots; a layer's experts all have one size. The victim is
// found by the minimum of each layer's row of scores, kept until something in the row changes: one
// short pass over a row and one over the layers, however many slots there are.
//
// Threads: owned by the engine's leader; only the counters are read by others. Allocates nothing
// after construction.
//
// Invariants:
// (1) A slot is without memory, free, or holds one expert; an expert is in at most one slot.
// (2) A pinned slot is never taken; a protected one only by a demand that finds no other.
// (3) usable == free + residents in each class, and never more than the class has slots.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/metrics.h"

namespace weir::ssd {

// An expert by place: `layer` counts the layers that have experts.
struct ExpertKey {
  int32_t layer = 0;
  int32_t expert = 0;
  bool operator==(const ExpertKey&) const = default;
};

class ExpertCache {
 public:
  // How much one touch counts. A row of a decode step counts 1; a step's rows together at most 4,
  // so that a burst of requests does not outlive them by more than 27 tokens (4 * .95^27 = 1).
  static float decode_weight(int32_t rows) { return rows < 4 ? static_cast<float>(rows) : 4.0f; }
  // The share of its score that an expert keeps per generated token. Replays are flat to about a
  // point from .9 to .98 and best here (bench/README.md, "Experts from disk").
  static constexpr float kKept = 0.95f;
  // Among equals: up to this much is taken off the score of the layer that comes last.
  static constexpr float kDistanceWeight = 0.02f;
  // An eviction that is undone within so many tokens counts as a reread.
  static constexpr uint32_t kRereadTokens = 64;

  // class_of_layer: for each layer, an index into slots_of_class. No slot is usable yet.
  ExpertCache(int32_t layers, int32_t experts, std::span<const int32_t> class_of_layer,
              std::span<const int32_t> slots_of_class, float kept = kKept);

  // The slot that holds the expert; -1: absent.
  int32_t slot_of(ExpertKey key) const { return slot_of_[index(key)]; }
  // REQUIRES: `slot` holds an expert.
  ExpertKey key_of(int32_t slot) const { return key(key_of_[slot_index(slot)]); }
  bool holds_expert(int32_t slot) const { return key_of_[slot_index(slot)] >= 0; }
  int32_t class_of(ExpertKey key) const { return class_of_layer_[static_cast<size_t>(key.layer)]; }

  // Pins are counted. REQUIRES: `slot` holds an expert; unpin() only what was pinned.
  void pin(int32_t slot);
  void unpin(int32_t slot);
  int32_t pins(int32_t slot) const { return pins_[slot_index(slot)]; }

  // The expert was routed to in this step, present or not.
  void touch(ExpertKey key, float weight);
  // `rows` of a chunk of `chunk_rows` rows of prompts were routed to the expert: it scores at least
  // an eighth of them, and all of a long chunk together no more than 12 generated tokens. Chunks do
  // not add up: what a prompt began with says little of its answer. So an answer finds what its
  // prompt used last, and requests that decode meanwhile lose less than a point (bench/README.md).
  void touch_prompt(ExpertKey key, int32_t rows, int32_t chunk_rows);
  // A decode step is over: every score loses its share.
  void advance();
  // Gives an expert a score before anything ran (what an earlier run liked).
  void seed(ExpertKey key, float score);

  // The expert is guessed to be needed when its layer runs next: a demand takes its slot only if
  // nothing else is left, a guess never. Ends with layer_done(). May be said of absent experts.
  void protect(ExpertKey key);
  // The layer has run: what was protected for it is not any more.
  void layer_done(int32_t layer);

  // A slot for an expert that is absent: a free one, else that of the coldest unpinned expert of
  // its class, which is gone. The slot is returned with one pin. -1: all are pinned.
  // layer_now: the layer that runs; what its class keeps longest is what runs soonest after it.
  int32_t place(ExpertKey key, int32_t layer_now);
  // As place(), but never in the place of an expert that scores as much as `key` itself does: what
  // a prompt reads in passing. -1 also says: not worth a slot.
  int32_t place_prompt(ExpertKey key, int32_t layer_now);
  // As place(), for an expert that is needed with probability `gain` when its layer runs next: only
  // in the place of one that is needed less often, at most gain times per token by its score. The
  // expert is protected until its layer has run.
  int32_t place_speculative(ExpertKey key, int32_t layer_now, float gain);
  // The slot's read failed or was dropped: it is free again. REQUIRES: no pins.
  void discard(int32_t slot);

  // The first `slots` slots of a class have memory; never fewer than before.
  void set_usable(int32_t cls, int32_t slots);
  // Takes up to n slots out of use: free ones, then the coldest unpinned. Returns which, valid
  // until the next shrink() or grow(); their memory may be given back.
  std::span<const int32_t> shrink(int32_t cls, int32_t n);
  // Puts up to n slots that were shrunk away into use again; their memory is back.
  std::span<const int32_t> grow(int32_t cls, int32_t n);

  // In units of decode rows: what is routed to with every token approaches score_max().
  float score(ExpertKey key) const { return score_[index(key)] / increment_; }

  float score_max() const { return growth_ / (growth_ - 1); }

  int32_t layers() const { return layers_; }
  int32_t experts() const { return experts_; }
  int32_t slots() const { return static_cast<int32_t>(key_of_.size()); }
  int32_t class_begin(int32_t cls) const { return classes_[static_cast<size_t>(cls)].begin; }
  int32_t usable(int32_t cls) const { return classes_[static_cast<size_t>(cls)].usable; }
  int32_t residents() const { return residents_; }

  // Read by the metrics page.
  struct Stats {
    Counter evictions;
    Counter rereads;  // Experts placed again within kRereadTokens of their eviction.
    Gauge residents;
  };
  const Stats& stats() const { return stats_; }

  // Walks everything and checks the invariants.
  void check() const;

 private:
  struct SlotClass {
    int32_t begin = 0;  // Its slots are [begin, begin + count).
    int32_t count = 0;
    int32_t faulted = 0;  // What set_usable() said; slots beyond have no memory.
    int32_t usable = 0;
    std::vector<int32_t> layers;
    std::vector<int32_t> free;  // A stack.
    std::vector<int32_t> shed;  // A stack: shrunk away.
  };
  // The coldest expert of a layer that may be evicted; expert -1: not known since a change.
  struct Row {
    float value = 0;
    int32_t expert = -1;
    int32_t guarded = 0;  // How many experts of the layer are protected.
  };
  enum Flag : uint8_t { kProtected = 1, kEvicted = 2 };

  size_t index(ExpertKey key) const {
    return static_cast<size_t>(key.layer) * static_cast<size_t>(experts_) +
           static_cast<size_t>(key.expert);
  }
  ExpertKey key(int32_t index) const { return {index / experts_, index % experts_}; }
  static size_t slot_index(int32_t slot) { return static_cast<size_t>(slot); }
  size_t cost_index(ExpertKey key) const {
    return static_cast<size_t>(key.layer) * stride_ + static_cast<size_t>(key.expert);
  }

  void update_cost(ExpertKey key);
  void find_coldest(int32_t layer);
  ExpertKey coldest(const SlotClass& cls, int32_t layer_now, float* value);
  int32_t place_above(ExpertKey key, int32_t layer_now, float limit, bool demand);
  void evict(ExpertKey key);
  void renormalise();

  const int32_t layers_;
  const int32_t experts_;
  const size_t stride_;  // Of a row of costs: experts_, rounded up for whole vectors.
  const float growth_;   // 1 / kept.
  float increment_ = 1;  // What one decode row adds now.
  uint32_t now_ = 0;     // Counts advance().
  int32_t residents_ = 0;
  std::vector<int32_t> class_of_layer_;
  std::vector<SlotClass> classes_;
  std::vector<int32_t> slot_of_;   // [layers, experts]
  std::vector<float> score_;       // [layers, experts], in units of the first increment.
  std::vector<uint8_t> flags_;     // [layers, experts]
  std::vector<uint32_t> gone_at_;  // [layers, experts]: when evicted, if kEvicted.
  std::vector<float> cost_;        // [layers, stride]: score of what may go, else huge.
  std::vector<Row> rows_;          // [layers]
  std::vector<int32_t> key_of_;    // [slots]: index of the expert, -1: none.
  std::vector<int32_t> pins_;      // [slots]
  std::vector<int32_t> moved_;     // The answer of shrink() and grow().
  Stats stats_;
};

}  // namespace weir::ssd
