#include "sched/step_builder.h"

#include <algorithm>
#include <chrono>
#include <span>

#include "base/check.h"
#include "base/trace.h"

namespace weir::sched {

namespace {

using model::Wanted;

}  // namespace

StepBuilder::StepBuilder(EngineState& state, const EngineOptions& options,
                         Speculation& speculation)
    : state_(state),
      speculation_(speculation),
      step_seconds_max_(options.step_seconds_max),
      three_positions_(model::has_three_positions(*state.facts.spec)) {}

void StepBuilder::plan(StepBuffer& next, bool other_runs) {
  const trace::Scope scope(trace::Kind::kEngine, "plan");
  Scheduler& scheduler = state_.scheduler;
  const uint64_t preemptions = scheduler.open().preemptions();
  next.clear();
  scheduler.next_step(next.step, prompt_tokens());
  planned_decodes_ = next.step.token_count - next.step.prefill_tokens;
  for (const Slice& slice : next.step.slices) planned_decodes_ -= slice.drafts;
  write(next, other_runs);
  state_.stats.prompt_tokens.add(static_cast<uint64_t>(next.step.prefill_tokens));
  state_.stats.preemptions.add(scheduler.open().preemptions() - preemptions);
}

void StepBuilder::plan_slab(StepBuffer& slab) {
  slab.clear();
  state_.scheduler.next_slab(slab.step);
  write(slab, /*other_runs=*/false);
  state_.stats.prompt_tokens.add(static_cast<uint64_t>(slab.step.prefill_tokens));
  state_.stats.step_tokens.observe(slab.step.prefill_tokens);
}

void StepBuilder::learn(const Step& step, double seconds) {
  StepLoad load{.decode_rows = step.token_count - step.prefill_tokens,
                .prompt_tokens = step.prefill_tokens};
  for (const Slice& slice : std::span(step.slices).subspan(static_cast<size_t>(step.decode_slices)))
    load.keys_seen += StepCost::keys_seen(slice.first, slice.count);
  cost_.observe(load, seconds);
}

Scheduler::PromptTokens StepBuilder::prompt_tokens() const {
  Scheduler::PromptTokens tokens{.max = state_.limits.step_tokens_max};
  const Scheduler& scheduler = state_.scheduler;
  const bool several = scheduler.open().shares.several();
  if (step_seconds_max_ <= 0 && !several) return tokens;
  int32_t position = 0;
  for (const Sequence* seq : scheduler.open().running())
    if (seq->prefilling()) position = std::max(position, seq->computed);
  if (step_seconds_max_ > 0)
    tokens.max = std::min(
        tokens.max,
        cost_.tokens_within(step_seconds_max_, scheduler.decode_rows_expected(), position));
  // Of several callers' decoders not all are in every step: as many as in the last one.
  if (several) tokens.beside_decoders = cost_.tokens_beside(planned_decodes_, position);
  return tokens;
}

// The first slice of a request.
void StepBuilder::begin(Sequence* seq) const {
  Request& request = *seq->request;
  seq->sampler.emplace(seq->params, request.prompt, state_.facts.spec->vocab_size,
                       request.max_tokens);
  if (request.matcher) seq->sampler->constrain(std::move(request.matcher));
  seq->pooled = std::move(request.pooled);
  speculation_.begin(seq);
  request.started = Clock::now();
  request.begun.store(true, std::memory_order_release);
  state_.stats.queue_time.observe(
      std::chrono::duration<double>(request.started - request.arrived).count());
}

void StepBuilder::write(StepBuffer& next, bool other_runs) const {
  for (const Slice& slice : next.step.slices) {
    ++slice.seq->steps;
    if (!slice.seq->sampler) begin(slice.seq);
  }
  for (const Slice& slice : next.step.slices) {
    write_slice(next, slice, other_runs);
    want_rows(next, slice);
  }
}

void StepBuilder::write_slice(StepBuffer& next, const Slice& slice, bool other_runs) const {
  const Sequence* seq = slice.seq;
  const bool media = seq->media && slice.first < seq->prompt_length;
  model::Mask mask;
  if (media)
    mask = span_after(*seq->media, state_.limits.both_ways, seq->prompt_length, slice.first);
  if (mask.begin >= slice.first + slice.count) mask = {};
  next.batch.add_slice({.first_position = slice.first,
                        .after = slice.late > 0 ? seq->slot : -1,
                        .drafts = slice.drafts,
                        .replays = slice.replays,
                        .prompt_length = seq->prompt_length,
                        .memory = seq->memory.view(),
                        .mask = mask,
                        .rope_shift = seq->rope_shift,
                        .adapter = seq->adapter.get(),
                        .adapter_scale = seq->adapter_scale,
                        .sequence = state_.sequences.index_of(seq)});
  if (media) return write_media(next, slice);
  for (int32_t i = slice.first; i < slice.first + slice.count - slice.drafts; ++i) {
    const bool known = i < seq->known && slice.late == 0;
    // What is not known is one token: the one that the running step chooses.
    CHECK(known || (i == slice.first && i >= seq->known && other_runs && seq->slot >= 0));
    if (known)
      next.batch.add_token(seq->token(i));
    else
      next.batch.add_place(seq->slot);
  }
  for (int32_t i = 0; i < slice.drafts; ++i) next.batch.add_token(0);  // Speculation::bind().
}

// A slice of a prompt, and of what came after it, if that is computed once more: all tokens are known.
void StepBuilder::write_media(StepBuffer& next, const Slice& slice) const {
  Sequence* const seq = slice.seq;
  model::BatchBuilder& batch = next.batch;
  const int32_t end = slice.first + slice.count;
  CHECK(slice.drafts == 0 && slice.late == 0 && end <= seq->known);
  int32_t at = slice.first;
  const auto add_tokens = [&](int32_t until) {
    for (; at < until; ++at) batch.add_token(seq->token(at));
  };
  const std::vector<Medium>& media = seq->media->items;
  for (size_t i = 0; i < media.size() && media[i].first < end; ++i) {
    if (media[i].end() <= at) continue;
    int32_t row = 0;  // Of the medium: the run's first.
    for (const FeatureRun& run : media[i].runs) {
      const int32_t until = std::min(run.first + run.count, end);
      if (at < until && run.first < end) {
        add_tokens(run.first);
        model::VectorRows rows = state_.features->rows(seq, i);
        rows.rows = until - at;
        rows.vectors += int64_t{row + at - run.first} * state_.facts.spec->hidden_size;
        const std::span<const int32_t> ids(seq->request->prompt);
        batch.add_vectors(rows, ids.subspan(static_cast<size_t>(at),
                                            static_cast<size_t>(rows.rows)));
        at = until;
        MediaFeatures::use(seq, state_.scheduler.open().plan);
      }
      row += run.count;
    }
  }
  add_tokens(end);
  if (!three_positions_) return;
  std::vector<model::RopePosition> positions(static_cast<size_t>(slice.count));
  rope_positions(*seq->media, slice.first, positions);
  for (const model::RopePosition& position : positions) batch.set_rope_position(position);
}

void StepBuilder::want_rows(StepBuffer& next, const Slice& slice) {
  if (slice.seq->request->prompt_log) want_scores(next, slice);
  if (slice.seq->pooling != Pooling::kNone) want_hidden(next, slice);
  if (!slice.sample) return;
  if (slice.seq->request->max_tokens == 0)
    next.ends.push_back(slice.seq);
  else
    want_tokens(next, slice);
}

// A sequence that was preempted computes rows again whose tokens are scored already.
void StepBuilder::want_scores(StepBuffer& next, const Slice& slice) {
  Sequence* const seq = slice.seq;
  const int32_t begin = std::max(slice.first, seq->scored);
  const int32_t end = std::min(slice.first + slice.count, seq->prompt_length - 1);
  if (begin >= end) return;
  next.batch.want(Wanted::kScore, begin - slice.first, end - begin);
  const size_t at = next.following.size();
  // Jobs point into it: it is made for all rows of a step.
  CHECK(at + static_cast<size_t>(end - begin) <= next.following.capacity());
  for (int32_t i = begin; i < end; ++i) next.following.push_back(seq->token(i + 1));
  next.jobs.emplace_back(exec::Score{.following = next.following.data() + at,
                                     .tops = seq->params.prompt_top_logprobs});
  seq->scored = end;
}

void StepBuilder::want_hidden(StepBuffer& next, const Slice& slice) {
  Sequence* const seq = slice.seq;
  const auto pool = [&](int32_t first, int32_t rows) {
    next.batch.want(Wanted::kHidden, first, rows);
    next.jobs.emplace_back(exec::Pool{.part = {.pooling = seq->pooling,
                                               .first_position = slice.first,
                                               .prompt_length = seq->prompt_length,
                                               .last = slice.sample},
                                      .vector = seq->pooled});
  };
  if (seq->pooling == Pooling::kMean) pool(0, slice.count);
  if (seq->pooling == Pooling::kCls && slice.first == 0) pool(0, 1);
  if (seq->pooling == Pooling::kLast && slice.sample) pool(slice.count - 1, 1);
}

void StepBuilder::want_tokens(StepBuffer& next, const Slice& slice) {
  Sequence* const seq = slice.seq;
  const int32_t last = slice.count - slice.drafts - 1;  // Of the tokens that are none.
  const auto kind = slice.drafts > 0 ? Wanted::kVerify : Wanted::kNext;
  next.batch.want(kind, last, slice.drafts + 1);
  next.jobs.emplace_back(exec::Choose{.sampler = &*seq->sampler,
                                      .logprobs = seq->want_logprobs,
                                      .output_index = slice.first + last + 1 - seq->prompt_length});
  seq->slot = next.batch.wanted().back().row_begin;
}

}  // namespace weir::sched
