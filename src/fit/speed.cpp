#include "fit/speed.h"

#include <algorithm>
#include <cstdio>

#include "kv/block.h"

namespace weir::fit {

namespace {

// Of a plain read of memory, what decoding gets: measured 0.84 to 0.92 on two processors.
constexpr double kReadShare = 0.85;
// Of the arithmetic's peak, what prompts get: 0.45 to 0.57, attention and all else included.
constexpr double kPeakShare = 0.5;

double peak(const TokenCost& cost, const MachineSpeed& machine) {
  if (cost.exact) return machine.f32_per_second;
  if (machine.bf16_per_second > 0) return machine.bf16_per_second;
  return cost.mostly_floats() ? machine.f32_per_second : machine.int8_per_second;
}

}  // namespace

TokenCost token_cost(const model::TokenWork& work, const ModelFootprint& model, bool exact) {
  // A state is read and written; what is attended to besides is read.
  TokenCost cost = {.weight_bytes = work.weight_bytes,
                    .kv_bytes = 2 * model.state_bytes + model.cross_bytes,
                    .macs = work.macs,
                    .exact = exact};
  for (const kv::MemoryLayout::Group& group : model.kv_groups) {
    const int32_t seen = group.window > 0 ? std::min(group.window, kSpeedDepth) : kSpeedDepth;
    cost.kv_bytes += group.page_bytes * kv::blocks_for(seen);
  }
  return cost;
}

Speed expected_speed(const TokenCost& cost, const MachineSpeed& machine) {
  const auto bytes = static_cast<double>(cost.weight_bytes + cost.kv_bytes);
  const auto operations = 2 * static_cast<double>(std::max<int64_t>(cost.macs, 1));
  return {.decode = kReadShare * machine.memory_bytes_per_second / std::max(bytes, 1.0),
          .prompt = kPeakShare * peak(cost, machine) / operations};
}

Speed expected_speed(const ssd::ExpertLoad& load, const ssd::ReadSpeed& machine) {
  return {.decode = ssd::expected_tokens_per_second(load, machine)};
}

std::string describe(const Speed& speed) {
  const auto range = [](double middle) {
    char text[64];
    const int digits = middle < 10 ? 1 : 0;
    std::snprintf(text, sizeof text, "%.*f to %.*f", digits, kSpeedLow * middle, digits,
                  kSpeedHigh * middle);
    return std::string(text);
  };
  const std::string prompt = speed.prompt > 0 ? ", prompts " + range(speed.prompt) : "";
  return "about " + range(speed.decode) + " tokens a second" + prompt;
}

}  // namespace weir::fit
