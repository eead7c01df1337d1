// ProcessUsage: the CPU time and memory of another process, from /proc.
#pragma once

#include <cstdint>

namespace weir::load {

struct ProcessUsage {
  bool is_known = false;
  double cpu_s = 0;  // User and system, since the process began; a difference once subtracted.
  double memory_mib = 0;
  double memory_max_mib = 0;
};

ProcessUsage process_usage(int32_t pid);

}  // namespace weir::load
