// Engine: the one thread that owns sequences, pages, prefix cache and executor. It plans step n+1
// while the executor computes step n, launches it, and publishes what n sampled (decision 19).
//
// Threads: run() is the engine thread; it constructs nothing and allocates nothing per token.
// Others use handle().
#pragma once

#include <functional>
#include <memory>

#include "exec/executor.h"
#include "sched/engine_handle.h"
#include "sched/engine_options.h"

namespace weir::sched {

class Engine {
 public:
  // `wake` is called once per step that published something, from the engine thread; it must not
  // block (uv_async_send). References outlive the engine. REQUIRES: the executor has its weights
  // and its memory.
  Engine(const EngineOptions& options, exec::Executor& executor, EngineHandle& handle,
         std::function<void()> wake);
  ~Engine();

  // Runs until stop(). REQUIRES: called on the thread that built the executor.
  void run();
  // Any thread, once. Running sequences end with kCancelled. The thread of run() may destroy the
  // engine as soon as run() has returned, even while this call returns.
  void stop();

  // Any thread, until stop(): one that sleeps calls on_idle().
  void wake();

  // Any thread, until stop(): memory is short; pages that no step computes with are given back,
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
