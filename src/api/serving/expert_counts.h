// ExpertCounts: what experts on disk have come to since their model was loaded, as pages of figures
// ask for it. Who counts is another folder's business.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <functional>

namespace weir::api {

struct ExpertCounts {
  uint64_t asked = 0;  // By generated tokens, each once a step.
  uint64_t found = 0;  // Of those, in memory.
  uint64_t read_bytes = 0;
  uint64_t stall_ns = 0;  // Nothing to compute: waiting for the disk.
  uint64_t tokens = 0;    // Generated.
};

// From any thread; empty where all experts are in memory.
using ExpertCounter = std::function<ExpertCounts()>;

}  // namespace weir::api
