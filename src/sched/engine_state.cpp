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
          .both_ways = facts.spec->both_ways,
          .span_rows_max = facts.spec->both_ways != model::BothWays::kNone ? facts.rows_max : 0,
          .adapters_max = options.adapters_max};
}

int32_t context_of(const EngineOptions& options, const exec::ExecutorFacts& facts) {
  if (options.context_max <= 0) return facts.context_max;
  return std::min(options.context_max, facts.context_max);
}

kv::MemoryLoad load_of(const Limits& limits, const kv::disk::DiskCache* disk) {
  return {.running_max = limits.running_max,
          .rows_max = limits.rows_max() + limits.slab_tokens_max,
          .loads = disk == nullptr ? 0 : kv::disk::loads_at_once(disk->shape())};
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
      disk(memory.cache() != nullptr ? options.disk : nullptr),
      draft_sources(options.speculation.sources),
      sequences(sequences_max(limits.queue_max, limits.running_max), context_max,
                static_cast<int32_t>(pages.groups().size())) {
  CHECK(context_max > 0);
  if (disk != nullptr) {
    handle.keeps_on_disk_.store(true, std::memory_order_relaxed);
    scheduler.use_disk(loads.emplace(memory, pages, *disk, context_max));
  }
  exec::Encoder* const encoder = executor.encoder();
  if (facts.cross_layers > 0)
    scheduler.use_fills(fills.emplace(executor, memory.cross(), stats));
  else if (encoder != nullptr)
    scheduler.use_features(features.emplace(*encoder, facts.spec->hidden_size,
                                            options.image_cache_bytes, stats));
  CHECK(handle.queue_max_ <= limits.queue_max);
  CHECK(!fills || memory.cross().count() > limits.running_max);
  CHECK(!memory.has_states() || pages.state_slots().running >= limits.running_max);
  // A slice may stand further on by drafts of the step before. Those and its own rows are at most a
  // page, so of a window it holds no page more than window_pages_held() counts.
  static_assert(DraftSource::kDraftsMax + 1 + DraftSource::kDraftsMax <= kv::kPageTokens);
  const kv::MemoryLoad load = load_of(limits, disk);
  for (const kv::PageGroup& group : pages.groups()) {  // None ever waits for a window's page.
    const int64_t loaded = group.window == 0 ? 0 : kv::window_pages_loaded(group.window, load);
    CHECK((!group.hot && group.pages >= memory.blocks() + loaded) ||
          group.pages >= kv::window_pages_held(group.window, load));
  }
}

void EngineState::finish(Sequence* seq, FinishReason reason) {
  scheduler.remove(seq);
  Request* request = std::exchange(seq->request, nullptr);
  request->preemptions = seq->preemptions;
  for (DraftSource* source : draft_sources) source->end(*request);
  handle.open_.fetch_sub(1, std::memory_order_seq_cst);
  request->log.finish(reason);
  if (seq->steps == 0) give_back(seq);
}

// No step refers to it.
void EngineState::give_back(Sequence* seq) {
  if (features) features->let_go(seq);
  sequences.give_back(seq);
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

void EngineState::fail(const CrossFills::Failed& failed) {
  const std::span<Sequence* const> open = scheduler.open().running();
  const std::vector<Sequence*> all(open.begin(), open.end());
  for (Sequence* seq : all)
    if (seq->memory.cross() == failed.slot) fail(seq, failed.why);
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
      give_back(slice.seq);
  }
}

// A span that is computed in one step has room beside generated tokens, which are never more than a
// usual step has; if such a step is no larger than others, beside a row of each sequence that may
// run, and drafts.
MediaLimits EngineState::media_limits() const {
  if (!features) return {};
  const int32_t beside = limits.running_max + limits.step_tokens_max / DecodePlanner::kDraftPart;
  const int32_t rows = limits.slab_tokens_max > 0
                           ? limits.slab_tokens_max
                           : limits.rows_max() - std::min(beside, limits.step_tokens_max);
  return {.pictures = features->takes_pictures(),
          .sounds = features->takes_sounds(),
          .row_bytes = features->bytes_of_rows(1),
          .features_bytes_max = features->bytes_max(),
          .both_ways = limits.both_ways,
          .span_tokens_max = rows,
          .three_positions = model::has_three_positions(*facts.spec)};
}

HearingLimits EngineState::hearing_limits() const {
  HearingLimits hearing = {.layers = facts.cross_layers, .rows = facts.cross_rows};
  for (const model::Sublayer& sublayer : facts.spec->sublayers)
    if (const auto* cross = std::get_if<model::CrossAttention>(&sublayer.op))
      hearing.heads = cross->num_heads;
  return hearing;
}

void EngineState::check() const {
  if (features) features->check();
  scheduler.open().check();
  const auto open = std::ranges::count_if(
      sequences.all(), [](const Sequence& seq) { return seq.request != nullptr; });
  CHECK(open <= handle.open());
  CHECK(std::ssize(scheduler.open().running()) + std::ssize(scheduler.open().waiting()) <= open);
}

}  // namespace weir::sched
