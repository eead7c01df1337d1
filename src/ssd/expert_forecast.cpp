#include "ssd/expert_forecast.h"

#include <algorithm>
#include <array>
#include <cstdio>

namespace weir::ssd {

namespace {

// Share of all experts in memory, and share of requests for one that found it: the lower half of
// what servers report for models of 30 to 750 billion parameters (replays of single prompts say
// more).
struct Point {
  double resident, found;
};
constexpr std::array kField = {Point{0, 0},       Point{0.05, 0.25}, Point{0.12, 0.5},
                               Point{0.25, 0.65}, Point{0.5, 0.8},   Point{0.75, 0.92},
                               Point{1, 1}};
// The share of a read's time that passes while something else is computed: a fifth in a prototype.
// One layer has little to compute while its reads are under way.
constexpr double kHidden = 0.2;

}  // namespace

double expected_hit_ratio(const ExpertLoad& load) {
  const double resident =
      std::min(1.0, static_cast<double>(load.memory_bytes) / static_cast<double>(load.bank_bytes));
  for (size_t i = 1; i < kField.size(); ++i) {
    if (resident > kField[i].resident) continue;
    const Point a = kField[i - 1], b = kField[i];
    return a.found + (b.found - a.found) * (resident - a.resident) / (b.resident - a.resident);
  }
  return 1;
}

double expected_bytes_per_token(const ExpertLoad& load) {
  return (1 - expected_hit_ratio(load)) * static_cast<double>(load.cycle_bytes);
}

double expected_tokens_per_second(const ExpertLoad& load, const ReadSpeed& speed) {
  const double compute = static_cast<double>(load.token_bytes) / speed.memory_bytes_per_second;
  const double disk = expected_bytes_per_token(load) / speed.disk_bytes_per_second;
  return 1 / (compute + (1 - kHidden) * disk);
}

std::string forecast_text(const ExpertLoad& load, const std::optional<ReadSpeed>& speed) {
  char text[200];
  ExpertLoad twice = load;
  twice.memory_bytes *= 2;
  if (!speed) {
    std::snprintf(text, sizeof text,
                  "expected: %.0f %% found there, %.0f MB read a token; with twice the memory %.0f "
                  "%% (how fast: after 'weir calibrate --model DIR')",
                  100 * expected_hit_ratio(load), 1e-6 * expected_bytes_per_token(load),
                  100 * expected_hit_ratio(twice));
    return text;
  }
  std::snprintf(
      text, sizeof text,
      "expected: %.0f %% found there, %.0f MB read a token, %.1f tokens/s; with twice the "
      "memory %.0f %% and %.1f tokens/s",
      100 * expected_hit_ratio(load), 1e-6 * expected_bytes_per_token(load),
      expected_tokens_per_second(load, *speed), 100 * expected_hit_ratio(twice),
      expected_tokens_per_second(twice, *speed));
  return text;
}

}  // namespace weir::ssd
