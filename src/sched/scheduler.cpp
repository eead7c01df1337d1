// Scheduler: a plan is retire, exchange, decode, admit, prefill, commit, in this order
// (next_step()). Who is let in is in scheduler_admission.cpp, what concerns memory in
// scheduler_memory.cpp.
#include "sched/scheduler.h"

#include <algorithm>
#include <ranges>
#include <tuple>

#include "base/check.h"

namespace weir::sched {

namespace {

// The part of a slab that prompts of callers in debt may have at least beside others' prompts. An
// eighth: the others wait little longer for their slab, and its weights are still read for hundreds
// of tokens.
constexpr int32_t kSlabPart = 8;

// What a row of the sequence's prompt counts among callers.
int32_t row_cost(const Sequence* seq) { return seq->request->prompt_log ? Shares::kScoredRow : 1; }

// The blocks that a slice still needs.
int32_t blocks_missing(const Slice& slice) {
  return std::max(0, kv::blocks_for(slice.end()) - slice.seq->memory.blocks());
}

}  // namespace

Scheduler::Scheduler(const Limits& limits, kv::SequenceMemory& memory)
    : limits_(limits), memory_(memory), shares_(limits.queue_max) {
  CHECK(limits.running_max > 0);
  CHECK(limits.running_max <= limits.step_tokens_max);  // Every decoder fits in every step.
  CHECK(limits.running_max <= limits.queue_max);
  running_.reserve(static_cast<size_t>(limits.running_max));
  prefills_.reserve(static_cast<size_t>(limits.running_max));
  victims_.reserve(static_cast<size_t>(limits.running_max));
  turns_.reserve(static_cast<size_t>(limits.running_max));
  waiting_.reserve(static_cast<size_t>(limits.queue_max));
}

void Scheduler::next_step(Step& step, const PromptTokens& prompt_tokens) {
  CHECK(prompt_tokens.max > 0);  // Or nobody might have anything to do.
  step.clear();
  ++plans_;
  retire_planned();
  if (shares_.several()) exchange();
  blocks_lack_ = !plan_decodes(step, limits_.slab_tokens_max == 0 ? prompt_tokens.max : 0);
  if (!blocks_lack_) admit();
  if (limits_.slab_tokens_max == 0)
    plan_prefills(step, std::min(prompt_tokens.max, limits_.step_tokens_max - step.token_count),
                  prompt_tokens.beside_decoders);
  commit(step);
  CHECK(step.token_count <= limits_.step_tokens_max);
}

void Scheduler::next_slab(Step& slab) {
  CHECK(std::ranges::none_of(running_, &Sequence::in_slab));
  slab.clear();
  plan_prefills(slab, limits_.slab_tokens_max, limits_.slab_tokens_max / kSlabPart);
  for (const Slice& slice : slab.slices) slice.seq->in_slab = true;
  commit(slab);
}

void Scheduler::end_slab(const Step& slab) {
  for (const Slice& slice : slab.slices) {
    slice.seq->in_slab = false;
    share(slice.seq);
  }
}

// Sequences whose last token the step before has been planned to sample need nothing any more, and
// others no memory that their windows have left. The length of an answer is known without its
// tokens: such a row is never wasted.
void Scheduler::retire_planned() {
  const auto planned = [](const Sequence* seq) {
    return seq->length == seq->limit && !seq->in_slab;
  };
  for (Sequence* seq : running_) {
    if (!planned(seq)) continue;
    release(seq);
    --seq->share->running;
    seq->state = Sequence::State::kPlanned;
  }
  std::erase_if(running_, planned);
  for (Sequence* seq : running_)
    if (!seq->in_slab) memory_.leave(seq->memory, seq->computed);
}

// Returns false if a sequence had to give its memory back.
bool Scheduler::plan_decodes(Step& step, int32_t prompt_tokens_max) {
  choose_decodes(step);
  if (shares_.several()) hold_decodes(step, prompt_tokens_max);
  const bool room = make_room(step);
  for (const Slice& slice : step.slices) {
    memory_.grow(slice.seq->memory, slice.end());
    step.token_count += slice.count;
  }
  step.decode_slices = step.generated_slices = static_cast<int32_t>(step.slices.size());
  return room;
}

void Scheduler::choose_decodes(Step& step) {
  int32_t spare = limits_.step_tokens_max - static_cast<int32_t>(running_.size());
  for (Sequence* seq : running_) {
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
    const int32_t drafts = std::min({seq->drafts, room, spare});
    spare -= drafts;
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
void Scheduler::hold_decodes(Step& step, int32_t prompt_tokens_max) {
  for (const Sequence* seq : running_) Shares::begin(*seq->share);
  shares_.begin_step(prompt_tokens_max);
  const std::span<Slice> slices(step.slices);
  size_t running = 0;
  for (size_t begin = 0, end = 0; begin < slices.size(); begin = end) {
    const int32_t priority = slices[begin].seq->priority;
    for (; end < slices.size() && slices[end].seq->priority == priority; ++end)
      shares_.add_decodes(*slices[end].seq->share, slices[end].count);
    for (; running < running_.size() && running_[running]->priority <= priority; ++running) {
      const Sequence* seq = running_[running];
      if (seq->prefilling() && !seq->in_slab) shares_.expect_prompt(*seq->share, tokens_left(seq));
    }
    const std::span<Slice> group = slices.subspan(begin, end - begin);
    const auto rows_of = [](const Slice& slice) { return slice.seq->share->decode_rows; };
    Share& most = *std::ranges::max_element(group, {}, rows_of)->seq->share;
    const int32_t excess = most.decode_rows - shares_.decode_rows_max(most);
    if (excess <= 0) continue;
    shares_.note_bound();
    shares_.add_decodes(most, -hold(group, most, excess));
  }
  std::erase_if(step.slices, [](const Slice& slice) { return slice.count == 0; });
}

// Takes `excess` rows of one caller from slices of one priority, all but one at most; returns how
// many. Sequences have rows in turn.
int32_t Scheduler::hold(std::span<Slice> group, const Share& caller, int32_t excess) {
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
    const int32_t count = std::min(slice->count, spare);
    const int32_t drafts = std::max(slice->drafts - (slice->count - count), 0);
    slice->sample = slice->sample && count - drafts == slice->count - slice->drafts;
    slice->drafts = drafts;
    slice->count = count;
    spare -= count;
  }
  return rows - left;
}

// Memory for all slices, but for those whose sequence has to give its own back. Blocks reserved for
// prompts are not to be had.
bool Scheduler::make_room(Step& step) {
  int32_t missing = 0;
  for (const Slice& slice : step.slices) missing += blocks_missing(slice);
  bool room = true;
  while (missing > 0 && missing > memory_.available() - reserved()) {
    Sequence* const last = last_of_largest();
    const auto slice = std::ranges::find(step.slices, last, &Slice::seq);
    if (slice != step.slices.end()) {
      missing -= blocks_missing(*slice);
      step.slices.erase(slice);
    }
    preempt(last);
    room = false;
  }
  return room;
}

void Scheduler::plan_prefills(Step& step, int32_t tokens_max, int32_t beside) {
  choose_prefills(step, tokens_max);
  for (Sequence* seq : prefills_) {
    if (step.prefill_tokens >= tokens_max) break;
    match(seq);  // What others have computed since it was admitted.
    if (computed_in_step(seq, step)) continue;
    const int32_t left = tokens_left(seq);
    int32_t count =
        std::min({left, tokens_max - step.prefill_tokens, share_of_prompt(step, seq, beside)});
    if (count < std::min(left, tokens_max - step.prefill_tokens)) shares_.note_bound();
    if (count == 0) continue;
    // What a preempted sequence had generated comes in a slice of its own.
    if (limits_.prompts_differ && seq->computed < seq->prompt_length)
      count = std::min(count, seq->prompt_length - seq->computed);
    memory_.grow(seq->memory, seq->computed + count);
    if (shares_.several()) shares_.add_prompt(*seq->share, count * row_cost(seq));
    add_prefill(step,
                {.seq = seq, .first = seq->computed, .count = count, .sample = count == left});
  }
}

// In the order of their turns.
void Scheduler::choose_prefills(const Step& step, int32_t tokens_max) {
  prefills_.clear();
  for (Sequence* seq : running_)
    if (seq->prefilling()) prefills_.push_back(seq);
  if (!shares_.several()) {
    std::ranges::sort(prefills_, goes_first);
    return;
  }
  for (const Slice& slice : step.slices) Shares::begin(*slice.seq->share);
  for (const Sequence* seq : prefills_) Shares::begin(*seq->share);
  shares_.begin_step(tokens_max);
  counted_decodes_ = counted_prompts_ = 0;
  std::ranges::sort(prefills_, [this](const Sequence* a, const Sequence* b) {
    if (a->priority != b->priority || a->share == b->share) return goes_first(a, b);
    const Share &of_a = *a->share, &of_b = *b->share;
    const int32_t rank_a = shares_.rank(of_a), rank_b = shares_.rank(of_b);
    if (rank_a != rank_b) return rank_a > rank_b;
    if (rank_a > 0) return goes_first(a, b);
    return std::tuple(of_a.used, of_a.entered) < std::tuple(of_b.used, of_b.entered);
  });
}

// The most tokens that the step may have of this prompt for its caller's sake. What has a worse
// priority is no reason for fewer.
int32_t Scheduler::share_of_prompt(const Step& step, const Sequence* seq, int32_t beside) {
  if (!shares_.several()) return limits_.step_tokens_max + limits_.slab_tokens_max;
  for (; counted_decodes_ < static_cast<size_t>(step.decode_slices); ++counted_decodes_) {
    const Slice& slice = step.slices[counted_decodes_];
    if (slice.seq->priority > seq->priority) break;
    shares_.add_decodes(*slice.seq->share, slice.count);
  }
  for (; counted_prompts_ < prefills_.size(); ++counted_prompts_) {
    const Sequence* other = prefills_[counted_prompts_];
    if (other->priority > seq->priority) break;
    shares_.expect_prompt(*other->share, tokens_left(other));
  }
  const int32_t tokens = shares_.prompt_tokens_max(*seq->share, beside);
  return tokens / row_cost(seq) + tokens % row_cost(seq);
}

void Scheduler::add_prefill(Step& step, const Slice& slice) const {
  const bool generated = limits_.prompts_differ && slice.first >= slice.seq->prompt_length;
  step.slices.insert(generated ? step.slices.begin() + step.generated_slices++ : step.slices.end(),
                     slice);
  step.token_count += slice.count;
  step.prefill_tokens += slice.count;
}

// From here on the step counts as done.
void Scheduler::commit(const Step& step) {
  for (const Slice& slice : step.slices)
    if (slice.seq->prefilling()) note_passed(slice);
  for (const Slice& slice : step.slices) {
    memory_.plan(slice.seq->memory, *slice.seq, slice.first, slice.first + slice.count);
    slice.seq->computed += slice.count - slice.drafts;
    slice.seq->unsettled += slice.drafts;
    slice.seq->turn = plans_;
    if (slice.sample) ++slice.seq->length;
    if (!slice.seq->in_slab) share(slice.seq);
  }
  charge(step);
}

void Scheduler::charge(const Step& step) {
  if (step.slices.empty()) return;
  if (!shares_.several())
    return shares_.charge_alone(*step.slices.front().seq->share, step.token_count);
  int32_t rows = 0;
  for (const Slice& slice : step.slices) {
    const bool of_prompt = slice.first < slice.seq->prompt_length;
    const int32_t cost = slice.count * (of_prompt ? row_cost(slice.seq) : 1);
    shares_.charge(*slice.seq->share, cost);
    rows += cost;
  }
  shares_.end_step(rows);
}

// Whoever came before this slice's prompt and is not through its own has been passed.
void Scheduler::note_passed(const Slice& slice) {
  const auto passed = [&slice](const Sequence* seq) { return precedes(seq, slice.seq); };
  for (Sequence* seq : running_ | std::views::take_while(passed))
    if (seq->prefilling()) seq->passed_tokens += slice.count;
  for (Sequence* seq : waiting_ | std::views::take_while(passed)) seq->passed_tokens += slice.count;
}

}  // namespace weir::sched
