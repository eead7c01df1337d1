// CrossFills: of a model with cross attention, the slots of sounds that running sequences wait for:
// which one is filled, and how far that is.
//
// A sequence has the slot of its sound from its admission on (kv/cross_slots.h). Where it is
// not filled, the sound is encoded, and each layer makes keys and values of what the encoder gives,
// a part at a time between steps. Until then no token of the sequence is computed (PromptPlanner).
// One sound at a time: a sound of 30 s has rows enough for every product, and what the encoder
// gives need not be kept, because the slot is.
//
// Threads: owned by the engine thread. Takes memory for what the encoder gives of one sound, at
// construction.
//
// Invariants:
// (1) The slot that is filled is held by this, so that it is taken for no other sound, even if
//     all sequences that waited for it have ended.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "kv/cross_slots.h"
#include "sched/encode_pace.h"
#include "sched/engine_stats.h"
#include "sched/sequence.h"

namespace weir::sched {

class CrossFills {
 public:
  // All outlive it. REQUIRES: the executor has an encoder of sounds.
  CrossFills(exec::Executor& executor, kv::CrossSlots& slots, EngineStats& stats);

  // In each plan: what running sequences wait for, in their order.
  void look(std::span<Sequence* const> running);
  // A slot is being filled, or waits for it.
  bool busy() const;
  // Why a slot cannot be filled: its sequences cannot be computed.
  struct Failed {
    int32_t slot = -1;
    std::string why;
  };
  // Goes on for so many seconds, an encoder's smallest part or a part of a layer at least. REQUIRES:
  // busy().
  std::optional<Failed> advance(double seconds_max);
  // The slot that it holds; -1: none.
  int32_t filling() const { return now_.slot; }

 private:
  struct Wanted {
    int32_t slot = -1;
    std::shared_ptr<const HeardSound> sound;
  };

  bool waits(const Wanted& wanted) const;
  Result<void> begin();
  void encode(double given, double left);
  bool fill_part();

  exec::Executor& executor_;
  const exec::ExecutorFacts facts_;
  kv::CrossSlots& slots_;
  EngineStats& stats_;
  std::vector<Wanted> wanted_;  // As the last plan has them.
  EncodePace pace_;
  Wanted now_;
  bool encodes_ = false;                // Else layers make keys and values.
  int32_t layer_ = 0, row_ = 0;         // The next part.
  std::unique_ptr<float[]> rows_;       // [cross_rows, hidden_size]
};

}  // namespace weir::sched
