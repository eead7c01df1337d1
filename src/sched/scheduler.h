// Scheduler decides what the next forward pass computes. Pure policy: no clock, no threads, no
// model, and no memory: it counts in blocks of SequenceMemory, which knows what they are made of.
//
// The policy (decision 12). Decode first: every running sequence past its prompt gets its one
// token, so that a long prompt delays none by more than one step (decode_planner.h). Prompts take
// the rest of the budget (prompt_planner.h). A request is admitted when there is memory for it, and
// the last one gives its memory back when there is too little (admission.h).
// Requests precede each other by priority (lower first), then by arrival. "Before", "first" and
// "last" mean this order here and there; a priority is strict, so a flood of requests of a high one
// starves the others. Among the sequences of several callers more holds, which those headers say;
// a caller that is alone has everything.
//
// Slabs. Where prompts are computed some layers at a time between steps of generated tokens
// (Limits::slab_tokens_max), a step has no prompts: next_slab() plans them, one slab at a time.
// What is in a slab keeps its memory, is in no step, and shares nothing until end_slab().
//
// Threads: owned by the engine thread. Allocates at construction only.
#pragma once

#include <cstdint>
#include <limits>

#include "kv/sequence_memory.h"
#include "sched/admission.h"
#include "sched/decode_planner.h"
#include "sched/open_sequences.h"
#include "sched/prompt_planner.h"
#include "sched/step.h"

namespace weir::sched {

class Scheduler {
 public:
  // `memory` outlives the scheduler.
  Scheduler(const Limits& limits, kv::SequenceMemory& memory);

  // Most tokens, prompt and output, that one sequence may remember: it fits when it is alone.
  int32_t tokens_max() const { return open_.memory.blocks() * kv::kPageTokens; }
  // Sequences that are submitted from here on may find blocks on disk. `loads` outlives the
  // scheduler.
  void use_disk(DiskLoads& loads) { open_.disk = &loads; }
  // Prompts may have pictures or sounds. `features` outlives the scheduler.
  void use_features(MediaFeatures& features) { open_.features = &features; }
  // What is submitted and not removed.
  const OpenSequences& open() const { return open_; }

  // REQUIRES: the positions are set up (SequencePool::take()); all but the last token fit
  // tokens_max().
  void submit(Sequence* seq);
  // Finished or cancelled: its memory goes back. REQUIRES: the request is still alive.
  void remove(Sequence* seq) { open_.remove(seq); }

  // Tokens that were not sampled are known up to `seq->known`, and to be computed.
  void extend(Sequence* seq) { open_.extend(seq); }
  // The planned step has so many drafts in this slice, not as many as there is room for. REQUIRES:
  // no plan has been made since.
  void bind(Step& step, Slice& slice, int32_t drafts);
  // Of the drafts in a slice of the sequence so many were taken: they are computed.
  void settle(Sequence* seq, int32_t drafts, int32_t taken) const;

  // Something in shared memory may be wrong: what is shared now is given to no sequence.
  void forget_shared();

  // How many rows of generated tokens the next step is likely to have.
  int32_t decode_rows_expected() const { return decodes_.rows_expected(); }

  // What a cost model says of the next step's prompts.
  struct PromptTokens {
    int32_t max = std::numeric_limits<int32_t>::max();  // More than 0; keeps steps short.
    // How many take about as long as the decoders of several callers without them.
    int32_t beside_decoders = 0;
  };

  // Plans a step; empty when there is nothing to do. The plan counts as done at once (see
  // Sequence).
  // REQUIRES: what all but the last planned step sampled is known.
  void next_step(Step& step, const PromptTokens& prompt_tokens);
  // Plans a slab; empty when no prompt is to be computed. REQUIRES: the last one has ended.
  void next_slab(Step& slab);
  // The slab is computed, and what it sampled is published.
  void end_slab(const Step& slab);

 private:
  void commit(Step& step);

  OpenSequences open_;
  Admission admission_{open_};
  DecodePlanner decodes_{open_, admission_};
  PromptPlanner prompts_{open_};
};

}  // namespace weir::sched
