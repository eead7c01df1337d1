// What experts from disk count: the page of /metrics, and a line a minute for the log.
//
// Threads: one, the network loop.
#pragma once

#include <chrono>
#include <string>

#include "ssd/expert_store.h"

namespace weir::ssd {

// The page of /metrics.
class ExpertPage {
 public:
  // disk_bytes_per_second: as calibrated; 0: it was not. `store` outlives the page.
  ExpertPage(const ExpertStore& store, double disk_bytes_per_second)
      : store_(store), disk_bytes_per_second_(disk_bytes_per_second) {}

  void render(std::string& out);

 private:
  using Clock = std::chrono::steady_clock;

  void render_oracle(std::string& out);

  const ExpertStore& store_;
  const double disk_bytes_per_second_;
  // Not asked again for every reader of the page.
  OracleWindow::Rates oracle_;
  Clock::time_point oracle_asked_ = Clock::time_point::min();
};

// What happened since the last call: "experts 84 % in memory, 62 MB from disk a token, ...". Empty
// where nothing was computed.
class ExpertMinute {
 public:
  std::string line(const ExpertStore& store);

 private:
  struct Sums {
    uint64_t ready = 0, asked = 0, tokens = 0, bytes = 0, prefill_bytes = 0;
    uint64_t step_ns = 0, stall_ns = 0, busy_ns = 0, useful = 0, wasted = 0;
  };
  static Sums sums(const ExpertStore& store);

  Sums last_{};
};

}  // namespace weir::ssd
