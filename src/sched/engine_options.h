// EngineOptions: what a user, or the memory plan, decides about the engine.
//
// Threads: values.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <vector>

#include "kv/page_keeper.h"

namespace weir::sched {

class DraftSource;
}  // namespace weir::sched

namespace weir::kv::disk {
class DiskCache;
}  // namespace weir::kv::disk

namespace weir::sched {

// Which drafts steps have. Where layers have states, as many as those have a tape for.
struct SpeculationOptions {
  std::vector<DraftSource*> sources{};  // Outlive the engine. None: no step has drafts.
  int32_t drafts_max = 7;               // Of a sequence in a step (--num-draft-tokens).
  // As many as pay, by what was measured; else all that the sources have.
  bool measured = true;
  // For how long steps have waited for weights from disk with nothing to compute, all together.
  // Empty: they never do.
  std::function<double()> stalled_seconds{};
};

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
  SpeculationOptions speculation{};
  int64_t image_cache_bytes = 0;  // Features of media (--image-cache).
  // Null: no block of the prefix cache is kept on disk. Outlives the engine.
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
