// Engine: what owns the sequences, pages and prefix cache of a model, and its executor. It plans
// step n+1 while the executor computes step n, launches it, and publishes what n sampled (decision
// 19).
//
// Threads: one, the engine thread, on which it takes turns on a Stage; it constructs nothing and
// allocates nothing per token. Others use the handle.
#pragma once

#include <functional>
#include <memory>

#include "exec/executor.h"
#include "sched/actor.h"
#include "sched/engine_handle.h"
#include "sched/engine_options.h"

namespace weir::sched {

class Engine final : public Actor {
 public:
  // `wake` is called once per step that published something, from the engine thread; it must not
  // block (uv_async_send). References outlive the engine. REQUIRES: the executor has its weights
  // and its memory.
  Engine(const EngineOptions& options, exec::Executor& executor, EngineHandle& handle,
         std::function<void()> wake);
  ~Engine() override;

  // A turn is a step, or a look into the inbox.
  bool take_turn(Actor*& waiting) override;
  void publish_turn() override;
  Clock::time_point begin_rest() override;
  // Publishes what is computed, and ends what is open with kCancelled; nothing is taken any more.
  // After the last turn, once, on whichever thread the engine is.
  void finish();

  // Any thread, until finish(): one that rests calls on_idle().
  void wake();

  // Any thread, until finish(): memory is short; pages that no step computes with are given back,
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
