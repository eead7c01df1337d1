// EngineOptions: what a user, or the memory plan, decides about the engine.
//
// Threads: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>

#include "kv/page_keeper.h"

namespace weir::sched {

class DraftSource;
}  // namespace weir::sched

namespace weir::kv::disk {
class DiskCache;
}  // namespace weir::kv::disk

namespace weir::sched {

struct EngineOptions {
  int32_t step_tokens_max = 512;  // Token budget of one step; also the prefill chunk.
  int32_t running_max = 64;       // Sequences that decode at once (--parallel).
  int32_t queue_max = 1024;       // Requests waiting or running; more get 429.
  int32_t context_max = 0;        // Positions of one sequence.
  int32_t adapters_max = 8;       // Different ones in a step (--max-loras).
  bool prefix_cache = true;
  // Prompts are cut so that a step is expected to take no longer; 0: no limit. Changes no result.
  double step_seconds_max = 0;
  // Called on the engine thread when nothing is left to compute, before it sleeps; wake() has it
  // called again. May be empty.
  std::function<void()> on_idle{};
  // How long pages without use keep their memory.
  kv::PageKeeper::Times keep{};
  // Called on the engine thread, once, when nothing has been computed for keep.free since it began,
  // or since the last step, and the executor has given its scratch memory back. May be empty.
  std::function<void()> on_rest{};
  // Null: no step has drafts. Outlives the engine. Models with states have none either way: a state
  // cannot go back to where a draft was wrong.
  DraftSource* drafts = nullptr;
  // Null: no block of the prefix cache is kept on disk. Outlives the engine. Only for models whose
  // layers all remember every token, of which memory has one group (kv/disk/disk_cache.h).
  kv::disk::DiskCache* disk = nullptr;
  // The disk is needed for experts: nothing is written while sequences run.
  bool disk_is_shared = false;
};

// Sequences that an engine tells apart (BatchSlice::sequence): one that has ended is kept while a
// step refers to it.
inline int32_t sequences_max(int32_t queue_max, int32_t running_max) {
  return std::max(queue_max, running_max) + running_max;
}

}  // namespace weir::sched
