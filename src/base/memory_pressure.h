// What other programs' need of memory means for a cache that may be large: give some of it back
// while the machine, or this process's group, waits for memory, and take it again when it is calm.
//
// Threads: one owner.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "base/cgroup.h"

namespace weir {

// How much of the last 10 s some task waited for memory, in percent: of this process's cgroup
// (version 2), else of the machine. -1: the kernel does not say. The arguments are for tests.
double memory_pressure(const std::string& machine = "/proc/pressure/memory",
                       const CgroupFiles& groups = {});

enum class PressureAdvice : uint8_t { kNothing, kGiveBack, kTakeAgain };

class PressurePolicy {
 public:
  static constexpr double kHighPercent = 10;
  static constexpr int kStepPercent = 5;
  static constexpr int kLeastPercent = 50;  // Below, disk reads cost more than memory gives.
  // The kernel's average covers 10 s: earlier, it does not know of the last step.
  static constexpr std::chrono::seconds kPause{10};
  static constexpr std::chrono::seconds kCalm{60};

  // kGiveBack comes again and again while the pressure is high, also when share() falls no more.
  // Pressure below 0 says nothing.
  PressureAdvice observe(double pressure, std::chrono::steady_clock::time_point now);
  int share() const { return share_; }  // Percent of the experts' memory that may be used.

 private:
  int share_ = 100;
  std::chrono::steady_clock::time_point high_{};     // Last seen.
  std::chrono::steady_clock::time_point advised_{};  // Anything but kNothing.
};

}  // namespace weir
