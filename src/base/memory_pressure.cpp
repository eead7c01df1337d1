#include "base/memory_pressure.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

namespace weir {

namespace {

// "some avg10=1.53 avg60=...".
double pressure_in(const std::string& path) {
  std::ifstream file(path);
  std::string some, average;
  constexpr std::string_view kPrefix = "avg10=";
  if (!(file >> some >> average) || some != "some" || !average.starts_with(kPrefix)) return -1;
  const char* begin = average.c_str() + kPrefix.size();
  char* end = nullptr;
  const double percent = std::strtod(begin, &end);
  return end == begin ? -1 : percent;
}

}  // namespace

double memory_pressure(const std::string& machine, const CgroupFiles& groups) {
  for (const std::string& folder : cgroup_folders("", groups)) {
    const double pressure = pressure_in(folder + "/memory.pressure");
    if (pressure >= 0) return pressure;
  }
  return pressure_in(machine);
}

PressureAdvice PressurePolicy::observe(double pressure, std::chrono::steady_clock::time_point now) {
  if (pressure < 0) return PressureAdvice::kNothing;
  const bool high = pressure > kHighPercent;
  if (high) high_ = now;
  const bool too_early = now - advised_ < kPause;
  if (too_early || (!high && (share_ == 100 || now - high_ < kCalm)))
    return PressureAdvice::kNothing;
  share_ = std::clamp(high ? share_ - kStepPercent : share_ + kStepPercent, kLeastPercent, 100);
  advised_ = now;
  return high ? PressureAdvice::kGiveBack : PressureAdvice::kTakeAgain;
}

}  // namespace weir
