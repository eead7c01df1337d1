// Executor: what stands between the engine and whatever computes. The engine hands it steps and
// gets tokens, scores and vectors; weights, keys, values and logits are the executor's own,
// wherever they lie. CpuExecutor is the one there is.
//
// A life: place_weights() until that is done, and take_memory(), once; then, for each step or slab,
// begin() and advance() until that says that it is done. It serves one engine: one that stops may
// leave a batch in Lane::kSlab.
//
// Threads: one at a time. What computes, place_weights() and advance(), is called on the thread of
// the stage (sched/stage.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "exec/drafter.h"
#include "exec/encoder.h"
#include "exec/step_work.h"
#include "kv/layout.h"
#include "kv/page_memory.h"
#include "model/batch.h"
#include "model/spec.h"

namespace weir::exec {

using model::Lane;

// What an engine has to know of the model that is computed.
struct ExecutorFacts {
  const model::ModelSpec* spec = nullptr;
  int32_t rows_max = 0;                        // Of a batch in Lane::kStep,
  int32_t draft_rows_max = 0;                  // of drafts in it, where there are states,
  int32_t slab_rows = 0;                       // and in Lane::kSlab; 0: there is no such lane.
  int32_t context_max = 0;                     // Positions of a sequence.
  std::optional<int32_t> prompts_differ_from;  // model::Model::prompts_differ_from().
  model::Compute compute = model::Compute::kFast;
};

// Of advance(): all that are left.
inline constexpr int32_t kAllSublayers = std::numeric_limits<int32_t>::max();

// What the engine does on its thread while a batch is computed; each is called once, early and
// late.
struct Meanwhile {
  std::function<void()> beginning;  // With the first sublayer.
  std::function<void()> ending;     // With the last one.
};

class Executor {
 public:
  using Clock = std::chrono::steady_clock;

  virtual ~Executor() = default;

  virtual ExecutorFacts facts() const = 0;

  // Puts the weights where they are computed with, or as many of them as can be begun before
  // `until`; true when all are there. `progress(done, total)` in bytes.
  virtual Result<bool> place_weights(const std::function<void(int64_t, int64_t)>& progress,
                                     Clock::time_point until) = 0;
  // Takes memory for what sequences remember. `page_counts`: of each group of the layout.
  virtual Result<void> take_memory(kv::MemoryLayout layout, std::span<const int32_t> page_counts,
                                   const kv::StateSlots& slots) = 0;
  // That memory. REQUIRES: it is taken.
  virtual kv::PageMemory& memory() = 0;

  // A batch to be computed next in this lane. `work` is kept, and what it points to stays in place,
  // until it is done; work.results are valid then. REQUIRES: the lane has no batch.
  virtual void begin(Lane lane, const StepWork& work) = 0;
  // Computes so many sublayers of the lane's batch, or those that are left; true when it is done.
  // `meanwhile` may be null. REQUIRES: it is, unless the whole batch is computed.
  virtual bool advance(Lane lane, int32_t sublayers, const Meanwhile* meanwhile) = 0;

  // What drafts beside its steps; null: nothing does. REQUIRES: its memory is taken.
  virtual Drafter* drafter() { return nullptr; }
  // What makes features of pictures and sounds; null: prompts have none.
  virtual Encoder* encoder() { return nullptr; }

  // Why the weights are not any more what was placed; empty: they are.
  virtual std::string lost_weights() const = 0;
  // Memory that only a running batch needs goes back to the system until the next begin().
  // REQUIRES: no lane has a batch.
  virtual void rest() = 0;
};

}  // namespace weir::exec
