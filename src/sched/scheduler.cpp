#include "sched/scheduler.h"

#include <algorithm>
#include <ranges>
#include <utility>

#include "base/check.h"
#include "sched/cross_fills.h"
#include "sched/disk_loads.h"
#include "sched/media_features.h"
#include "sched/sequence_blocks.h"
#include "sched/sequence_order.h"

namespace weir::sched {

namespace {

// The part of a slab that prompts of callers in debt may have at least beside others' prompts. An
// eighth: the others wait little longer for their slab, and its weights are still read for hundreds
// of tokens.
constexpr int32_t kSlabPart = 8;

// Prompts before this slice's that are not done have been passed by it.
void note_passed(const OpenSequences& open, const Slice& slice) {
  const auto passed = [&slice](const Sequence* seq) { return precedes(seq, slice.seq); };
  for (Sequence* seq : open.running() | std::views::take_while(passed))
    if (seq->prefilling()) seq->passed_tokens += slice.count;
  for (Sequence* seq : open.waiting() | std::views::take_while(passed))
    seq->passed_tokens += slice.count;
}

int32_t certain_rows(const Step& step) {
  int32_t rows = step.token_count;
  for (const Slice& slice : step.slices) rows -= slice.drafts;
  return rows;
}

// Drafts are charged when it is known how many there are.
void charge(Shares& shares, const Step& step) {
  if (step.slices.empty()) return;
  if (!shares.several())
    return shares.charge_alone(*step.slices.front().seq->share, certain_rows(step));
  int32_t rows = 0;
  for (const Slice& slice : step.slices) {
    const bool scored = slice.seq->request->prompt_log && slice.first < slice.seq->prompt_length;
    const int32_t cost = (slice.count - slice.drafts) * (scored ? StepShares::kScoredRow : 1);
    shares.charge(*slice.seq->share, cost);
    rows += cost;
  }
  shares.end_step(rows);
}

}  // namespace

Scheduler::Scheduler(const Limits& limits, kv::SequenceMemory& memory) : open_(limits, memory) {}

void Scheduler::submit(Sequence* seq) {
  CHECK(seq->length > 0 && seq->length < seq->limit && seq->limit - 1 <= tokens_max());
  open_.submit(seq);
}

void Scheduler::bind(Step& step, Slice& slice, int32_t drafts) {
  Sequence* const seq = slice.seq;
  const int32_t dropped = slice.drafts - drafts;
  CHECK(drafts >= 0 && dropped >= 0);
  step.token_count -= dropped;
  slice.count -= dropped;
  slice.drafts = drafts;
  if (seq->state == Sequence::State::kEnded) return;
  seq->drafts_bound = drafts;
  seq->unsettled -= dropped;
  CHECK(seq->unsettled >= drafts);
  if (drafts > 0) open_.shares.charge_more(*seq->share, drafts);
}

void Scheduler::settle(Sequence* seq, int32_t drafts, int32_t taken) const {
  CHECK(drafts >= 0 && taken >= 0 && taken <= drafts);
  // One that has given way, or has all of its rows planned, remembers nothing.
  if (seq->unsettled == 0) return;
  seq->unsettled -= drafts;
  seq->computed += taken;
  seq->length = std::max(seq->length, seq->computed + 1);  // What a grammar has forced is in it.
  // A slice that is planned already learns of them by Slice::late.
  if (open_.memory.has_states() && seq->turn != open_.plan) seq->replays = taken;
}

void Scheduler::forget_shared() {
  open_.memory.forget_shared();
  for (Sequence* seq : open_.running()) kv::SequenceMemory::stop_sharing(seq->memory);
}

void Scheduler::next_step(Step& step, const PromptTokens& prompt_tokens) {
  CHECK(prompt_tokens.max > 0);  // Or there might be nothing to do for any sequence.
  const Limits& limits = open_.limits;
  const bool with_prompts = limits.slab_tokens_max == 0;
  step.clear();
  open_.begin_plan();
  if (open_.disk != nullptr) open_.disk->look(open_.waiting(), blocks_promised(open_.running()));
  admission_.exchange();
  decodes_.plan(step, with_prompts ? prompt_tokens.max : 0);
  admission_.admit();
  if (open_.features != nullptr) open_.features->look(open_.running());
  if (open_.fills != nullptr) open_.fills->look(open_.running());
  if (with_prompts)
    prompts_.plan_step(step, std::min(prompt_tokens.max, limits.step_tokens_max - step.token_count),
                  prompt_tokens.beside_decoders);
  commit(step);
  CHECK(step.token_count <= limits.rows_max());
}

void Scheduler::next_slab(Step& slab) {
  CHECK(std::ranges::none_of(open_.running(), &Sequence::in_slab));
  const int32_t tokens_max = open_.limits.slab_tokens_max;
  slab.clear();
  prompts_.plan_slab(slab, tokens_max, tokens_max / kSlabPart);
  for (const Slice& slice : slab.slices) slice.seq->in_slab = true;
  commit(slab);
}

void Scheduler::end_slab(const Step& slab) {
  for (const Slice& slice : slab.slices) {
    slice.seq->in_slab = false;
    share(open_.memory, slice.seq);
  }
}

// From here on the step counts as done.
void Scheduler::commit(Step& step) {
  for (const Slice& slice : step.slices)
    if (slice.seq->prefilling()) note_passed(open_, slice);
  for (Slice& slice : step.slices) {
    // Checkpoints are left where it is certain that the sequence comes by.
    open_.memory.plan(slice.seq->memory, *slice.seq, slice.first,
                      slice.first + slice.count - slice.drafts);
    slice.replays = std::exchange(slice.seq->replays, 0);
    slice.seq->computed += slice.count - slice.drafts;
    slice.seq->unsettled += slice.drafts;
    slice.seq->turn = open_.plan;
    if (slice.sample) ++slice.seq->length;
    if (!slice.seq->in_slab) share(open_.memory, slice.seq);
  }
  charge(open_.shares, step);
}

}  // namespace weir::sched
