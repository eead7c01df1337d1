#include "sched/decode_planner.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "sched/sequence_blocks.h"
#include "sched/sequence_order.h"

namespace weir::sched {

namespace {

int32_t blocks_missing(const Step& step) {
  int32_t blocks = 0;
  for (const Slice& slice : step.slices) blocks += blocks_missing(slice);
  return blocks;
}

}  // namespace

DecodePlanner::DecodePlanner(OpenSequences& open, Admission& admission)
    : open_(open), admission_(admission) {
  turns_.reserve(static_cast<size_t>(open.limits.running_max));
}

void DecodePlanner::plan(Step& step, int32_t prompt_tokens_max) {
  choose(step);
  if (open_.shares.several()) hold_callers(step, prompt_tokens_max);
  make_room(step);
  for (const Slice& slice : step.slices) {
    open_.memory.grow(slice.seq->memory, slice.end());
    step.token_count += slice.count;
  }
  step.decode_slices = step.generated_slices = static_cast<int32_t>(step.slices.size());
}

int32_t DecodePlanner::rows_expected() const {
  int32_t rows = 0, drafts = 0;
  for (const Sequence* seq : open_.running()) {
    if (seq->prefilling()) continue;
    ++rows;
    drafts += std::min(seq->drafts, seq->drafts_bound);
  }
  return rows + std::min(drafts, draft_rows_max());
}

int32_t DecodePlanner::draft_rows_max() const {
  const Limits& limits = open_.limits;
  const std::span<Sequence* const> running = open_.running();
  int32_t spare = limits.step_tokens_max - static_cast<int32_t>(running.size());
  if (limits.draft_rows_max < std::numeric_limits<int32_t>::max()) {
    int32_t outstanding = 0;
    for (const Sequence* seq : running) outstanding += seq->replays + seq->unsettled;
    spare = std::clamp(limits.draft_rows_max - outstanding, 0, spare);
  }
  if (limits.slab_tokens_max > 0) return spare;  // Prompts are not in steps.
  const bool some_may_enter = !open_.waiting().empty() && std::ssize(running) < limits.running_max;
  const bool prompts = some_may_enter || std::ranges::any_of(running, &Sequence::prefilling);
  return prompts ? spare / kDraftPart : spare;
}

void DecodePlanner::choose(Step& step) const {
  const std::span<Sequence* const> running = open_.running();
  int32_t spare = open_.limits.step_tokens_max - static_cast<int32_t>(running.size());
  int32_t draft_rows = draft_rows_max();
  for (Sequence* seq : running) {
    if (seq->prefilling() || seq->in_slab) continue;
    // Which of the tokens that a grammar has forced were drafts is known when the step has run.
    if (seq->unsettled > 0 && seq->known > seq->computed) continue;
    if (tokens_left(seq) > 1) {
      const int32_t forced = std::min(tokens_left(seq) - 1, spare);
      spare -= forced;
      step.slices.push_back({.seq = seq,
                             .first = seq->computed,
                             .count = 1 + forced,
                             .sample = 1 + forced == tokens_left(seq)});
      continue;
    }
    // The last token of an answer is not computed.
    const int32_t room = seq->limit - 2 - seq->computed - seq->unsettled;
    if (room < 0) continue;  // It may have come to its end.
    const int32_t drafts = std::min({seq->drafts, room, spare, draft_rows});
    spare -= drafts;
    draft_rows -= drafts;
    step.slices.push_back({.seq = seq,
                           .first = seq->computed,
                           .count = 1 + drafts,
                           .sample = true,
                           .drafts = drafts,
                           .late = seq->unsettled});
  }
}

// Of a caller that has more rows than it may beside the others some sequences are left out. What
// has a worse priority is no reason. Only one caller can have more than all others together.
void DecodePlanner::hold_callers(Step& step, int32_t prompt_tokens_max) {
  const std::span<Sequence* const> running = open_.running();
  for (const Sequence* seq : running) StepShares::begin(*seq->share);
  StepShares shares(open_.shares, prompt_tokens_max);
  const std::span<Slice> slices(step.slices);
  size_t expected = 0;
  for (size_t begin = 0, end = 0; begin < slices.size(); begin = end) {
    const int32_t priority = slices[begin].seq->priority;
    for (; end < slices.size() && slices[end].seq->priority == priority; ++end)
      shares.add_decodes(*slices[end].seq->share, slices[end].count);
    for (; expected < running.size() && running[expected]->priority <= priority; ++expected) {
      const Sequence* seq = running[expected];
      if (seq->prefilling() && !seq->in_slab) shares.expect_prompt(*seq->share, tokens_left(seq));
    }
    const std::span<Slice> group = slices.subspan(begin, end - begin);
    const auto rows_of = [](const Slice& slice) { return slice.seq->share->decode_rows; };
    Share& most = *std::ranges::max_element(group, {}, rows_of)->seq->share;
    const int32_t excess = most.decode_rows - shares.decode_rows_max(most);
    if (excess <= 0) continue;
    open_.shares.note_bound();
    shares.add_decodes(most, -hold(group, most, excess));
  }
  std::erase_if(step.slices, [](const Slice& slice) { return slice.count == 0; });
}

// Takes `excess` rows of one caller from slices of one priority, all but one at most; returns how
// many. Sequences have rows in turn, and drafts have what is left of them.
int32_t DecodePlanner::hold(std::span<Slice> group, const Share& caller, int32_t excess) {
  turns_.clear();
  int32_t rows = 0;
  for (Slice& slice : group) {
    if (slice.seq->share != &caller) continue;
    turns_.push_back(&slice);
    rows += slice.count;
  }
  std::ranges::sort(turns_, [](const Slice* a, const Slice* b) {
    return std::tuple(a->seq->turn, a) < std::tuple(b->seq->turn, b);
  });
  const int32_t left = std::max(rows - excess, 1);
  int32_t spare = left;
  for (Slice* slice : turns_) {
    const int32_t certain = slice->count - slice->drafts;
    slice->count = std::min(certain, spare);
    slice->sample = slice->sample && slice->count == certain;
    spare -= slice->count;
  }
  for (Slice* slice : turns_) {
    slice->drafts = slice->sample ? std::min(slice->drafts, spare) : 0;
    slice->count += slice->drafts;
    spare -= slice->drafts;
  }
  return rows - left;
}

// Memory for all slices, but for those whose sequence has to give its own back. Blocks reserved for
// prompts are not to be had.
void DecodePlanner::make_room(Step& step) {
  const auto lacks = [&] {
    const int32_t missing = blocks_missing(step);
    return missing > 0 && missing > open_.memory.available() - blocks_reserved(open_.running());
  };
  if (!lacks()) return;
  for (Slice& slice : step.slices) slice.count -= std::exchange(slice.drafts, 0);
  while (lacks()) {
    const Sequence* const gone = admission_.give_way();
    if (gone == nullptr) return step.slices.clear();  // The one that is left waits, too.
    std::erase_if(step.slices, [gone](const Slice& slice) { return slice.seq == gone; });
  }
}

}  // namespace weir::sched
