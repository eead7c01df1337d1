#include "program/pressure_watch.h"

#include <chrono>
#include <string>

#include "base/log.h"

namespace weir {

void PressureWatch::look(sched::Engine& engine, ssd::ExpertStore* experts) {
  const double pressure = memory_pressure();
  const int share = policy_.share();
  const PressureAdvice advice = policy_.observe(pressure, std::chrono::steady_clock::now());
  if (advice == PressureAdvice::kNothing) return;
  const bool high = advice == PressureAdvice::kGiveBack;
  if (experts) experts->allow(policy_.share());
  if (high) engine.shed_memory();
  engine.wake();  // An engine without requests gives memory back all the same.
  // Pressure that lasts is told until the share has come to its end.
  if (policy_.share() == share || (!high && !experts)) return;
  log::warn("memory pressure=" + std::to_string(pressure) + "%" +
            (high ? ": unused pages and the oldest prompts go back" : "") +
            (experts ? " slots_allowed=" + std::to_string(policy_.share()) + "%" : ""));
}

}  // namespace weir
