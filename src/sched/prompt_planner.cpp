#include "sched/prompt_planner.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "sched/media_features.h"
#include "sched/sequence_blocks.h"
#include "sched/sequence_order.h"

namespace weir::sched {

namespace {

// Of a step's tokens of prompts, for the oldest one that is due: a quarter. The others' take at
// most four thirds of what they take without it, and it at most four times what it takes alone.
constexpr int32_t kDuePart = 4;

// Tokens of longer prompts beside prompts that end, at least. Fewer would cost the longer ones more
// than the short ones gain: a step of 64 rows computes nearly as many a second as one of 512.
constexpr int32_t kBesideEnds = 64;

// What a row of the sequence's prompt counts among callers.
int32_t row_cost(const Sequence* seq) {
  return seq->request->prompt_log ? StepShares::kScoredRow : 1;
}

}  // namespace

PromptPlanner::PromptPlanner(OpenSequences& open) : open_(open), shares_(open.shares, 0) {
  prompts_.reserve(static_cast<size_t>(open.limits.running_max));
}

void PromptPlanner::plan_step(Step& step, int32_t tokens_max, int32_t beside) {
  plan(step, tokens_max, beside, kBesideEnds, open_.limits.rows_max());
}

void PromptPlanner::plan_slab(Step& slab, int32_t tokens_max, int32_t beside) {
  plan(slab, tokens_max, beside, tokens_max, tokens_max);
}

void PromptPlanner::plan(Step& step, int32_t tokens_max, int32_t beside, int32_t beside_ends,
                         int32_t rows_max) {
  shares_ = StepShares(open_.shares, tokens_max);
  choose(step);
  const Sequence* const waited = oldest_due();
  int32_t due_part =
      waited == nullptr ? 0 : std::min(tokens_left(waited), std::max(tokens_max / kDuePart, 1));
  if (waited != nullptr && waited->media) {
    const model::Mask span = span_of(waited, waited->computed);
    due_part = std::max(due_part, std::min(span.end - waited->computed, tokens_max));
  }
  bool waited_is_planned = false;
  int32_t ended = 0,
          beside_ended = 0;  // Tokens of prompts that end in this step, and of longer ones.
  for (Sequence* seq : prompts_) {
    if (step.prefill_tokens >= tokens_max) break;
    match(open_.memory, seq);  // What others have computed since it was admitted.
    if (computed_in_step(open_.memory, seq, step)) continue;
    const int32_t left = tokens_left(seq);
    int32_t room = std::min(left, tokens_max - step.prefill_tokens);
    const int32_t beside_max = std::max(ended, beside_ends);
    const bool longer = ended > 0 && left > beside_max;
    if (seq == waited) {
      if (longer) room = std::min(room, beside_max);
      waited_is_planned = true;
    } else {
      if (longer) room = std::min(room, beside_max - beside_ended);
      if (waited != nullptr && !waited_is_planned && precedes(waited, seq))
        room = std::min(room, tokens_max - step.prefill_tokens - due_part);
    }
    if (room <= 0) continue;
    int32_t count = std::min(room, share_of(step, seq, beside));
    if (count < room) open_.shares.note_bound();
    if (count == 0) continue;
    // What a preempted sequence had generated comes in a slice of its own.
    if (open_.limits.prompts_differ_from && seq->computed < seq->prompt_length)
      count = std::min(count, seq->prompt_length - seq->computed);
    if (seq->media && seq->computed < seq->prompt_length) {
      const bool first = step.prefill_tokens == 0 || seq == waited;
      count = within_media(seq, count, first ? rows_max - step.token_count : 0);
      if (count == 0) continue;
    }
    open_.memory.grow(seq->memory, seq->computed + count);
    if (open_.shares.several()) shares_.add_prompt(*seq->share, count * row_cost(seq));
    if (longer) beside_ended += count;
    if (count == left) ended += count;
    add(step, {.seq = seq, .first = seq->computed, .count = count, .sample = count == left});
  }
}

// The first span of tokens that see both ways, beyond `from`; or an empty one.
model::Mask PromptPlanner::span_of(const Sequence* seq, int32_t from) const {
  return span_after(*seq->media, open_.limits.both_ways, seq->prompt_length, from);
}

// How many of the next `count` tokens a slice may have for the sake of media; more, up to
// `whole_max`, where a span must be computed at once.
int32_t PromptPlanner::within_media(const Sequence* seq, int32_t count,
                                       int32_t whole_max) const {
  const int32_t from = seq->computed, ready = MediaFeatures::ready_until(seq) - from;
  count = std::min(count, ready);
  const model::Mask span = span_of(seq, from);
  if (span.begin == span.end) return count;
  if (from + count < span.end) {
    if (from < span.begin) return std::min(count, span.begin - from);
    if (span.end - from > std::min(whole_max, ready)) return 0;
    count = span.end - from;
  }
  const model::Mask next = span_of(seq, span.end);
  return next.begin == next.end ? count : std::min(count, next.begin - from);
}

const Sequence* PromptPlanner::oldest_due() const {
  for (const Sequence* seq : open_.running())
    if (seq->prefilling() && due(seq)) return seq;
  return nullptr;
}

void PromptPlanner::choose(const Step& step) {
  prompts_.clear();
  for (Sequence* seq : open_.running())
    if (seq->prefilling()) prompts_.push_back(seq);
  if (!open_.shares.several()) {
    std::ranges::sort(prompts_, shorter);
    return;
  }
  for (const Slice& slice : step.slices) StepShares::begin(*slice.seq->share);
  for (const Sequence* seq : prompts_) StepShares::begin(*seq->share);
  counted_decodes_ = counted_prompts_ = 0;
  order_by_caller();
}

void PromptPlanner::order_by_caller() {
  const Shares& shares = open_.shares;
  std::ranges::sort(prompts_, [&shares](const Sequence* a, const Sequence* b) {
    if (a->priority != b->priority || a->share == b->share) return shorter(a, b);
    const Share &of_a = *a->share, &of_b = *b->share;
    const int32_t rank_a = shares.rank(of_a), rank_b = shares.rank(of_b);
    if (rank_a != rank_b) return rank_a > rank_b;
    if (rank_a > 0) return shorter(a, b);
    return std::tuple(of_a.used, of_a.entered) < std::tuple(of_b.used, of_b.entered);
  });
}

// The most tokens that the step may have of this prompt for its caller's sake. What has a worse
// priority is no reason for fewer.
int32_t PromptPlanner::share_of(const Step& step, const Sequence* seq, int32_t beside) {
  if (!open_.shares.several()) return std::numeric_limits<int32_t>::max();
  for (; counted_decodes_ < static_cast<size_t>(step.decode_slices); ++counted_decodes_) {
    const Slice& slice = step.slices[counted_decodes_];
    if (slice.seq->priority > seq->priority) break;
    shares_.add_decodes(*slice.seq->share, slice.count);
  }
  for (; counted_prompts_ < prompts_.size(); ++counted_prompts_) {
    const Sequence* other = prompts_[counted_prompts_];
    if (other->priority > seq->priority) break;
    shares_.expect_prompt(*other->share, tokens_left(other));
  }
  const int32_t tokens = shares_.prompt_tokens_max(*seq->share, beside);
  return tokens / row_cost(seq) + tokens % row_cost(seq);
}

void PromptPlanner::add(Step& step, const Slice& slice) const {
  const bool generated =
      open_.limits.prompts_differ_from && slice.first >= slice.seq->prompt_length;
  step.slices.insert(generated ? step.slices.begin() + step.generated_slices++ : step.slices.end(),
                     slice);
  step.token_count += slice.count;
  step.prefill_tokens += slice.count;
}

}  // namespace weir::sched
