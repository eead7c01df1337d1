// PromptPlanner: which tokens of prompts a step or a slab computes, in slices.
//
// Prompts take the room that they are given by priority, then fewest tokens left first. What a
// short prompt waits for is the step that ends it: so longer ones together have no more tokens of
// such a step than those that end in it (kBesideEnds). A prompt with n tokens left that has let
// kPatience * n prompt tokens of others that came after it pass is due: a part of each step
// (kDuePart) is kept for the oldest of those, so within a priority no prompt waits for ever, and
// none keeps the shorter ones waiting until it is done. A prompt whose next block another prompt
// computes in this very step is left out of the step, and finds the block in the next one: n equal
// prompts are computed once. So is one that finds a checkpoint of states then (kv/checkpoints.h).
// With those, what a prompt shares may reach further than what is computed of it; the rest of it
// comes in slices like any other.
//
// Media. Of a prompt whose pictures and sounds are not encoded the tokens before the first of those are
// computed. Where tokens see those after them (model::BothWays), a slice ends within no span of such
// tokens and has one at most: one that begins with a span waits until the step has room for it, or
// has the step's prompts to itself, which may make that longer than was asked.
//
// Callers (shares.h), where there are several of one priority. Prompts of callers with more credit
// go first, by quarters of it (Shares::rank()); of those in debt the least in debt. They have what
// step_shares.h allows them, or as many as the cost model does. A step becomes at most about twice
// as long for what one caller asks.
//
// Threads: owned by the engine thread. Allocates at construction only.
#pragma once

#include <cstdint>
#include <vector>

#include "sched/open_sequences.h"
#include "sched/step_shares.h"

namespace weir::sched {

class PromptPlanner {
 public:
  // `open` outlives it.
  explicit PromptPlanner(OpenSequences& open);

  // Adds slices of at most `tokens_max` tokens to the step. `beside`: how many a caller may have at
  // least, beside what others have.
  void plan_step(Step& step, int32_t tokens_max, int32_t beside);
  // The same for a slab, whose time is that of reading experts: it is filled.
  void plan_slab(Step& slab, int32_t tokens_max, int32_t beside);

 private:
  // `beside_ends`: how many tokens longer prompts may have at least beside those that end.
  // `rows_max`: of everything in it, whatever a prompt must have at once.
  void plan(Step& step, int32_t tokens_max, int32_t beside, int32_t beside_ends, int32_t rows_max);
  const Sequence* oldest_due() const;
  model::Mask span_of(const Sequence* seq, int32_t from) const;
  int32_t within_media(const Sequence* seq, int32_t count, int32_t whole_max) const;
  void choose(const Step& step);
  void order_by_caller();
  int32_t share_of(const Step& step, const Sequence* seq, int32_t beside);
  void add(Step& step, const Slice& slice) const;

  OpenSequences& open_;

  // Scratch of a plan.
  std::vector<Sequence*> prompts_;
  StepShares shares_;
  size_t counted_decodes_ = 0, counted_prompts_ = 0;  // Of what `shares_` knows.
};

}  // namespace weir::sched
