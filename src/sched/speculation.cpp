#include "sched/speculation.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/seconds.h"
#include "base/trace.h"

namespace weir::sched {

namespace {

using model::Wanted;

// Where experts come from disk and steps wait for them, a row more is a row's experts more: above
// this share of a step a draft would have to be right in 62 to 86 % of all cases only to cost
// nothing, and each further one more. So there is one at most.
constexpr double kStalledShare = 0.15;
constexpr int32_t kStalledDrafts = 1;
// Of the last step in the mean share.
constexpr double kFresh = 1.0 / 8;

int32_t drafts_max_of(const EngineState& state, const SpeculationOptions& options) {
  const int32_t drafts = std::clamp(options.drafts_max, 0, DraftSource::kDraftsMax);
  if (!state.memory.has_states()) return drafts;
  return state.limits.draft_rows_max == 0 ? 0 : std::min(drafts, state.pages.tape_tokens());
}

// How many of the drafts a request takes.
int32_t allowed(const DraftOrder& order) {
  const DraftLimits& limits = order.request->draft_limits;
  int32_t count = 0;
  for (; count < order.count; ++count) {
    const uint8_t sureness = order.drafts[static_cast<size_t>(count)].sureness;
    if ((static_cast<float>(sureness) + 0.5f) / Draft::kClasses < limits.chance_min) break;
  }
  return count < limits.least ? 0 : count;
}

}  // namespace

Speculation::Speculation(EngineState& state, const SpeculationOptions& options)
    : state_(state),
      drafts_max_(drafts_max_of(state, options)),
      sources_(drafts_max_ == 0 ? std::vector<DraftSource*>() : options.sources),
      measured_(options.measured),
      stalled_seconds_(options.stalled_seconds),
      controller_(sources_.empty() ? 0 : state.sequences.count(), state.limits.running_max,
                  sources_.size()) {
  if (sources_.empty()) return;
  const auto running_max = static_cast<size_t>(state.limits.running_max);
  candidates_.reserve(running_max);
  choices_.reserve(running_max);
  orders_.reserve(running_max);
  asked_.reserve(running_max);
  room_.reserve(running_max);
}

void Speculation::begin(Sequence* seq) {
  if (sources_.empty()) return;
  const int32_t number = state_.sequences.index_of(seq);
  controller_.begin(number);
  for (DraftSource* source : sources_)
    seq->drafts = std::max(seq->drafts, source->begin(*seq->request, number));
  seq->drafts = std::clamp(seq->drafts, 0, std::min(drafts_max_, seq->request->draft_limits.most));
}

// Those that a step has left, its first row of the sequence being `first_row`.
Speculation::Pending Speculation::pending_tokens(StepBuffer& ran, int32_t first_row,
                                                 const Sequence* seq) {
  exec::StepResults& results = ran.results;
  const auto first = static_cast<size_t>(first_row);
  Pending pending;
  int32_t next = seq->known - seq->prompt_length;  // The output's next token.
  for (int32_t i = 0; i <= results.taken[first].drafts; ++i) {
    const int32_t row = first_row + i;
    if (pending.forced > 0) --pending.forced;  // A row of a token that has been forced.
    if (results.outputs_before[first] + i < next) continue;
    pending.tokens[pending.count++] = results.chosen[static_cast<size_t>(row)].token;
    pending.forced = static_cast<size_t>(results.forced_counts[static_cast<size_t>(row)]);
    std::ranges::copy(results.forced(row).first(pending.forced),
                      pending.tokens.begin() + static_cast<ptrdiff_t>(pending.count));
    pending.count += pending.forced;
    next += 1 + static_cast<int32_t>(pending.forced);
  }
  return pending;
}

void Speculation::bind(StepBuffer& next, StepBuffer& before) {
  if (sources_.empty()) return;
  const trace::Scope scope(trace::Kind::kEngine, "bind");
  find_candidates(next, before);
  const Step& step = next.step;
  DraftController::StepFacts facts{.certain_rows = step.token_count - step.prefill_tokens,
                                   .drafts_max = stalled_share_ > kStalledShare
                                                     ? std::min(drafts_max_, kStalledDrafts)
                                                     : drafts_max_};
  for (const Slice& slice : std::span(step.slices).first(static_cast<size_t>(step.decode_slices))) {
    facts.certain_rows -= slice.drafts;
    if (slice.sample) ++facts.sequences;
  }
  controller_.begin_step(facts);
  if (candidates_.empty()) return;
  if (!measured_ || !controller_.plain())
    for (size_t i = 0; i < sources_.size(); ++i) ask(next, before, static_cast<int32_t>(i));
  if (measured_)
    controller_.choose(choices_);
  else
    for (DraftChoice& choice : choices_) choice.kept = static_cast<int32_t>(choice.drafts.size());
  write(next);
}

void Speculation::find_candidates(StepBuffer& next, StepBuffer& before) {
  candidates_.clear();
  choices_.clear();
  for (size_t i = 0; i < static_cast<size_t>(next.step.decode_slices); ++i) {
    const Slice& slice = next.step.slices[i];
    if (slice.drafts == 0) continue;
    Candidate& added = candidates_.emplace_back();
    added.slice = i;
    const Sequence* const seq = slice.seq;
    DraftChoice choice;
    choice.sequence = state_.sequences.index_of(seq);
    if (seq->request != nullptr) {  // Else it has ended since.
      added.room = slice.drafts;
      const int32_t token = next.batch.token(next.batch.slices()[i].row_begin);
      if (token < 0) added.pending = pending_tokens(before, -1 - token, seq);
      // What has been forced is known to follow; sources guess what comes after that.
      choice.forced = std::min(static_cast<int32_t>(added.pending.forced), added.room);
      for (size_t d = 0; d < static_cast<size_t>(choice.forced); ++d)
        added.drafts[d] = {.token = added.pending.last_forced()[d],
                           .sureness = Draft::kClasses - 1};
    }
    choice.drafts = std::span(added.drafts).first(static_cast<size_t>(choice.forced));
    choices_.push_back(choice);
  }
}

// Has a source make drafts, and keeps them where they promise more than those that there are.
void Speculation::ask(StepBuffer& next, StepBuffer& before, int32_t source) {
  DraftSource& asked = *sources_[static_cast<size_t>(source)];
  room_.clear();
  asked_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    room_.push_back(candidates_[i].room);
    asked_.push_back(choices_[i]);
    asked_.back().source = source;
    asked_.back().kept = candidates_[i].room;
  }
  if (measured_ && asked.computes()) controller_.ask(source, asked_, room_);
  orders_.clear();
  for (size_t i = 0; i < candidates_.size(); ++i)
    if (asked_[i].kept > asked_[i].forced) add_order(next, before, i);
  if (orders_.empty()) return;
  const Clock::time_point begin = Clock::now();
  asked.draft(orders_);
  int32_t made = 0;
  for (const DraftOrder& order : orders_) {
    CHECK(order.count >= 0 && order.count <= std::ssize(order.drafts));
    made += order.count;
  }
  const double taken = seconds_since(begin);
  controller_.note_drafting(source, made, taken);
  add_seconds(asked, taken);
  auto order = orders_.begin();
  for (size_t i = 0; i < candidates_.size(); ++i) {
    DraftChoice& choice = asked_[i];
    if (choice.kept <= choice.forced) continue;
    const std::span tried(candidates_[i].tried);
    choice.drafts = tried.first(static_cast<size_t>(choice.forced + allowed(*order++)));
    if (choice.drafts.size() == choices_[i].drafts.size()) continue;
    if (controller_.expected(choice) <= controller_.expected(choices_[i])) continue;
    std::ranges::copy(choice.drafts, candidates_[i].drafts.begin());
    choices_[i] = choice;
    choices_[i].drafts = std::span(candidates_[i].drafts).first(choice.drafts.size());
  }
}

void Speculation::add_order(StepBuffer& next, StepBuffer& before, size_t index) {
  Candidate& candidate = candidates_[index];
  const DraftChoice& choice = asked_[index];
  const auto forced = static_cast<size_t>(choice.forced);
  std::ranges::copy(choice.drafts, candidate.tried.begin());
  const Slice& slice = next.step.slices[candidate.slice];
  const model::BatchSlice& rows = next.batch.slices()[candidate.slice];
  const int32_t late =
      rows.after < 0 ? 0 : before.results.taken[static_cast<size_t>(rows.after)].drafts;
  orders_.push_back(
      {.request = slice.seq->request,
       .sequence = choice.sequence,
       .pending = candidate.pending.all(),
       .forced = choice.forced,
       .position = slice.first + late + slice.count - slice.drafts + choice.forced,
       .memory = rows.memory,
       .drafts =
           std::span(candidate.tried).subspan(forced, static_cast<size_t>(choice.kept) - forced)});
}

// The drafts that are verified, in the place of the room for them.
void Speculation::write(StepBuffer& next) {
  room_.assign(next.step.slices.size(), 0);
  bool cut = false;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const Candidate& candidate = candidates_[i];
    const DraftChoice& choice = choices_[i];
    Slice& slice = next.step.slices[candidate.slice];
    room_[candidate.slice] = slice.drafts - choice.kept;
    cut = cut || slice.drafts > choice.kept;
    const int32_t first =
        next.batch.slices()[candidate.slice].row_begin + slice.count - slice.drafts;
    for (int32_t d = 0; d < choice.kept; ++d)
      next.batch.set_token(first + d, std::clamp(choice.drafts[static_cast<size_t>(d)].token, 0,
                                                 state_.facts.spec->vocab_size - 1));
    state_.scheduler.bind(next.step, slice, choice.kept);
  }
  if (cut) next.batch.cut(room_);
  for (const Wanted& wanted : next.batch.wanted())
    if (wanted.kind == Wanted::kNext || wanted.kind == Wanted::kVerify)
      next.sequence_of(wanted)->slot = wanted.row_begin;
  for (Candidate& candidate : candidates_)
    candidate.row = next.step.slices[candidate.slice].seq->slot;
}

// Returns the seconds that the sources have taken.
double Speculation::keep_up(const exec::StepWork& work, bool pure) {
  double sum = 0;
  for (size_t i = 0; i < sources_.size(); ++i) {
    DraftSource& source = *sources_[i];
    const auto number = static_cast<int32_t>(i);
    const exec::KeepUp keep_up = measured_ ? controller_.keep_up(number) : exec::KeepUp::kGuesses;
    const Clock::time_point begin = Clock::now();
    source.follow(work, keep_up);
    if (!source.computes() || keep_up == exec::KeepUp::kNot) continue;
    const double taken = seconds_since(begin);
    controller_.note_keeping_up(number, taken, pure);
    add_seconds(source, taken);
    sum += taken;
  }
  return sum;
}

void Speculation::add_seconds(const DraftSource& source, double seconds) {
  Gauge& sum = state_.stats.draft_seconds[source.kind()];
  sum.set(sum.value() + seconds);
}

void Speculation::follow(StepBuffer& ran, const StepBuffer& before, double seconds) {
  if (sources_.empty()) return;
  int32_t tokens = 0;
  for (const Wanted& wanted : ran.batch.wanted()) {
    const bool next = wanted.kind == Wanted::kNext || wanted.kind == Wanted::kVerify;
    if (!next || wanted.slice >= ran.step.decode_slices) continue;
    tokens += 1 + ran.results.taken[static_cast<size_t>(wanted.row_begin)].drafts;
  }
  bool drafted = false;
  for (size_t i = 0; i < candidates_.size(); ++i) {
    const int32_t taken = ran.results.taken[static_cast<size_t>(candidates_[i].row)].drafts;
    controller_.note_taken(choices_[i], taken);
    if (choices_[i].kept == 0) continue;
    drafted = true;
    // Null: it has ended in the step before, and what this one has of it is dropped.
    if (Request* request = ran.step.slices[candidates_[i].slice].seq->request)
      count(choices_[i], taken, request->draft_counts);
  }
  if (drafted) state_.stats.draft_steps.add();
  candidates_.clear();
  choices_.clear();
  const bool pure = ran.step.prefill_tokens == 0;
  const exec::StepWork work = ran.work(&before);
  const double kept_up = keep_up(work, pure);
  for (const model::BatchSlice& slice : work.batch.slices)
    if (work.batch.has_vectors(slice)) controller_.lose_text(slice.sequence);
  controller_.end_step(ran.step.token_count - ran.step.prefill_tokens, tokens, seconds, pure);
  if (stalled_seconds_) {
    const double stalled = stalled_seconds_();
    const double share = (stalled - std::exchange(stalled_, stalled)) / (seconds + kept_up);
    stalled_share_ += kFresh * (share - stalled_share_);
  }
  if (controller_.off()) state_.stats.draft_steps_off.add();
  state_.stats.draft_loss.set(controller_.loss_seconds());
}

void Speculation::count(const DraftChoice& choice, int32_t taken, DraftCounts& counts) {
  EngineStats& stats = state_.stats;
  const DraftKind kind = sources_[static_cast<size_t>(choice.source)]->kind();
  const int32_t drafts = std::max(choice.kept - choice.forced, 0);
  const int32_t right = std::max(taken - choice.forced, 0);
  stats.draft_rounds.add();
  stats.drafted[kind].add(static_cast<uint64_t>(drafts));
  stats.drafted_right[kind].add(static_cast<uint64_t>(right));
  for (int32_t i = 0; i < taken; ++i) stats.draft_places[static_cast<size_t>(i)].add();
  const auto add = [](std::atomic<int32_t>& count, int32_t more) {
    count.store(count.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  };
  add(counts.verified, drafts);
  add(counts.right, right);
  if (kind != DraftKind::kPrediction) return;
  add(counts.predicted, drafts);
  add(counts.predicted_right, right);
}

}  // namespace weir::sched
