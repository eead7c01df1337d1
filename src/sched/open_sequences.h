// OpenSequences: the sequences that have not ended, in order: those that run, which have memory,
// and those that wait.
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) running() and waiting() are each in order of precedence; only running sequences hold memory.
// (2) What admitted prompts have not taken of their blocks is reserved: as many are available. So a
//     slice of a prompt never lacks memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kv/sequence_memory.h"
#include "sched/shares.h"
#include "sched/step.h"

namespace weir::sched {

class CrossFills;
class DiskLoads;
class MediaFeatures;

class OpenSequences {
 public:
  // `memory_in` outlives it.
  OpenSequences(const Limits& limits_in, kv::SequenceMemory& memory_in);

  std::span<Sequence* const> running() const { return running_; }
  std::span<Sequence* const> waiting() const { return waiting_; }
  bool idle() const { return running_.empty() && waiting_.empty(); }
  // What all waiting sequences need for admission, sharing nothing.
  int64_t waiting_blocks() const { return waiting_blocks_; }
  uint64_t preemptions() const { return preemptions_; }

  // As Scheduler's.
  void submit(Sequence* seq);
  void remove(Sequence* seq);
  void extend(Sequence* seq);

  // A plan begins. Sequences whose last token has been planned run no more: they need nothing. The
  // others need no memory that their windows have left.
  void begin_plan();
  // It waits no more, and has memory. REQUIRES: a place.
  void start(Sequence* seq);
  // It gives its memory back, and waits.
  void preempt(Sequence* seq);
  // It gave way in this plan. The step that runs may still read its table of pages, and give it
  // tokens: so it is let in again in the next plan at the earliest.
  bool gave_way_now(const Sequence* seq) const { return seq->gave_way == plan; }

  // Walks everything and checks the invariants.
  void check() const;

  const Limits limits;
  kv::SequenceMemory& memory;
  Shares shares;
  uint64_t plan = 1;  // The number of the plan that is made; 0 is none.
  CrossFills* fills = nullptr;   // Null: the model has no cross attention.
  DiskLoads* disk = nullptr;     // Null: nothing is kept on disk.
  MediaFeatures* features = nullptr;  // Null: prompts have none.

 private:
  std::vector<Sequence*> running_;
  std::vector<Sequence*> waiting_;
  int64_t waiting_blocks_ = 0;
  uint64_t arrivals_ = 0;
  uint64_t preemptions_ = 0;
};

}  // namespace weir::sched
