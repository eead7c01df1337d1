#include "sched/publisher.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/check.h"
#include "base/trace.h"
#include "sched/spoiled_pages.h"

namespace weir::sched {

namespace {

using sample::Continuation;

bool all_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
}

}  // namespace

void Publisher::publish(StepBuffer& ran) {
  check_weights();
  if (ran.empty()) return;
  const trace::Scope scope(trace::Kind::kEngine, "publish");
  now_ = Clock::now();
  if (!ran.results.failures.empty()) publish_failures(ran);
  note_progress(ran);
  for (size_t i = 0; i < ran.batch.wanted().size(); ++i) publish_entry(ran, i);
  for (Sequence* seq : ran.ends) publish_end(seq);
  state_.release(ran);
}

// What was computed with weights that are gone is no answer, nor does any of it come later.
void Publisher::check_weights() {
  EngineHandle& handle = state_.handle;
  if (handle.given_up() == nullptr)
    if (std::string why = state_.executor.lost_weights(); !why.empty())
      handle.give_up(std::move(why));
  const std::string* why = handle.given_up();
  if (why == nullptr) return;
  for (Sequence& seq : state_.sequences.all())
    if (seq.request != nullptr) state_.fail(&seq, *why);
  state_.scheduler.forget_shared();
}

// The keys and values of a failed slice are worthless, and were for others to share as soon as it
// was planned: a sequence that has taken one of its pages since fails with it.
void Publisher::publish_failures(StepBuffer& ran) {
  SpoiledPages spoiled(state_.pages.groups());
  for (const exec::Failure& failure : ran.results.failures) {
    const auto i = static_cast<size_t>(failure.slice);
    spoiled.add(ran.batch.slices()[i], ran.step.slices[i].late);
    state_.fail(ran.step.slices[i].seq, failure.why);
  }
  state_.scheduler.forget_shared();
  const std::string& why = ran.results.failures.front().why;
  std::vector<const Sequence*> seen;
  if (const StepBuffer* running = state_.running; running != nullptr && running != &ran)
    for (size_t i = 0; i < running->step.slices.size(); ++i) {
      Sequence* seq = running->step.slices[i].seq;
      seen.push_back(seq);
      const model::BatchSlice& slice = running->batch.slices()[i];
      if (spoiled.seen_from(slice.memory, slice.first_position)) state_.fail(seq, why);
    }
  const std::span<Sequence* const> open = state_.scheduler.open().running();
  const std::vector<Sequence*> others(open.begin(), open.end());
  for (Sequence* seq : others)
    if (std::ranges::find(seen, seq) == seen.end() &&
        spoiled.seen_from(seq->memory.view(), seq->computed))
      state_.fail(seq, why);
}

void Publisher::note_progress(const StepBuffer& ran) {
  for (const Slice& slice : ran.step.slices) {
    const Sequence* seq = slice.seq;
    if (seq->state == Sequence::State::kEnded || !seq->request->report_progress) continue;
    Request& request = *seq->request;
    const int32_t done = std::min(slice.first + slice.count, seq->prompt_length);
    // A sequence that was preempted computes its prompt once more.
    if (done <= request.prompt_done.load(std::memory_order_relaxed)) continue;
    request.prompt_cached.store(std::min(seq->matched_tokens, done), std::memory_order_relaxed);
    request.prompt_done.store(done, std::memory_order_release);
    state_.published = true;
  }
}

void Publisher::publish_entry(StepBuffer& ran, size_t entry) {
  const model::Wanted& wanted = ran.batch.wanted()[entry];
  Sequence* const seq = ran.sequence_of(wanted);
  if (seq->state == Sequence::State::kEnded) return;  // Its rows are wasted.
  if (seq->request->probe && !publish_probe(ran, entry, seq)) return;
  if (wanted.kind == model::Wanted::kScore) return publish_scores(ran, wanted, seq);
  if (wanted.kind != model::Wanted::kHidden) publish_tokens(ran, wanted, seq);
}

// False if nothing else is to be published of the entry.
bool Publisher::publish_probe(const StepBuffer& ran, size_t entry, Sequence* seq) {
  const auto row = static_cast<size_t>(ran.batch.wanted()[entry].row_begin);
  if (const auto* next = std::get_if<exec::Choose>(&ran.jobs[entry])) {
    if (next->probe >= 0) seq->request->probed = ran.results.probed[row];
    return true;
  }
  // No prompt's tokens are scored beside it.
  if (ran.results.continuations[row] == Continuation::kNoNumbers)
    state_.fail_without_numbers(seq);
  else
    seq->request->probed = ran.results.chosen[row].logprob;
  return false;
}

void Publisher::publish_scores(StepBuffer& ran, const model::Wanted& wanted, Sequence* seq) {
  exec::StepResults& results = ran.results;
  Request& request = *seq->request;
  for (int32_t row = wanted.row_begin; row < wanted.row_begin + wanted.rows; ++row) {
    const auto at = static_cast<size_t>(row);
    if (results.continuations[at] == Continuation::kNoNumbers)
      return state_.fail_without_numbers(seq);
    if (!request.prompt_ranks.empty())
      request.prompt_ranks[static_cast<size_t>(request.prompt_log->size())] = results.ranks[at];
    request.prompt_log->append(
        results.chosen[at], results.tops(row).first(static_cast<size_t>(results.top_counts[at])));
  }
}

// The tokens that rows have given, in order. What a token has forced stands in the log already when
// the rows that compute it give it once more.
void Publisher::publish_tokens(StepBuffer& ran, const model::Wanted& wanted, Sequence* seq) {
  const auto begin = static_cast<size_t>(wanted.row_begin);
  const int32_t taken = ran.results.taken[begin].drafts;
  state_.scheduler.settle(seq, wanted.rows - 1, taken);
  state_.stats.drafts.add(static_cast<uint64_t>(wanted.rows - 1));
  state_.stats.drafts_taken.add(static_cast<uint64_t>(taken));
  for (int32_t i = 0; i <= taken; ++i) {
    const int32_t row = wanted.row_begin + i;
    const bool numbers =
        ran.results.continuations[static_cast<size_t>(row)] != Continuation::kNoNumbers;
    if (!numbers) return state_.fail_without_numbers(seq);
    const int32_t known = seq->known - seq->prompt_length;
    if (ran.results.outputs_before[begin] + i < known) continue;
    CHECK(ran.results.outputs_before[begin] + i == known);
    if (!publish_token(ran.results, row, seq)) return;
  }
  if (seq->known > seq->length) state_.scheduler.extend(seq);
}

// False if the sequence has ended.
bool Publisher::publish_token(exec::StepResults& results, int32_t row, Sequence* seq) {
  const auto at = static_cast<size_t>(row);
  Request& request = *seq->request;
  if (seq->known == seq->prompt_length) note_prompt(seq);
  state_.published = true;
  const auto end = [&](FinishReason reason) {
    state_.finish(seq, reason);
    return false;
  };
  if (results.continuations[at] == Continuation::kStuck) return end(FinishReason::kError);
  const TokenLogprob chosen = results.chosen[at];
  if (std::ranges::find(seq->params.stop_token_ids, chosen.token) !=
      seq->params.stop_token_ids.end()) {
    request.end_token = chosen.token;
    request.end_logprob = chosen.logprob;
    return end(FinishReason::kStop);
  }
  request.log.append(chosen, results.tops(row).first(static_cast<size_t>(results.top_counts[at])));
  const auto forced = static_cast<size_t>(results.forced_counts[at]);
  for (const int32_t token : results.forced(row).first(forced))
    request.log.append({.token = token}, {});
  seq->known += 1 + static_cast<int32_t>(forced);
  state_.stats.generated_tokens.add(1 + forced);
  state_.stats.forced_tokens.add(forced);
  if (results.continuations[at] == Continuation::kComplete) return end(FinishReason::kStop);
  if (seq->known == seq->limit) return end(FinishReason::kLength);
  return true;
}

// The prompt was all there is to compute.
void Publisher::publish_end(Sequence* seq) {
  if (seq->state == Sequence::State::kEnded) return;
  if (!all_finite(seq->pooled) || !all_finite(seq->weights)) return state_.fail_without_numbers(seq);
  note_prompt(seq);
  state_.published = true;
  seq->request->pooled = std::move(seq->pooled);
  if (seq->request->attended) seq->request->attended->weights = std::move(seq->weights);
  state_.finish(seq, FinishReason::kLength);
}

// The prompt is computed.
void Publisher::note_prompt(const Sequence* seq) const {
  Request& request = *seq->request;
  request.first_token = now_;
  request.cached_tokens = seq->matched_tokens;
  state_.stats.prefix_queries.add(static_cast<uint64_t>(seq->prompt_length));
  state_.stats.prefix_hits.add(static_cast<uint64_t>(seq->matched_tokens));
}

}  // namespace weir::sched
