// EngineState: what the parts of the engine share: the books of sequences and of their memory, and
// the ways in which a sequence ends.
//
// Threads: the engine thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "kv/sequence_memory.h"
#include "sched/disk_loads.h"
#include "sched/engine_handle.h"
#include "sched/engine_options.h"
#include "sched/cross_fills.h"
#include "sched/media_features.h"
#include "sched/scheduler.h"
#include "sched/sequence_pool.h"
#include "sched/step_buffer.h"

namespace weir::sched {

struct EngineState {
  EngineState(const EngineOptions& options, exec::Executor& executor_in, EngineHandle& handle_in);

  // The log is finished: from then on the request may be gone.
  void finish(Sequence* seq, FinishReason reason);
  // The same with an error. One whose memory a slab writes to ends when that is done.
  void fail(Sequence* seq, const std::string& why);
  // All that attend to what this slot should have been filled with.
  void fail(const CrossFills::Failed& failed);
  void fail_without_numbers(Sequence* seq);
  // The step has ended, or will never run: it refers to its sequences no more.
  void release(const StepBuffer& step);
  void check() const;
  // What a request has to have where the model has cross attention.
  HearingLimits hearing_limits() const;
  // What a request may have of pictures and sounds.
  MediaLimits media_limits() const;

  exec::Executor& executor;
  const exec::ExecutorFacts facts;
  const Limits limits;
  const int32_t context_max;  // Of one sequence.
  kv::PageMemory& pages;
  EngineHandle& handle;
  EngineStats& stats;

  kv::SequenceMemory memory;
  Scheduler scheduler;
  kv::disk::DiskCache* const disk;  // Null: there is none,
  std::optional<DiskLoads> loads;   // and no loads.
  const std::vector<DraftSource*> draft_sources;
  std::optional<MediaFeatures> features;  // None: the model takes none.
  std::optional<CrossFills> fills;        // None: the model has no cross attention.
  SequencePool sequences;

  StepBuffer* running = nullptr;  // The step that is computed.
  bool published = false;         // The reader has something to look at since the last wake.

 private:
  void give_back(Sequence* seq);
};

}  // namespace weir::sched
