// MachineSpeed: what `weir calibrate` has measured of this machine and keeps in the user's cache
// folder: how fast models are expected to run before they do comes from it.
//
// Threads: any; other processes may write the file meanwhile.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "kernels/machine_limits.h"
#include "ssd/expert_forecast.h"

namespace weir {

// Of all cores together; the second ones of multiply-adds count two operations each. 0: there is no
// such arithmetic, or it was measured by an older version.
struct MachineSpeed {
  double memory_bytes_per_second = 0;
  double int8_per_second = 0;
  double f32_per_second = 0;
  double bf16_per_second = 0;  // Where prompts are computed in it.
};

// nullopt: not measured.
std::optional<MachineSpeed> load_machine_speed();
Result<void> save_machine_speed(const kernels::MachineLimits& limits);

// With the disk that holds `path`, for experts that are read from it. nullopt: one of the two was
// not measured.
std::optional<ssd::ReadSpeed> load_read_speed(const std::string& path);

}  // namespace weir
