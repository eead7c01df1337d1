// Engine: the one thread that owns sequences, pages, prefix cache and model. It plans step n+1
// while the team computes step n, launches it, and publishes what n sampled (decision 19).
//
// Threads: run() is the engine thread; it constructs nothing and allocates nothing per token.
// Others use handle().
#pragma once

#include <algorithm>
#include <functional>
#include <memory>

#include "base/thread_team.h"
#include "kv/kv_cache.h"
#include "kv/page_keeper.h"
#include "kv/page_pool.h"
#include "model/model.h"
#include "sched/engine_handle.h"

namespace weir::sched {

struct EngineOptions {
  int32_t step_tokens_max = 512;  // Token budget of one step; also the prefill chunk.
  int32_t running_max = 64;       // Sequences that decode at once (--parallel).
  int32_t queue_max = 1024;       // Requests waiting or running; more get 429.
  int32_t context_max = 0;        // Positions of one sequence.
  bool prefix_cache = true;
  // Prompts are cut so that a step is expected to take no longer; 0: no limit. Changes no result.
  double step_seconds_max = 0;
  // Called on the engine thread when nothing is left to compute, before it sleeps; wake() has it
  // called again. May be empty.
  std::function<void()> on_idle{};
  // How long pages without use keep their memory.
  kv::PageKeeper::Times keep{};
  // Called on the engine thread, once, when nothing has been computed for keep.free since it began,
  // or since the last step, and the model has given its scratch memory back. May be empty.
  std::function<void()> on_rest{};
};

// Sequences that an engine tells apart (BatchSlice::sequence): one that has ended is kept while a
// step refers to it.
inline int32_t sequences_max(int32_t queue_max, int32_t running_max) {
  return std::max(queue_max, running_max) + running_max;
}

class Engine {
 public:
  // `wake` is called once per step that published something, from the engine thread; it must not
  // block (uv_async_send). References outlive the engine.
  Engine(const EngineOptions& options, model::Model& model, kv::KvCache& cache,
         const kernels::Ops& ops, ThreadTeam& team, EngineHandle& handle,
         std::function<void()> wake);
  ~Engine();

  // Runs until stop(). REQUIRES: called on the thread that built the team.
  void run();
  // Any thread, once. Running sequences end with kCancelled. The thread of run() may destroy the
  // engine as soon as run() has returned, even while this call returns.
  void stop();

  // Any thread, until stop(): one that sleeps calls on_idle().
  void wake();

  // Any thread, until stop(): memory is short; pages that nobody computes with are given back,
  // those of the prefix cache in part (PageKeeper::shed).
  void shed_memory();

  // True when nothing waits or runs; for tests, from the engine thread.
  bool idle() const;
  // Runs every part's own check(). Called when idle, and by tests.
  void check() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::sched
