// StoreStats: what an ExpertStore has done since it was made, in counters for the metrics page and
// the log.
//
// Threads: written by the store's, read by any.
#pragma once

#include <array>

#include "base/metrics.h"

namespace weir::ssd {

struct StoreStats {
  Counter ready, in_flight, absent;  // Experts asked for by generated tokens, each once a step.
  Counter prompt_ready, prompt_absent;
  Counter steps, tokens;
  Counter early;     // Of absent: asked for before all rows of the step had been routed.
  Counter early_ns;  // Demands were being read while rows were still to be routed.
  Counter step_ns;
  Counter stall_ns;    // Of it: nothing to compute, and the leader waited for the disk.
  Histogram stall;     // The same of each step with generated tokens.
  Counter read_ahead;  // Experts, before a prompt asked for them.
  Counter unpacked;    // Parts.
  Counter failed_experts;
  Counter distrusted_experts;  // Dropped: their file was written to about when they were read.
  Counter crc_failures;        // Parts of a bundle that were not what had been written.
  Counter source_parts;        // Read from the checkpoint, because the bundle's could not be used.
  Gauge slots_usable;
  Gauge slots_shed;  // Whose memory went back to the kernel, for a while.
  // For layers with so many generated rows (1, 2 to 3, 4 to 7, ...): how often one was run, and how
  // many experts they were routed to together.
  static constexpr int kBatchSizes = 9;
  std::array<Counter, kBatchSizes> layer_runs, layer_experts;
};

}  // namespace weir::ssd
