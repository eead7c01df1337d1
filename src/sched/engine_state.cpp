#include "sched/engine_state.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "sched/draft_source.h"

namespace weir::sched {

namespace {

// `states`: layers have them.
Limits limits_of(const EngineOptions& options, const exec::ExecutorFacts& facts, bool states) {
  const int32_t step_tokens_max = std::min(options.step_tokens_max, facts.rows_max);
  return {.step_tokens_max = step_tokens_max,
          .running_max = std::min(options.running_max, step_tokens_max),
          .queue_max = std::max(options.queue_max, options.running_max),
          .prompts_differ_from = facts.prompts_differ_from,
          .slab_tokens_max = facts.slab_rows,
          .draft_rows_max =
              states ? facts.draft_rows_max : std::numeric_limits<int32_t>::max(),
          .adapters_max = options.adapters_max};
}

int32_t context_of(const EngineOptions& options, const exec::ExecutorFacts& facts) {
  if (options.context_max <= 0) return facts.context_max;
  return std::min(options.context_max, facts.context_max);
}

kv::MemoryLoad load_of(const Limits& limits) {
  return {.running_max = limits.running_max,
          .rows_max = limits.step_tokens_max + limits.slab_tokens_max};
}

}  // namespace

EngineState::EngineState(const EngineOptions& options, exec::Executor& executor_in,
                         EngineHandle& handle_in)
    : executor(executor_in),
      facts(executor.facts()),
      limits(limits_of(options, facts, executor.memory().state_slots().running > 0)),
      context_max(context_of(options, facts)),
      pages(executor.memory()),
      handle(handle_in),
      stats(handle_in.stats_),
      memory(pages.groups(), options.prefix_cache, pages.state_slots()),
      scheduler(limits, memory),
      sequences(sequences_max(limits.queue_max, limits.running_max), context_max,
                static_cast<int32_t>(pages.groups().size())) {
  CHECK(context_max > 0);
  CHECK(handle.queue_max_ <= limits.queue_max);
  CHECK(!memory.has_states() || pages.state_slots().running >= limits.running_max);
  // A slice may stand further on by drafts of the step before. Those and its own rows are at most a
  // page, so of a window it holds no page more than window_pages_held() counts.
  static_assert(DraftSource::kDraftsMax + 1 + DraftSource::kDraftsMax <= kv::kPageTokens);
  for (const kv::PageGroup& group : pages.groups())  // No sequence ever waits for a window's page.
    CHECK((!group.hot && group.pages >= memory.blocks()) ||
          group.pages >= kv::window_pages_held(group.window, load_of(limits)));
}

void EngineState::finish(Sequence* seq, FinishReason reason) {
  scheduler.remove(seq);
  Request* request = std::exchange(seq->request, nullptr);
  request->preemptions = seq->preemptions;
  handle.open_.fetch_sub(1, std::memory_order_seq_cst);
  request->log.finish(reason);
  if (seq->steps == 0) sequences.give_back(seq);
}

void EngineState::fail(Sequence* seq, const std::string& why) {
  if (seq->state == Sequence::State::kEnded) return;
  seq->request->failure = why;
  if (seq->in_slab) {
    seq->cancelled = true;
    return;
  }
  published = true;
  finish(seq, FinishReason::kError);
}

void EngineState::fail_without_numbers(Sequence* seq) {
  published = true;
  seq->request->no_numbers = true;
  finish(seq, FinishReason::kError);
}

void EngineState::release(const StepBuffer& step) {
  for (const Slice& slice : step.step.slices) {
    CHECK(slice.seq->steps > 0);
    if (--slice.seq->steps == 0 && slice.seq->state == Sequence::State::kEnded)
      sequences.give_back(slice.seq);
  }
}

void EngineState::check() const {
  scheduler.open().check();
  const auto open = std::ranges::count_if(
      sequences.all(), [](const Sequence& seq) { return seq.request != nullptr; });
  CHECK(open <= handle.open());
  CHECK(std::ssize(scheduler.open().running()) + std::ssize(scheduler.open().waiting()) <= open);
}

}  // namespace weir::sched
