// Speed: how many tokens a second a model is expected to make here, before it runs: from what one
// token costs and what `weir calibrate` has measured of the machine.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "model/model.h"
#include "program/machine_speed.h"
#include "program/memory_plan.h"
#include "ssd/expert_forecast.h"

namespace weir::fit {

// What one token costs.
struct TokenCost {
  int64_t weight_bytes = 0;  // Of weights that a generated one reads,
  int64_t kv_bytes = 0;      // and of keys, values and states, after kSpeedDepth others.
  int64_t macs = 0;
  bool exact = false;  // All arithmetic is in float32.

  // Numbers of 16 bits or more are multiplied as floats, smaller ones as integers.
  bool mostly_floats() const { return 2 * weight_bytes >= 3 * macs; }
};

// Tokens of a conversation after which speeds are told.
inline constexpr int32_t kSpeedDepth = 1024;

TokenCost token_cost(const model::TokenWork& work, const ModelFootprint& model, bool exact);

// Tokens a second. What is measured later lies mostly between kSpeedLow and kSpeedHigh times this.
struct Speed {
  double decode = 0;  // Of one sequence.
  double prompt = 0;  // 0: not known, as where experts are read from disk.
};
inline constexpr double kSpeedLow = 0.7, kSpeedHigh = 1.2;

Speed expected_speed(const TokenCost& cost, const MachineSpeed& machine);
// With experts on disk.
Speed expected_speed(const ssd::ExpertLoad& load, const ssd::ReadSpeed& machine);

// "about 9 to 15 tokens a second, prompts 180 to 310".
std::string describe(const Speed& speed);

}  // namespace weir::fit
