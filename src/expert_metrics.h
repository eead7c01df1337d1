// What experts from disk count: the page of /metrics, and a line a minute for the log.
//
// Threads: as base/metrics.h.
#pragma once

#include <chrono>
#include <string>

#include "ssd/expert_store.h"

namespace weir {

void render_experts(std::string& out, const ssd::ExpertStore& store);

// What happened since the last call: "experts 84 % in memory, 62 MB from disk a token, ...". Empty
// where nothing was computed.
class ExpertMinute {
 public:
  std::string line(const ssd::ExpertStore& store);

 private:
  struct Sums {
    uint64_t ready = 0, asked = 0, tokens = 0, bytes = 0, prefill_bytes = 0;
    uint64_t step_ns = 0, stall_ns = 0, busy_ns = 0, useful = 0, wasted = 0;
  };
  static Sums sums(const ssd::ExpertStore& store);

  Sums last_{};
};

}  // namespace weir
