// ExpertForecast: how fast a model whose experts are read from disk will be, before it is run. From
// what was measured of the machine, and from how often others found an expert in memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace weir::ssd {

// What was measured of a machine.
struct ReadSpeed {
  double memory_bytes_per_second = 0;  // Read by all cores.
  double disk_bytes_per_second = 0;
};

struct ExpertLoad {
  uint64_t bank_bytes = 0;    // All experts.
  uint64_t cycle_bytes = 0;   // Those that one token needs.
  int64_t token_bytes = 0;    // All weights that one token reads, these included.
  uint64_t memory_bytes = 0;  // For experts.
};

// The share of its experts that a token is expected to find in memory.
double expected_hit_ratio(const ExpertLoad& load);
double expected_bytes_per_token(const ExpertLoad& load);
double expected_tokens_per_second(const ExpertLoad& load, const ReadSpeed& speed);

// "expected: 62 % found there, 450 MB read a token, 3.1 tokens/s; with twice the memory 78 %
// and 4.8"
std::string forecast_text(const ExpertLoad& load, const std::optional<ReadSpeed>& speed);

}  // namespace weir::ssd
