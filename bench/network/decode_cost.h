// DecodeCost: how much slower a real model decodes when its tokens are delivered over HTTP than
// when nobody reads them: the same engine, the same sequences, the same machine.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "cpu_time.h"

namespace weir::bench {

// While all sequences decode.
struct DecodeRate {
  double wall = 0;    // Tokens a second, clients and whatever else runs on the same cores.
  double cpu_us = 0;  // Of this process per token: what is left of the noise when others are busy.
  double others = 0;  // The share of all cores that neither we nor the clients took.
};

struct DecodeCost {
  std::string model;
  int32_t threads = 0;
  std::vector<DecodeRate> alone, served;  // By round.
  std::vector<CpuTime> loop;              // Of the loop's thread, per event.
  std::vector<double> events_per_write;
  std::vector<double> finish_ratio;  // Slowest to fastest stream.
  double client_us = 0;              // Per event, of the last round.
};

// `folder`: of a checkpoint; empty: the model that is compiled in.
Result<DecodeCost> measure_decode_cost(const std::string& folder, int32_t streams, int32_t tokens,
                                       int32_t rounds);

}  // namespace weir::bench
