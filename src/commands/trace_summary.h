// TraceSummary: from a trace of a server under load, where the team's time goes while a given
// number of sequences decodes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "base/trace.h"

namespace weir {

// Shares are of the members' time: members times the window's length. The window is the longest run
// of steps of `rows` rows each, from the begin of its first to the begin of its last.
struct TraceSummary {
  struct Op {
    std::string name;
    trace::Kind kind = trace::Kind::kWhole;
    double share = 0;     // Less what is nested in it.
    double per_step = 0;  // Seconds, of all members together.
  };

  int32_t rows = 0;
  int32_t members = 0;
  int32_t steps = 0;
  double step_seconds = 0;     // Median.
  double outside_kernels = 0;  // Waiting, engine, claims and launching.
  // That of the median step: what other processes do to some steps does not count.
  double outside_kernels_median = 0;
  double idle_between = 0;     // From a member's end of a forward pass to its next begin.
  double network_seconds = 0;  // Of the network loop, per step.
  double network_inside = 0;   // Share of it while the leader computes.
  double engine_inside = 0;    // Share of the engine's spans while the leader computes.
  std::vector<Op> ops;         // Of the members, by falling share.

  static Result<TraceSummary> of(const trace::Recorder& recorder, int32_t rows);

  std::string table() const;
  void write(JsonWriter& json) const;
};

}  // namespace weir
