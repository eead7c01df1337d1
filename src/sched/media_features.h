// MediaFeatures: which pictures and sounds are encoded, and which sequences have theirs.
//
// A running sequence whose prompt has media that no page of the prefix cache covers pins their
// features in the feature cache, all at once, so that none keeps room that another lacks while it
// lacks some itself. Those that the cache lacks are encoded between steps, some sublayers at a
// time, as many together as the encoder takes. The prompt's tokens before the first medium that is
// not there are computed meanwhile (PromptPlanner). When the last row of its media is computed, or
// it has given way, the sequence lets them go.
//
// Threads: owned by the engine thread. Allocates for each medium that is encoded.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/encoder.h"
#include "sched/engine_stats.h"
#include "sched/feature_cache.h"
#include "sched/sequence.h"

namespace weir::sched {

class MediaFeatures {
 public:
  // Media that are encoded together: more find no room in any encoder's scratch memory.
  static constexpr size_t kTogetherMax = 16;

  // All outlive it. `hidden_size`: of the model; `cache_bytes`: what features may take.
  MediaFeatures(exec::Encoder& encoder, int32_t hidden_size, int64_t cache_bytes,
                EngineStats& stats);

  // Of so many rows of features.
  int64_t bytes_of_rows(int32_t rows) const { return cache_.bytes_of(rows); }
  int64_t bytes_max() const { return cache_.bytes_max(); }
  bool takes_pictures() const { return encoder_.sees_pictures(); }
  bool takes_sounds() const { return encoder_.hears_sounds(); }

  // In each plan: sequences that need features and have none get them, in order, as long as there
  // is room.
  void look(std::span<Sequence* const> running);
  // Tokens of its prompt before this one have what they begin with.
  static int32_t ready_until(const Sequence* seq);
  // A slice with rows of its media is in this plan.
  static void use(Sequence* seq, uint64_t plan) { seq->features_plan = plan; }
  // What the features of the sequence's `index`-th medium are. REQUIRES: they are ready.
  model::VectorRows rows(const Sequence* seq, size_t index) const;

  // Steps up to this plan have run: sequences that need theirs no more let them go.
  void settle(uint64_t plan_done);
  // No step refers to the sequence, which has ended.
  void let_go(Sequence* seq);

  // Something is encoded, or waits for that.
  bool busy();
  // Sequences that cannot have a medium of theirs.
  struct Failed {
    std::vector<Sequence*> sequences;
    std::string why;
  };
  // Encodes for so many seconds, a sublayer at least. REQUIRES: busy().
  std::optional<Failed> advance(double seconds_max);

  // Walks everything and checks the invariants.
  void check() const;

 private:
  static bool lacks(const Sequence* seq, size_t index);
  bool pin(Sequence* seq);
  Result<void> begin();
  Failed failed(const std::string& why);
  void end();
  void count(double seconds, bool sounds);

  exec::Encoder& encoder_;
  const int32_t hidden_size_;
  const int32_t levels_;
  EngineStats& stats_;
  FeatureCache cache_;
  uint64_t plan_done_ = 0;                      // As settle() was told.
  std::vector<Sequence*> holders_;              // Have some of theirs.
  std::vector<FeatureCache::Entry*> encoding_;  // Empty: none is encoded.
  // Scratch.
  std::vector<exec::EncodeTask> tasks_;
  std::vector<const Medium*> wanted_;
  std::vector<FeatureCache::Entry*> found_;
};

}  // namespace weir::sched
