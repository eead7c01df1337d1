// PressureWatch: experts and pages give memory back while the machine, or this process's group,
// waits for it.
//
// Threads: the network loop.
#pragma once

#include "base/memory_pressure.h"
#include "sched/engine.h"
#include "ssd/expert_store.h"

namespace weir {

class PressureWatch {
 public:
  // `experts` is null where all are in memory.
  void look(sched::Engine& engine, ssd::ExpertStore* experts);

 private:
  PressurePolicy policy_;
};

}  // namespace weir
