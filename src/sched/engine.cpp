// The engine's loop and its three duties while a step runs: publish what the step before computed,
// read the inbox, plan the step after. It publishes early, so that clients have their tokens, and
// plans late: a request that comes while a step runs is in the next one.
//
//              step n                            step n + 1
//   executor   | compute .............. sample | | compute .............. sample |
//   engine     | publish n - 1                 | | publish n                     |
//              |            inbox, plan n + 1  | |            inbox, plan n + 2  |
//
// The token that n samples for a sequence is needed by n + 1, planned before it exists. The plan
// names the place where n will put it; step n + 1 reads it there. That a sequence has ended is seen
// one step late: it has a row in the step that runs by then, whose token is dropped.
#include "sched/engine.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "base/seconds.h"
#include "base/trace.h"
#include "kv/disk/spill.h"
#include "kv/page_toucher.h"
#include "sched/engine_state.h"
#include "sched/inbox.h"
#include "sched/publisher.h"
#include "sched/speculation.h"
#include "sched/step_builder.h"

namespace weir::sched {

namespace {

// How long the end may take for what is kept on disk. Of the 30 s between Kubernetes' signals the
// drain has 25 with its default; what is cut off is computed again.
constexpr auto kLastWritesTime = std::chrono::seconds(10);
// How soon an index that was in use is looked at again.
constexpr auto kIndexLook = std::chrono::microseconds(200);

// A slab's buffer is not used where there are no slabs.
int32_t slab_rows(const Limits& limits) { return std::max(limits.slab_tokens_max, 1); }

}  // namespace

struct Engine::Impl {
  Impl(const EngineOptions& options, exec::Executor& executor, EngineHandle& handle,
       std::function<void()> wake_in);

  bool take_turn(Actor*& waiting);
  void publish_turn();
  Clock::time_point begin_rest();
  Clock::time_point wait_for_disk() const;
  void finish();
  static void publish_others(Actor*& waiting);
  void encode(bool alone, double taken);
  void execute(StepBuffer& step);
  void execute_slab(double seconds_max);
  void end_slab();
  void publish(StepBuffer& ran);
  void prepare(StepBuffer& spare, bool other_runs);
  void wake_readers();
  void update_gauges();
  void update_disk_figures();
  void note_steps(uint64_t planned);
  void write_to_disk();
  void look_ahead();
  void give_back_memory(Clock::time_point now);
  void rest();

  const std::function<void()> wake;
  const std::function<void()> on_idle;
  const std::function<void()> on_rest;
  const Clock::duration rest_after;
  const double step_seconds_max;
  EngineState state;
  Inbox inbox{state};
  Publisher publisher{state};
  Speculation speculation;
  StepBuilder builder;
  kv::PageKeeper keeper;
  kv::PageToucher toucher;
  std::optional<kv::disk::Spill> spill;  // None: nothing is kept on disk.
  const bool disk_is_shared;
  uint64_t plan_done = 0;  // The number of the last plan whose step has run and is published.

  StepBuffer buffers[2];
  StepBuffer* spare = nullptr;  // Of two: the one that ran before, and is planned meanwhile.
  StepBuffer slab;              // Prompts computed some sublayers at a time; empty: none.
  const exec::Meanwhile meanwhile = {.beginning =
                                         [this] {
                                           publish_others(*others);
                                           publish(*spare);
                                         },
                                     .ending = [this] { prepare(*spare, /*other_runs=*/true); }};
  Actor** others = nullptr;       // While a step runs: take_turn()'s `waiting`.
  int coming = 0;                 // Of the buffers: the one that is planned.
  bool bound = false;             // It is, before its turn.
  uint32_t sheds = 0;             // Of EngineHandle::sheds_, those that were heard.
  Clock::time_point rest_time{};  // When it rests unless there is work; max(): it does.
};

Engine::Impl::Impl(const EngineOptions& options, exec::Executor& executor, EngineHandle& handle,
                   std::function<void()> wake_in)
    : wake(std::move(wake_in)),
      on_idle(options.on_idle),
      on_rest(options.on_rest),
      rest_after(options.keep.free),
      step_seconds_max(options.step_seconds_max),
      state(options, executor, handle),
      speculation(state, options.speculation),
      builder(state, options, speculation),
      keeper(options.keep, state.memory.pools(), state.memory.cache(), state.pages),
      toucher(state.memory.pools(), state.pages),
      disk_is_shared(options.disk_is_shared),
      buffers{StepBuffer(state.limits.rows_max(), state.limits.running_max),
              StepBuffer(state.limits.rows_max(), state.limits.running_max)},
      slab(slab_rows(state.limits), state.limits.running_max) {
  if (state.disk != nullptr) {
    spill.emplace(*state.memory.cache(), state.pages, *state.disk);
    state.disk->on_done([&bell = state.handle.bell_] { bell.ring(); });
  }
  rest_time = Clock::now() + rest_after;  // Loading, too, leaves what is of no more use.
  const kv::PageMemory& pages = state.pages;
  EngineStats& stats = state.stats;
  stats.pages.set(state.memory.blocks());
  stats.page_tokens.set(kernels::kPageTokens);
  int64_t window_pages = 0;
  for (const kv::PageGroup& group : pages.groups().subspan(1))
    window_pages += group.hot ? 0 : group.pages;
  stats.window_pages.set(static_cast<double>(window_pages));
  stats.kv_bytes.set(static_cast<double>(pages.bytes()));
  stats.checkpoint_slots.set(pages.state_slots().checkpoints);
  stats.state_bytes.set(static_cast<double>(pages.bytes_of_page(pages.checkpoint_group())));
}

// `buffers[coming]` is planned, the other one has run. An empty plan takes no time to run: its turn
// only publishes, reads the inbox and plans.
bool Engine::Impl::take_turn(Actor*& waiting) {
  StepBuffer& step = buffers[coming];
  StepBuffer& other = buffers[1 - coming];
  const bool idle_before = step.empty();
  const Clock::time_point begin = Clock::now();
  give_back_memory(begin);
  if (state.loads) state.loads->start();
  if (idle_before) {
    publish(other);
    plan_done = state.scheduler.open().plan;  // The step that is planned has no rows.
    if (state.features) state.features->settle(plan_done);
    prepare(other, /*other_runs=*/false);
  } else {
    spare = &other;
    others = &waiting;
    execute(step);
  }
  const bool slab_runs = !slab.empty();
  if (slab_runs) {
    publish_others(waiting);
    execute_slab(seconds_since(begin));
  }
  coming = 1 - coming;
  const bool encodes = state.features && state.features->busy();
  const bool hears = state.fills && state.fills->busy();
  if (encodes || hears) {
    // Clients have their tokens first.
    publish_others(waiting);
    if (!idle_before) publish_turn();
    encode(idle_before && other.empty() && !slab_runs, seconds_since(begin));
  }
  if (!idle_before || slab_runs || encodes || hears) rest_time = begin + rest_after;
  return !idle_before || !other.empty() || slab_runs || encodes || hears;
}

// Media, after a turn that has taken so long; `alone`: no step has run, and none is planned.
void Engine::Impl::encode(bool alone, double taken) {
  const double given = alone ? EncodePace::seconds_alone(step_seconds_max)
                             : EncodePace::seconds_beside(taken, step_seconds_max);
  if (state.features && state.features->busy())
    if (const auto failed = state.features->advance(given))
      for (Sequence* seq : failed->sequences) state.fail(seq, failed->why);
  if (state.fills && state.fills->busy())  // Those that waited may have ended just now.
    if (const auto failed = state.fills->advance(given)) state.fail(*failed);
}

// Another engine's results, while the team computes.
void Engine::Impl::publish_others(Actor*& waiting) {
  if (waiting != nullptr) std::exchange(waiting, nullptr)->publish_turn();
}

// The next step is bound before its drafts are known to the log, as while it runs.
void Engine::Impl::publish_turn() {
  StepBuffer& planned = buffers[coming];
  StepBuffer& ran = buffers[1 - coming];
  if (!planned.empty() && !std::exchange(bound, true)) speculation.bind(planned, ran);
  publish(ran);
  ran.clear();  // But for the places of its tokens, which the planned step reads.
}

void Engine::Impl::finish() {
  publish(buffers[1 - coming]);
  if (buffers[coming].empty()) plan_done = state.scheduler.open().plan;
  state.release(buffers[coming]);
  if (!slab.empty()) state.scheduler.end_slab(slab.step);
  state.release(slab);
  inbox.close();
  if (state.disk != nullptr) write_to_disk();
  update_gauges();
  wake();
}

// What is kept for the next start. Nothing that was computed with weights that are gone.
void Engine::Impl::write_to_disk() {
  state.loads->finish();
  note_steps(state.scheduler.open().plan);
  if (state.handle.given_up() == nullptr) spill->write_all(Clock::now() + kLastWritesTime);
}

void Engine::Impl::execute(StepBuffer& step) {
  const trace::Scope scope(trace::Kind::kWhole, "step", step.step.token_count);
  const Clock::time_point begin = Clock::now();
  if (!std::exchange(bound, false)) speculation.bind(step, *spare);
  const Clock::time_point bound_time = Clock::now();
  state.running = &step;
  state.executor.begin(exec::Lane::kStep, step.work(spare));
  const bool done = state.executor.advance(exec::Lane::kStep, exec::kAllSublayers, &meanwhile);
  CHECK(done);
  state.running = nullptr;
  const double taken = seconds_since(begin), ran = seconds_since(bound_time);
  speculation.follow(step, *spare, ran);
  builder.learn(step.step, taken);
  if (state.disk != nullptr) state.disk->learn_prompts(step.step.prefill_tokens, taken);
  state.stats.steps.add();
  state.stats.step_time.observe(taken);
  state.stats.step_tokens.observe(static_cast<double>(step.batch.rows()));
}

// Sublayers of the slab, at least one, for as long as the step before has taken: generated tokens
// and prompts have half of the time each, and either all of it while the other has nothing to do.
void Engine::Impl::execute_slab(double seconds_max) {
  const Clock::time_point begin = Clock::now();
  state.running = &slab;
  bool done = false;
  do {
    done = state.executor.advance(exec::Lane::kSlab, 1, nullptr);
  } while (!done && seconds_since(begin) < seconds_max);
  state.running = nullptr;
  state.stats.steps.add();
  state.stats.step_time.observe(seconds_since(begin));
  if (done) end_slab();
}

// What it sampled is known before anything that needs it is planned.
void Engine::Impl::end_slab() {
  state.scheduler.end_slab(slab.step);
  for (const Slice& slice : slab.step.slices)
    if (slice.seq->cancelled)
      state.finish(slice.seq, slice.seq->request->failure.empty() ? FinishReason::kCancelled
                                                                  : FinishReason::kError);
  publisher.publish(slab);
  slab.clear();
}

// What a step has left, first of all: clients wait for it. A client with its answer finds its
// pages given back in the metrics.
void Engine::Impl::publish(StepBuffer& ran) {
  publisher.publish(ran);
  plan_done = std::max(plan_done, ran.plan);
  if (state.features) state.features->settle(plan_done);
  note_steps(state.scheduler.open().plan);
  if (state.published) update_gauges();
  wake_readers();
}

// The step after the one that runs, in the buffer of the one before.
void Engine::Impl::prepare(StepBuffer& next, bool other_runs) {
  inbox.drain();
  note_steps(state.scheduler.open().plan + 1);
  if (state.loads) state.stats.disk_hits.add(static_cast<uint64_t>(state.loads->collect()));
  builder.plan(next, other_runs);
  next.plan = state.scheduler.open().plan;
  if (state.limits.slab_tokens_max > 0 && slab.empty()) {
    builder.plan_slab(slab);
    if (!slab.empty()) state.executor.begin(exec::Lane::kSlab, slab.work(nullptr));
  }
  look_ahead();
  update_gauges();
  wake_readers();  // Of what the inbox has ended.
}

void Engine::Impl::wake_readers() {
  if (!std::exchange(state.published, false)) return;
  const trace::Scope scope(trace::Kind::kEngine, "wake");
  state.stats.wakes.add();
  wake();
}

void Engine::Impl::update_gauges() {
  const kv::SequenceMemory& memory = state.memory;
  EngineStats& stats = state.stats;
  stats.running.set(static_cast<double>(state.scheduler.open().running().size()));
  stats.waiting.set(static_cast<double>(state.scheduler.open().waiting().size()));
  stats.kv_usage.set(static_cast<double>(memory.held()) / memory.blocks());
  stats.pages_cached.set(memory.cached());
  int64_t window_held = 0, window_cached = 0;
  for (int32_t g = 1; g < std::ssize(state.pages.groups()); ++g) {
    if (state.pages.groups()[static_cast<size_t>(g)].hot) continue;
    window_held += memory.held_pages(g);
    window_cached += memory.cached_pages(g);
  }
  stats.window_pages_held.set(static_cast<double>(window_held));
  stats.window_pages_cached.set(static_cast<double>(window_cached));
  stats.checkpoints.set(memory.checkpoints());
  stats.kv_taken.set(static_cast<double>(keeper.taken_bytes()));
  if (state.disk != nullptr) update_disk_figures();
}

void Engine::Impl::update_disk_figures() {
  const kv::disk::StoreFigures& figures = state.disk->figures();
  const auto follow = [](Counter& shown, uint64_t now) { shown.add(now - shown.value()); };
  follow(state.stats.disk_read, figures.read_bytes.value());
  follow(state.stats.disk_written, figures.written_bytes.value());
  follow(state.stats.disk_evicted, figures.evicted_blocks.value());
  follow(state.stats.disk_corrupt, figures.corrupt_extents.value());
  follow(state.stats.disk_dropped, state.disk->dropped_bytes());
  state.stats.disk_bytes.set(static_cast<double>(state.disk->bytes()));
  if (disk_is_shared) state.disk->hold_writes(!state.scheduler.open().running().empty());
}

// Entries of the prefix cache from here on are of the step `planned`.
void Engine::Impl::note_steps(uint64_t planned) {
  if (kv::PrefixCache* cache = state.memory.cache()) cache->set_steps(planned, plan_done);
}

// Memory for what the plan after this one takes at most: a page of each sequence that runs, and
// those of its prompts. Without sequences nothing is expected.
void Engine::Impl::look_ahead() {
  const auto running = static_cast<int32_t>(state.scheduler.open().running().size());
  if (running == 0) return;
  const int32_t rows = state.limits.step_tokens_max + state.limits.slab_tokens_max;
  toucher.look_ahead(running + rows / kv::kPageTokens);
}

// Between two passes. What the planned step computes with is held; a row of it that is wasted,
// because its sequence has ended since, may write to a free page, which has memory then to no use.
void Engine::Impl::give_back_memory(Clock::time_point now) {
  keeper.set_time(now);
  const uint32_t asked = state.handle.sheds_.load(std::memory_order_relaxed);
  if (std::exchange(sheds, asked) != asked) keeper.shed();
  if (!toucher.busy()) keeper.give_back();
}

// There is nothing to do until the bell rings, or there is memory to give back.
Clock::time_point Engine::Impl::begin_rest() {
  if (!state.scheduler.open().idle() || (state.loads && state.loads->active()))
    return wait_for_disk();
#ifndef NDEBUG
  state.check();
#endif
  CHECK(state.memory.held() == 0);
  CHECK(state.sequences.free_count() == state.sequences.count());
  if (on_idle) on_idle();
  if (Clock::now() >= rest_time) rest();
  return std::min(keeper.due(), rest_time);
}

// All that is open waits for the disk. A load that has ended rings the bell, and one that has only
// begun needs a turn; the index was in use where neither is.
Clock::time_point Engine::Impl::wait_for_disk() const {
  CHECK(state.loads.has_value());
  return state.loads->reading() ? Clock::time_point::max() : Clock::now() + kIndexLook;
}

// Nothing was computed for a while, and nothing is expected.
void Engine::Impl::rest() {
  rest_time = Clock::time_point::max();
  state.executor.rest();
  state.pages.give_back_states();
  state.memory.cross().forget();
  state.pages.give_back_cross();
  if (on_rest) on_rest();
}

Engine::Engine(const EngineOptions& options, exec::Executor& executor, EngineHandle& handle,
               std::function<void()> wake)
    : impl_(std::make_unique<Impl>(options, executor, handle, std::move(wake))) {
  handle.vocab_size_.store(impl_->state.facts.spec->vocab_size, std::memory_order_relaxed);
  handle.hidden_size_.store(impl_->state.facts.spec->hidden_size, std::memory_order_relaxed);
  handle.media_ = impl_->state.media_limits();
  handle.hearing_ = impl_->state.hearing_limits();
  handle.tokens_max_.store(std::min(impl_->state.context_max, impl_->state.scheduler.tokens_max()),
                           std::memory_order_release);
}

Engine::~Engine() {
  if (impl_->state.disk != nullptr) impl_->state.disk->on_done({});
}

bool Engine::take_turn(Actor*& waiting) { return impl_->take_turn(waiting); }

void Engine::publish_turn() { impl_->publish_turn(); }

Actor::Clock::time_point Engine::begin_rest() { return impl_->begin_rest(); }

void Engine::finish() { impl_->finish(); }

void Engine::wake() { impl_->state.handle.bell_.ring(); }

void Engine::shed_memory() {
  impl_->state.handle.sheds_.fetch_add(1, std::memory_order_relaxed);
  wake();
}

bool Engine::idle() const { return impl_->state.scheduler.open().idle(); }

void Engine::check() const { impl_->state.check(); }

}  // namespace weir::sched
