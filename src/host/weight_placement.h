// WeightPlacement: weights that are put into their place on a stage, in slices between the steps of
// the engines that serve, so that these are not held up.
//
// Threads: the stage's; done() and wait() are of the thread that loads.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>

#include "base/result.h"
#include "exec/executor.h"
#include "sched/actor.h"

namespace weir::host {

class WeightPlacement final : public sched::Actor {
 public:
  // `stop`: asked between slices; it ends with kCancelled once that is true. `progress(done,
  // total)` in bytes, on the stage's thread.
  WeightPlacement(exec::Executor& executor, std::function<void(int64_t, int64_t)> progress,
                  std::function<bool()> stop)
      : executor_(executor), progress_(std::move(progress)), stop_(std::move(stop)) {}

  bool take_turn(sched::Actor*& waiting) override;

  // Returns when all weights are placed, or why not.
  Result<void> wait();
  // There is no stage any more.
  void give_up();

 private:
  void end(Result<void> result);

  exec::Executor& executor_;
  const std::function<void(int64_t, int64_t)> progress_;
  const std::function<bool()> stop_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::optional<Result<void>> result_;
};

}  // namespace weir::host
