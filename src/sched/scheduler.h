// Scheduler decides what the next forward pass computes. Pure policy: no clock, no threads, no
// model, and no memory: it counts in blocks of SequenceMemory, which knows what they are made of.
//
// The policy (decision 12):
//   Decode first. Every running sequence past its prompt gets its one token, and those that a
//   grammar has forced, so that a long prompt delays nobody by more than one step. Requests precede
//   each other by priority (lower first), then by arrival. "Before", "first" and "last" below mean
//   this order; a priority is strict, so who floods a high one starves the others. Prompts take the
//   rest of the budget in slices, by priority, then fewest tokens left first. A prompt with n
//   tokens left that has let kPatience * n prompt tokens of those behind it pass is due: it goes
//   before them, so within a priority nobody waits for ever. A request is admitted when the blocks
//   of its prompt and of a share of its output are available, in order; only while there are blocks
//   for all that wait, the shortest of a priority goes first. Thus nobody is admitted while one
//   before it waits for memory. When a sequence needs a block and none is available, the last one
//   gives all of its own back and waits; the full ones go to the prefix cache, so that little is
//   computed again.
//
// Callers (shares.h). What is above holds among the sequences of one caller, and no more than this
// among those of several with one priority; one that is alone has it all.
//   Admission. The caller with the fewest running sequences goes first, then that with more credit.
//   If it finds no place or no memory, and another caller would keep more running than it
//   then has (of blocks: at least as many), sequences of the one that has most give way, the last
//   first. So callers come to have equally many, and nobody gives way twice for one arrival.
//   Steps. Generated tokens of one caller take no more rows than what the others have in the step
//   is worth, and at least Shares::kRowsLeast: its sequences have them in turn, the longest without
//   first. So do prompts of callers in debt, or as many as the cost model allows. A step becomes at
//   most about twice as long for what one caller asks.
//   Prompts' turns. Those of callers with more credit go first, by quarters of it (Shares::rank());
//   of those in debt the least in debt.
//   Memory. The one that gives its blocks back is the last of the caller that may ask for most.
//
// Drafts. Of a sequence that has drafts (Sequence::drafts) a slice has some after its last token.
// How many of them are its next tokens is known when the step has run, and the plan of the step
// after is made before: it takes none of them as taken, has the memory for all of them, and its
// slice stands further on by those that were (Slice::late). Until settle() says, `computed` and
// `length` count what is certain, and Sequence::unsettled what may come on top.
//
// Sharing. A block enters the prefix cache as soon as the step that fills it is planned. Nobody can
// read it too early: the steps run in order, and blocks cached by one plan are first looked up by
// the next, whose step runs later. For the same reason memory is given back while a step still uses
// it: its next owner writes to it in a later step.
// A prompt whose next block another prompt computes in this very step is left out of the step, and
// finds the block in the next one: n equal prompts are computed once. So is one that finds a
// checkpoint of states then (kv/checkpoints.h). With those, what a prompt shares may reach further
// than what is computed of it; the rest of it comes in slices like any other.
//
// Slabs. Where prompts are computed some layers at a time between steps of generated tokens
// (Limits::slab_tokens_max), a step has no prompts: next_slab() plans them, one slab at a time.
// What is in a slab keeps its memory, is in no step, and shares nothing until end_slab().
//
// Threads: owned by the engine thread. Allocates at construction only.
//
// Invariants:
// (1) running and waiting are each in order of precedence; only running sequences hold
//     memory.
// (2) Blocks of admitted prompts that are not yet taken are reserved: what is available is at least
//     reserved(). So a slice of a prompt never lacks memory.
// (3) The first running sequence is never preempted for another one, but for one in a slab: it
//     comes to its end, whatever the others do.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "kv/sequence_memory.h"
#include "sched/sequence.h"
#include "sched/sequence_order.h"
#include "sched/shares.h"

namespace weir::sched {

// The tokens [first, first + count) of one sequence, run together in one forward pass.
struct Slice {
  Sequence* seq = nullptr;
  int32_t first = 0;
  int32_t count = 0;
  bool sample = false;  // The slice ends at the last token: what is wanted of it comes with it.
  // Its last tokens are drafts (Sequence::drafts): `sample` is of each of them as well.
  int32_t drafts = 0;
  // By how much the slice may stand further on, as drafts of the step before are taken.
  int32_t late = 0;

  // The end of what it may be.
  int32_t end() const { return first + late + count; }
};

// What one forward pass computes: the tokens of running sequences, one each but where a grammar has
// forced some; then slices to prefill. Where the arithmetic of prompts differs, slices of generated
// tokens come before those of prompts.
struct Step {
  std::vector<Slice> slices;
  int32_t token_count = 0;
  int32_t prefill_tokens = 0;
  int32_t decode_slices = 0;     // The first ones.
  int32_t generated_slices = 0;  // The first ones, where the arithmetic of prompts differs.

  void clear() {
    slices.clear();
    token_count = prefill_tokens = decode_slices = generated_slices = 0;
  }
};

struct Limits {
  int32_t step_tokens_max = 512;
  int32_t running_max = 64;
  int32_t queue_max = 1024;  // Sequences waiting or running.
  // Keys and values of a prompt's token differ from those of the same token generated
  // (Model::prompts_differ()): memory is shared only between tokens of one kind, and a slice has
  // only one kind.
  bool prompts_differ = false;
  int32_t slab_tokens_max = 0;  // 0: prompts go into steps.
};

class Scheduler {
 public:
  // `memory` outlives the scheduler.
  Scheduler(const Limits& limits, kv::SequenceMemory& memory);

  // Most tokens, prompt and output, that one sequence may remember: it fits when it is alone.
  int32_t tokens_max() const { return memory_.blocks() * kv::kPageTokens; }

  // REQUIRES: the positions are set up (SequencePool::take()); all but the last token fit
  // tokens_max().
  void submit(Sequence* seq);
  // Finished or cancelled: its memory goes back. REQUIRES: the request is still alive.
  void remove(Sequence* seq);

  // Tokens that were not sampled are known up to `seq->known`, and to be computed.
  void extend(Sequence* seq);
  // Of the drafts in a slice of the sequence so many were taken: they are computed.
  void settle(Sequence* seq, int32_t drafts, int32_t taken);

  // Something in shared memory may be wrong: nobody is given any of what is shared now.
  void forget_shared();

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

  bool idle() const { return running_.empty() && waiting_.empty(); }
  std::span<Sequence* const> running() const { return running_; }  // In order.
  std::span<Sequence* const> waiting() const { return waiting_; }  // In order.
  uint64_t preemptions() const { return preemptions_; }
  // Sequences of more than one caller are open.
  bool several_callers() const { return shares_.several(); }

  // Walks everything and checks the invariants. Called when the engine is idle, and by tests.
  void check() const;

 private:
  void retire_planned();
  bool plan_decodes(Step& step, int32_t prompt_tokens_max);
  void choose_decodes(Step& step);
  void hold_decodes(Step& step, int32_t prompt_tokens_max);
  int32_t hold(std::span<Slice> group, const Share& caller, int32_t excess);
  bool make_room(Step& step);
  void plan_prefills(Step& step, int32_t tokens_max, int32_t beside);
  void choose_prefills(const Step& step, int32_t tokens_max);
  int32_t share_of_prompt(const Step& step, const Sequence* seq, int32_t beside);
  void add_prefill(Step& step, const Slice& slice) const;
  void commit(const Step& step);
  void charge(const Step& step);
  void note_passed(const Slice& slice);

  // Admission.
  void exchange();
  bool exchange_for(Sequence* seq);
  Sequence* next_victim(const Sequence* seq, bool for_place) const;
  void tally();
  void admit();
  bool try_admit(Sequence* seq, int32_t promised);
  Sequence* next_waiting(int32_t promised) const;
  int32_t promised_blocks() const;
  Sequence* last_of_largest();
  void preempt(Sequence* seq);

  // Memory.
  void release(Sequence* seq);
  bool computed_in_step(const Sequence* seq, const Step& step) const;
  void match(Sequence* seq);
  void share(Sequence* seq);
  int32_t reserved() const;

  const Limits limits_;
  kv::SequenceMemory& memory_;
  std::vector<Sequence*> running_;
  std::vector<Sequence*> waiting_;
  int64_t waiting_blocks_ = 0;  // What all waiting sequences need for admission, sharing nothing.
  uint64_t arrivals_ = 0;
  uint64_t preemptions_ = 0;
  Shares shares_;
  uint64_t plans_ = 0;
  bool blocks_lack_ = false;  // The last plan left a sequence waiting for memory.

  // Scratch of a plan.
  std::vector<Sequence*> prefills_;
  std::vector<Sequence*> victims_;
  std::vector<Slice*> turns_;
  size_t counted_decodes_ = 0, counted_prompts_ = 0;  // Of what the shares of a step know.
};

}  // namespace weir::sched
