// The engine's loop and its three duties while a step runs: publish what the step before sampled,
// read the inbox, plan the step after.
//
//              step n                    step n + 1
//   team       | compute ..... sample |  | compute ..... sample |
//   member 0   | publish n - 1        |  | publish n            |
//              | inbox, plan n + 1    |  | inbox, plan n + 2    |
//
// The token that n samples for a sequence is needed by n + 1, planned before it exists. The plan
// names the place where n will put it; step n + 1 reads it there. That a sequence has ended is seen
// one step late: it has a row in the step that runs by then, whose token is dropped.
#include "sched/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/mapping_guard.h"
#include "base/trace.h"
#include "kv/sequence_memory.h"
#include "sample/sampler.h"
#include "sched/length_class.h"
#include "sched/scheduler.h"
#include "sched/sequence_pool.h"
#include "sched/spoiled_pages.h"
#include "sched/step_buffer.h"
#include "sched/step_cost.h"

namespace weir::sched {

namespace {

double seconds(Clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

Limits limits_of(const EngineOptions& options, const model::Model& model) {
  const int32_t step_tokens_max = std::min(options.step_tokens_max, model.options().rows_max);
  return {.step_tokens_max = step_tokens_max,
          .running_max = std::min(options.running_max, step_tokens_max),
          .queue_max = std::max(options.queue_max, options.running_max),
          .prompts_differ = model.prompts_differ(),
          .slab_tokens_max = model.slab_rows()};
}

// A slab is a step with more tokens.
Limits slab_limits(Limits limits) {
  limits.step_tokens_max = std::max(limits.slab_tokens_max, 1);
  return limits;
}

int32_t context_of(const EngineOptions& options, const model::Model& model) {
  if (options.context_max <= 0) return model.context_max();
  return std::min(options.context_max, model.context_max());
}

StepWork work_of(const Step& step) {
  StepWork work{.decode_rows = step.token_count - step.prefill_tokens,
                .prompt_tokens = step.prefill_tokens};
  for (const Slice& slice : std::span(step.slices).subspan(static_cast<size_t>(step.decode_slices)))
    work.keys_seen += StepCost::keys_seen(slice.first, slice.count);
  return work;
}

bool all_finite(std::span<const float> numbers) {
  return std::ranges::all_of(numbers, [](float x) { return std::isfinite(x); });
}

kv::MemoryLoad load_of(const Limits& limits) {
  return {.running_max = limits.running_max,
          .rows_max = limits.step_tokens_max + limits.slab_tokens_max};
}

}  // namespace

struct Engine::Impl final : model::ForwardClient {
  Impl(const EngineOptions& options, model::Model& model_in, kv::KvCache& kv_in,
       const kernels::Ops& ops_in, ThreadTeam& team_in, EngineHandle& handle_in,
       std::function<void()> wake_in);

  void run();
  void check() const;

  // ForwardClient.
  void on_logits(int32_t sample_index, std::span<float> logits, int member) override;
  void on_hidden(int32_t index, std::span<const float> states, int member) override;
  void on_failed(int32_t slice, const std::string& why) override;
  void while_computing() override;

  void execute(StepBuffer& step);
  void execute_slab(double seconds_max);
  void plan_slab();
  void end_slab();
  model::Batch batch_of(const StepBuffer& step, const StepBuffer* before) const;
  void prepare(StepBuffer& spare, bool other_runs);
  void publish(StepBuffer& ran);
  void publish_token(StepBuffer& ran, size_t sample, Clock::time_point now);
  void publish_end(Sequence* seq, Clock::time_point now);
  void publish_failures(StepBuffer& ran);
  void fail(Sequence* seq, const std::string& why);
  void fail_without_numbers(Sequence* seq);
  void check_weights();
  void note_progress(const StepBuffer& ran);
  void note_prompt(const Sequence* seq, Clock::time_point now);
  void drain_inbox();
  void submit(Request* request);
  void cancel(const Request* request);
  void finish(Sequence* seq, FinishReason reason);
  void plan(StepBuffer& next, bool other_runs);
  Scheduler::PromptTokens prompt_tokens() const;
  void begin(Sequence* seq);
  void flatten(StepBuffer& next, bool other_runs);
  static void want_rows(StepBuffer& next, const Slice& slice, int32_t row);
  void release(const StepBuffer& step);
  void give_back_memory(Clock::time_point now);
  void wait_for_work(uint32_t bell);
  void rest();
  void finish_all();
  void update_gauges();

  const Limits limits;
  const double step_seconds_max;
  const int32_t context_max;
  model::Model& model;
  kv::KvCache& kv;
  const kernels::Ops& ops;
  ThreadTeam& team;
  EngineHandle& handle;
  EngineStats& stats;
  const std::function<void()> wake;
  const std::function<void()> on_idle;
  const std::function<void()> on_rest;
  const Clock::duration rest_after;
  const LengthClass length_class;

  kv::SequenceMemory memory;
  kv::PageKeeper keeper;
  Scheduler scheduler;
  StepCost cost;
  SequencePool sequences;
  StepBuffer buffers[2];
  // Prompts that are computed some layers at a time, between steps; empty: none.
  StepBuffer slab;
  int32_t slab_step = 0;                        // The next one.
  std::vector<sample::SamplerScratch> scratch;  // By team member.

  StepBuffer* running = nullptr;  // The step that the team computes.
  StepBuffer* spare = nullptr;    // The other one: ran before it, and is planned meanwhile.
  int32_t planned_decodes = 0;    // Rows of decoders in the last step that was planned.
  bool published = false;         // The reader has something to look at since the last wake.
  bool has_run = false;
  uint32_t sheds = 0;             // Of EngineHandle::sheds_, those that were heard.
  Clock::time_point rest_time{};  // When it rests unless there is work; max(): it does.
  std::atomic<bool> stopping{false};
};

Engine::Impl::Impl(const EngineOptions& options, model::Model& model_in, kv::KvCache& kv_in,
                   const kernels::Ops& ops_in, ThreadTeam& team_in, EngineHandle& handle_in,
                   std::function<void()> wake_in)
    : limits(limits_of(options, model_in)),
      step_seconds_max(options.step_seconds_max),
      context_max(context_of(options, model_in)),
      model(model_in),
      kv(kv_in),
      ops(ops_in),
      team(team_in),
      handle(handle_in),
      stats(handle_in.stats_),
      wake(std::move(wake_in)),
      on_idle(options.on_idle),
      on_rest(options.on_rest),
      rest_after(options.keep.free),
      length_class(model_in.spec()),
      memory(kv_in.groups(), options.prefix_cache, kv_in.state_slots()),
      keeper(options.keep, memory.pools(), memory.cache(), kv_in),
      scheduler(limits, memory),
      sequences(sequences_max(limits.queue_max, limits.running_max), context_max,
                static_cast<int32_t>(kv_in.groups().size())),
      buffers{StepBuffer(limits), StepBuffer(limits)},
      slab(slab_limits(limits)) {
  CHECK(context_max > 0);
  CHECK(handle.queue_max_ <= limits.queue_max);
  CHECK(!memory.has_states() || kv.state_slots().running >= limits.running_max);
  for (const kv::PageGroup& group : kv.groups())  // No sequence ever waits for a window's page.
    CHECK(group.pages >= memory.blocks() ||
          group.pages >= kv::window_pages_held(group.window, load_of(limits)));
  scratch.reserve(static_cast<size_t>(team.members()));
  for (int i = 0; i < team.members(); ++i) scratch.emplace_back(model.spec().vocab_size);
  stats.pages.set(memory.blocks());
  stats.page_tokens.set(kernels::kPageTokens);
  int64_t window_pages = 0;
  for (const kv::PageGroup& group : kv.groups().subspan(1)) window_pages += group.pages;
  stats.window_pages.set(static_cast<double>(window_pages));
  stats.kv_bytes.set(static_cast<double>(kv.bytes()));
  stats.checkpoint_slots.set(kv.state_slots().checkpoints);
  stats.state_bytes.set(static_cast<double>(kv.bytes_of_page(kv.checkpoint_group())));
  handle.vocab_size_.store(model.spec().vocab_size, std::memory_order_relaxed);
  handle.hidden_size_.store(model.spec().hidden_size, std::memory_order_relaxed);
  handle.tokens_max_.store(std::min(context_max, scheduler.tokens_max()),
                           std::memory_order_release);
}

// `buffers[next]` is planned, the other one has run. An empty plan takes no time to run: its turn
// only publishes, reads the inbox and plans.
void Engine::Impl::run() {
  CHECK(!std::exchange(has_run, true));
  rest_time = Clock::now() + rest_after;  // Loading, too, leaves what is of no more use.
  int next = 0;
  while (true) {
    // Before we look at anything: whatever happens after our look changes the bell.
    const uint32_t bell = handle.bell_.count();
    if (stopping.load(std::memory_order_acquire)) break;
    StepBuffer& step = buffers[next];
    StepBuffer& other = buffers[1 - next];
    const bool idle_before = step.empty();
    const Clock::time_point begin = Clock::now();
    give_back_memory(begin);
    if (idle_before) {
      prepare(other, /*other_runs=*/false);
    } else {
      execute(step);
    }
    const bool slab_runs = !slab.empty();
    if (slab_runs) execute_slab(seconds(Clock::now() - begin));
    next = 1 - next;
    if (!idle_before || slab_runs) rest_time = begin + rest_after;
    if (idle_before && other.empty() && !slab_runs) wait_for_work(bell);
  }
  publish(buffers[1 - next]);
  release(buffers[next]);
  if (!slab.empty()) scheduler.end_slab(slab.step);
  release(slab);
  finish_all();
}

void Engine::Impl::execute(StepBuffer& step) {
  const trace::Scope scope(trace::Kind::kWhole, "step", step.step.token_count);
  const Clock::time_point begin = Clock::now();
  running = &step;
  spare = &step == &buffers[0] ? &buffers[1] : &buffers[0];
  const model::Batch batch = batch_of(step, spare);
  team.run([&](int member) { model.forward(batch, kv, *this, team, member); });
  CHECK(spare == nullptr);  // The model has called while_computing().
  running = nullptr;
  const double taken = seconds(Clock::now() - begin);
  cost.observe(work_of(step.step), taken);
  stats.steps.add();
  stats.step_time.observe(taken);
  stats.step_tokens.observe(static_cast<double>(step.tokens.size()));
}

model::Batch Engine::Impl::batch_of(const StepBuffer& step, const StepBuffer* before) const {
  return {.tokens = step.tokens,
          .sampled = before == nullptr ? nullptr : before->sampled.data(),
          .slices = step.slices,
          .sample_rows = step.sample_rows,
          .hidden_rows = step.hidden_rows};
}

// Layers of the slab, at least one, for as long as the step before has taken: generated tokens and
// prompts have half of the time each, and either all of it while the other has nothing to do.
void Engine::Impl::execute_slab(double seconds_max) {
  const Clock::time_point begin = Clock::now();
  running = &slab;
  const model::Batch batch = batch_of(slab, nullptr);
  do {
    team.run([&](int member) { model.forward_slab(batch, kv, *this, team, member, slab_step); });
  } while (++slab_step < model.slab_steps() && seconds(Clock::now() - begin) < seconds_max);
  running = nullptr;
  stats.steps.add();
  stats.step_time.observe(seconds(Clock::now() - begin));
  if (slab_step == model.slab_steps()) end_slab();
}

void Engine::Impl::plan_slab() {
  scheduler.next_slab(slab.step);
  for (const Slice& slice : slab.step.slices) {
    ++slice.seq->steps;
    if (!slice.seq->sampler) begin(slice.seq);
  }
  flatten(slab, /*other_runs=*/false);
  slab_step = 0;
  stats.prompt_tokens.add(static_cast<uint64_t>(slab.step.prefill_tokens));
  stats.step_tokens.observe(slab.step.prefill_tokens);
}

// What it sampled is known before anything that needs it is planned.
void Engine::Impl::end_slab() {
  scheduler.end_slab(slab.step);
  for (const Slice& slice : slab.step.slices)
    if (slice.seq->cancelled)
      finish(slice.seq,
             slice.seq->request->failure.empty() ? FinishReason::kCancelled : FinishReason::kError);
  publish(slab);
  slab.clear();
}

void Engine::Impl::while_computing() {
  CHECK(running != nullptr && spare != nullptr);
  prepare(*std::exchange(spare, nullptr), /*other_runs=*/true);
}

void Engine::Impl::on_logits(int32_t sample_index, std::span<float> logits, int member) {
  const auto i = static_cast<size_t>(sample_index);
  const StepBuffer::Sample& sample = running->samples[i];
  if (sample.prompt_token >= 0) {
    const auto tops = static_cast<size_t>(sample.seq->params.prompt_top_logprobs);
    const sample::ScoredToken scored =
        sample::score_token(logits, sample.prompt_token, running->top(i).first(tops), ops,
                            scratch[static_cast<size_t>(member)]);
    running->chosen[i] = {sample.prompt_token, scored.logprob};
    running->top_counts[i] = static_cast<int32_t>(scored.top_count);
    running->ranks[i] = scored.rank;
    running->continuations[i] =
        scored.has_numbers ? sample::Continuation::kOpen : sample::Continuation::kNoNumbers;
    return;
  }
  const sample::SampledToken token =
      sample.seq->sampler->sample(logits, sample.output_index, sample.seq->want_logprobs, ops,
                                  scratch[static_cast<size_t>(member)]);
  // The sampler's memory is written again by the next step, before this one is published.
  running->chosen[i] = token.chosen;
  running->top_counts[i] = static_cast<int32_t>(token.top.size());
  std::ranges::copy(token.top, running->top(i).begin());
  running->continuations[i] = token.continuation;
  running->sampled[i] = token.chosen.token;
  running->forced_counts[i] = static_cast<int32_t>(token.forced.size());
  std::ranges::copy(token.forced, running->forced_by(i).begin());
}

// Sums are made in the order of positions, whatever the chunks.
void Engine::Impl::on_hidden(int32_t index, std::span<const float> states, int /*member*/) {
  const StepBuffer::Pooled& part = running->pooled[static_cast<size_t>(index)];
  std::vector<float>& pooled = part.seq->pooled;
  const auto width = static_cast<int32_t>(pooled.size());
  if (part.seq->pooling != Pooling::kMean) {
    std::ranges::copy(states, pooled.begin());
    return;
  }
  if (part.first_position == 0) std::ranges::fill(pooled, 0.0f);
  for (const float* row = states.data(); row != states.data() + states.size(); row += width)
    ops.add_scaled(row, 1, width, pooled.data());
  if (part.last) ops.scale(1 / static_cast<float>(part.seq->prompt_length), width, pooled.data());
}

void Engine::Impl::on_failed(int32_t slice, const std::string& why) {
  if (std::ranges::find(running->failures, slice, &StepBuffer::Failure::slice) ==
      running->failures.end())
    running->failures.push_back({.slice = slice, .why = why});
}

// Everything that the engine does between two steps, done while one runs.
void Engine::Impl::prepare(StepBuffer& ran, bool other_runs) {
  publish(ran);
  drain_inbox();
  plan(ran, other_runs);
  update_gauges();
  if (std::exchange(published, false)) {
    const trace::Scope scope(trace::Kind::kEngine, "wake");
    stats.wakes.add();
    wake();
  }
}

// What was computed with weights that are gone is no answer, nor does any of it come later.
void Engine::Impl::check_weights() {
  if (MappingGuard::any_lost() && handle.given_up() == nullptr)
    for (const FileView* file : model.mapped_files())
      if (file->lost()) handle.give_up(file->check_unchanged().error().message);
  const std::string* why = handle.given_up();
  if (why == nullptr) return;
  for (Sequence& seq : sequences.all())
    if (seq.request != nullptr) fail(&seq, *why);
  scheduler.forget_shared();
}

void Engine::Impl::publish(StepBuffer& ran) {
  check_weights();
  if (ran.empty()) return;
  const trace::Scope scope(trace::Kind::kEngine, "publish");
  const Clock::time_point now = Clock::now();
  if (!ran.failures.empty()) publish_failures(ran);
  note_progress(ran);
  for (size_t i = 0; i < ran.samples.size(); ++i) publish_token(ran, i, now);
  for (Sequence* seq : ran.ends) publish_end(seq, now);
  release(ran);
}

void Engine::Impl::publish_token(StepBuffer& ran, size_t sample, Clock::time_point now) {
  Sequence* seq = ran.samples[sample].seq;
  if (seq->state == Sequence::State::kEnded) return;  // The one wasted row.
  if (ran.continuations[sample] == sample::Continuation::kNoNumbers)
    return fail_without_numbers(seq);
  Request& request = *seq->request;
  const TokenLogprob chosen = ran.chosen[sample];
  const auto top = ran.top(sample).first(static_cast<size_t>(ran.top_counts[sample]));
  if (ran.samples[sample].prompt_token >= 0) {
    if (!request.prompt_ranks.empty())
      request.prompt_ranks[static_cast<size_t>(request.prompt_log->size())] = ran.ranks[sample];
    return request.prompt_log->append(chosen, top);
  }
  // The row of a token that the one before has forced: it is published.
  if (ran.samples[sample].output_index < seq->known - seq->prompt_length) return;
  CHECK(seq->known - seq->prompt_length == ran.samples[sample].output_index);
  if (seq->known == seq->prompt_length) note_prompt(seq, now);
  published = true;
  if (ran.continuations[sample] == sample::Continuation::kStuck) {
    finish(seq, FinishReason::kError);
    return;
  }
  if (std::ranges::find(seq->params.stop_token_ids, chosen.token) !=
      seq->params.stop_token_ids.end()) {
    request.end_token = chosen.token;
    finish(seq, FinishReason::kStop);
    return;
  }
  request.log.append(chosen, top);
  ++seq->known;
  const auto forced = static_cast<size_t>(ran.forced_counts[sample]);
  for (const int32_t token : ran.forced_by(sample).first(forced)) {
    request.log.append({.token = token}, {});
    ++seq->known;
  }
  stats.generated_tokens.add(1 + forced);
  stats.forced_tokens.add(forced);
  if (ran.continuations[sample] == sample::Continuation::kComplete)
    finish(seq, FinishReason::kStop);
  else if (seq->known == seq->limit)
    finish(seq, FinishReason::kLength);
  else if (forced > 0)
    scheduler.extend(seq);
}

// The prompt was all there is to compute.
void Engine::Impl::publish_end(Sequence* seq, Clock::time_point now) {
  if (seq->state == Sequence::State::kEnded) return;
  if (!all_finite(seq->pooled)) return fail_without_numbers(seq);
  note_prompt(seq, now);
  published = true;
  seq->request->pooled = std::move(seq->pooled);
  finish(seq, FinishReason::kLength);
}

void Engine::Impl::fail(Sequence* seq, const std::string& why) {
  if (seq->state == Sequence::State::kEnded) return;
  seq->request->failure = why;
  if (seq->in_slab) {  // Its memory is being written to.
    seq->cancelled = true;
    return;
  }
  published = true;
  finish(seq, FinishReason::kError);
}

void Engine::Impl::fail_without_numbers(Sequence* seq) {
  published = true;
  seq->request->no_numbers = true;
  finish(seq, FinishReason::kError);
}

// The keys and values of a failed slice are worthless, and were for others to share as soon as it
// was planned: a sequence that has taken one of its pages since fails with it.
void Engine::Impl::publish_failures(StepBuffer& ran) {
  SpoiledPages spoiled(kv.groups());
  for (const StepBuffer::Failure& failure : ran.failures) {
    spoiled.add(ran.slices[static_cast<size_t>(failure.slice)]);
    fail(ran.step.slices[static_cast<size_t>(failure.slice)].seq, failure.why);
  }
  scheduler.forget_shared();
  const std::string& why = ran.failures.front().why;
  std::vector<const Sequence*> seen;
  if (running != nullptr && running != &ran)
    for (size_t i = 0; i < running->slices.size(); ++i) {
      Sequence* seq = running->step.slices[i].seq;
      seen.push_back(seq);
      if (spoiled.seen_from(running->slices[i].memory, running->slices[i].first_position))
        fail(seq, why);
    }
  const std::vector<Sequence*> others(scheduler.running().begin(), scheduler.running().end());
  for (Sequence* seq : others)
    if (std::ranges::find(seen, seq) == seen.end() &&
        spoiled.seen_from(seq->memory.view(), seq->computed))
      fail(seq, why);
}

void Engine::Impl::note_progress(const StepBuffer& ran) {
  for (const Slice& slice : ran.step.slices) {
    const Sequence* seq = slice.seq;
    if (seq->state == Sequence::State::kEnded || !seq->request->report_progress) continue;
    Request& request = *seq->request;
    const int32_t done = std::min(slice.first + slice.count, seq->prompt_length);
    // A sequence that was preempted computes its prompt once more.
    if (done <= request.prompt_done.load(std::memory_order_relaxed)) continue;
    request.prompt_cached.store(std::min(seq->matched_tokens, done), std::memory_order_relaxed);
    request.prompt_done.store(done, std::memory_order_release);
    published = true;
  }
}

// The prompt is computed.
void Engine::Impl::note_prompt(const Sequence* seq, Clock::time_point now) {
  Request& request = *seq->request;
  request.first_token = now;
  request.cached_tokens = seq->matched_tokens;
  stats.prefix_queries.add(static_cast<uint64_t>(seq->prompt_length));
  stats.prefix_hits.add(static_cast<uint64_t>(seq->matched_tokens));
}

// The step has ended, or will never run: it refers to its sequences no more.
void Engine::Impl::release(const StepBuffer& step) {
  for (const Slice& slice : step.step.slices) {
    CHECK(slice.seq->steps > 0);
    if (--slice.seq->steps == 0 && slice.seq->state == Sequence::State::kEnded)
      sequences.give_back(slice.seq);
  }
}

// At most one ring full: who submits and cancels without end does not hold up a step.
void Engine::Impl::drain_inbox() {
  const trace::Scope scope(trace::Kind::kEngine, "inbox");
  for (size_t i = 0; i < handle.inbox_.capacity(); ++i) {
    const std::optional<Message> message = handle.inbox_.try_pop();
    if (!message) return;
    if (message->kind == Message::Kind::kSubmit) {
      submit(message->request);
    } else {
      cancel(message->request);
    }
  }
}

void Engine::Impl::submit(Request* request) {
  Sequence* seq = sequences.take(request);
  seq->params = request->sampling;
  seq->salt = kv::PrefixCache::salt({.length_class = length_class.of(seq->prompt_length),
                                     .cache_salt = request->cache_salt,
                                     .format = static_cast<uint32_t>(kv.type()),
                                     .arithmetic = static_cast<uint32_t>(model.options().compute)});
  scheduler.submit(seq);
}

// The request may have finished and be gone, so its address is all that is looked at. A new one at
// the same address is submitted later than this message was sent, and is not known here yet. One
// whose rows are all planned is not found: its log finishes with the step that runs.
void Engine::Impl::cancel(const Request* request) {
  for (const std::span<Sequence* const> list : {scheduler.running(), scheduler.waiting()}) {
    const auto found = std::ranges::find(list, request, &Sequence::request);
    if (found == list.end()) continue;
    if ((*found)->in_slab) {  // Its memory is being written to.
      (*found)->cancelled = true;
      return;
    }
    published = true;
    finish(*found, FinishReason::kCancelled);
    return;
  }
}

void Engine::Impl::finish(Sequence* seq, FinishReason reason) {
  scheduler.remove(seq);
  Request* request = std::exchange(seq->request, nullptr);
  request->preemptions = seq->preemptions;
  handle.open_.fetch_sub(1, std::memory_order_seq_cst);
  request->log.finish(reason);  // From here on the request may be gone.
  if (seq->steps == 0) sequences.give_back(seq);
}

void Engine::Impl::plan(StepBuffer& next, bool other_runs) {
  const trace::Scope scope(trace::Kind::kEngine, "plan");
  const uint64_t preemptions = scheduler.preemptions();
  next.clear();
  scheduler.next_step(next.step, prompt_tokens());
  planned_decodes = next.step.token_count - next.step.prefill_tokens;
  for (const Slice& slice : next.step.slices) {
    ++slice.seq->steps;
    if (!slice.seq->sampler) begin(slice.seq);
  }
  flatten(next, other_runs);
  stats.prompt_tokens.add(static_cast<uint64_t>(next.step.prefill_tokens));
  stats.preemptions.add(scheduler.preemptions() - preemptions);
  if (limits.slab_tokens_max > 0 && slab.empty()) plan_slab();
}

Scheduler::PromptTokens Engine::Impl::prompt_tokens() const {
  Scheduler::PromptTokens tokens{.max = limits.step_tokens_max};
  const bool several = scheduler.several_callers();
  if (step_seconds_max <= 0 && !several) return tokens;
  int32_t decode_rows = 0, position = 0;
  for (const Sequence* seq : scheduler.running()) {
    if (seq->prefilling())
      position = std::max(position, seq->computed);
    else
      ++decode_rows;
  }
  if (step_seconds_max > 0)
    tokens.max = std::min(tokens.max, cost.tokens_within(step_seconds_max, decode_rows, position));
  // Of several callers' decoders not all are in every step: as many as in the last one.
  if (several) tokens.beside_decoders = cost.tokens_beside(planned_decodes, position);
  return tokens;
}

// The first slice of a request.
void Engine::Impl::begin(Sequence* seq) {
  Request& request = *seq->request;
  seq->sampler.emplace(seq->params, request.prompt, model.spec().vocab_size, request.max_tokens);
  if (request.matcher) seq->sampler->constrain(std::move(request.matcher));
  seq->pooled = std::move(request.pooled);
  request.started = Clock::now();
  request.begun.store(true, std::memory_order_release);
  stats.queue_time.observe(seconds(request.started - request.arrived));
}

// The batch of a planned step. A token that nobody knows yet is sampled by the step that runs.
void Engine::Impl::flatten(StepBuffer& next, bool other_runs) {
  for (const Slice& slice : next.step.slices) {
    Sequence* seq = slice.seq;
    const auto row = static_cast<int32_t>(next.tokens.size());
    next.slices.push_back({.row_begin = row,
                           .rows = slice.count,
                           .first_position = slice.first,
                           .prompt_length = seq->prompt_length,
                           .memory = next.keep(seq->memory.view()),
                           .sequence = sequences.index_of(seq)});
    for (int32_t i = slice.first; i < slice.first + slice.count; ++i) {
      CHECK(i < seq->known || (i == seq->known && other_runs && seq->slot >= 0));
      next.tokens.push_back(i < seq->known ? seq->token(i) : -1 - seq->slot);
    }
    want_rows(next, slice, row);
  }
}

// What is wanted of a slice whose first token is row `row` of the batch.
void Engine::Impl::want_rows(StepBuffer& next, const Slice& slice, int32_t row) {
  Sequence* seq = slice.seq;
  const int32_t end = slice.first + slice.count;
  if (seq->request->prompt_log) {
    // A sequence that was preempted computes rows again whose tokens are scored already.
    for (int32_t i = std::max(slice.first, seq->scored); i < std::min(end, seq->prompt_length - 1);
         seq->scored = ++i) {
      next.sample_rows.push_back(row + i - slice.first);
      next.samples.push_back({.seq = seq, .prompt_token = seq->token(i + 1)});
    }
  }
  const auto pool = [&](int32_t first, int32_t rows) {
    next.hidden_rows.push_back({.row_begin = row + first, .rows = rows});
    next.pooled.push_back({.seq = seq, .first_position = slice.first, .last = slice.sample});
  };
  if (seq->pooling == Pooling::kMean) pool(0, slice.count);
  if (seq->pooling == Pooling::kCls && slice.first == 0) pool(0, 1);
  if (seq->pooling == Pooling::kLast && slice.sample) pool(slice.count - 1, 1);
  if (!slice.sample) return;
  if (seq->request->max_tokens == 0) {
    next.ends.push_back(seq);
    return;
  }
  seq->slot = static_cast<int32_t>(next.samples.size());
  next.sample_rows.push_back(row + slice.count - 1);
  next.samples.push_back({.seq = seq, .output_index = end - seq->prompt_length});
}

void Engine::Impl::update_gauges() {
  stats.running.set(static_cast<double>(scheduler.running().size()));
  stats.waiting.set(static_cast<double>(scheduler.waiting().size()));
  stats.kv_usage.set(static_cast<double>(memory.held()) / memory.blocks());
  stats.pages_cached.set(memory.cached());
  int64_t window_held = 0, window_cached = 0;
  for (int32_t g = 1; g < std::ssize(kv.groups()); ++g) {
    window_held += memory.held_pages(g);
    window_cached += memory.cached_pages(g);
  }
  stats.window_pages_held.set(static_cast<double>(window_held));
  stats.window_pages_cached.set(static_cast<double>(window_cached));
  stats.checkpoints.set(memory.checkpoints());
  stats.kv_taken.set(static_cast<double>(keeper.taken_bytes()));
}

// Between two passes. What the planned step computes with is held; a row of it that is wasted,
// because its sequence has ended since, may write to a free page, which has memory then for nobody.
void Engine::Impl::give_back_memory(Clock::time_point now) {
  keeper.set_time(now);
  const uint32_t asked = handle.sheds_.load(std::memory_order_relaxed);
  if (std::exchange(sheds, asked) != asked) keeper.shed();
  keeper.give_back();
}

// Sleeps unless the bell has rung since it stood at `bell`, or there is memory to give back.
void Engine::Impl::wait_for_work(uint32_t bell) {
  const trace::Scope scope(trace::Kind::kWait, "sleep");
  CHECK(scheduler.idle());
#ifndef NDEBUG
  check();
#endif
  CHECK(memory.held() == 0);
  CHECK(sequences.free_count() == sequences.count());
  if (on_idle) on_idle();
  if (Clock::now() >= rest_time) rest();
  handle.bell_.sleep(bell, std::min(keeper.due(), rest_time));
}

// Nothing was computed for a while, and nothing is expected.
void Engine::Impl::rest() {
  rest_time = Clock::time_point::max();
  model.give_back_scratch();
  kv.give_back_states();
  if (on_rest) on_rest();
}

// Ends what was submitted, also by those who are just submitting: the count of open requests rises
// before a submitter looks whether we drain.
void Engine::Impl::finish_all() {
  handle.draining_.store(true, std::memory_order_seq_cst);
  while (true) {
    drain_inbox();
    for (Sequence& seq : sequences.all())
      if (seq.request != nullptr) finish(&seq, FinishReason::kCancelled);
    if (handle.open_.load(std::memory_order_seq_cst) == 0) break;
    std::this_thread::yield();
  }
  update_gauges();
  wake();
}

void Engine::Impl::check() const {
  scheduler.check();
  const auto open = std::ranges::count_if(
      sequences.all(), [](const Sequence& seq) { return seq.request != nullptr; });
  CHECK(open <= handle.open());
  CHECK(std::ssize(scheduler.running()) + std::ssize(scheduler.waiting()) <= open);
}

Engine::Engine(const EngineOptions& options, model::Model& model, kv::KvCache& cache,
               const kernels::Ops& ops, ThreadTeam& team, EngineHandle& handle,
               std::function<void()> wake)
    : impl_(std::make_unique<Impl>(options, model, cache, ops, team, handle, std::move(wake))) {}

Engine::~Engine() = default;

void Engine::run() { impl_->run(); }

void Engine::stop() {
  // Once run() has seen `stopping` it returns, and its thread may destroy the engine.
  EngineHandle& handle = impl_->handle;
  impl_->stopping.store(true, std::memory_order_release);
  handle.bell_.ring();
}

void Engine::wake() { impl_->handle.bell_.ring(); }

void Engine::shed_memory() {
  impl_->handle.sheds_.fetch_add(1, std::memory_order_relaxed);
  wake();
}

bool Engine::idle() const { return impl_->scheduler.idle(); }

void Engine::check() const { impl_->check(); }

}  // namespace weir::sched
