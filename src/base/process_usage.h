// ProcessUsage: what a process takes of its machine, as the kernel tells in /proc.
//
// Threads: any.
#pragma once

#include <cstdint>

namespace weir {

struct ProcessUsage {
  bool is_known = false;
  double cpu_s = 0;    // User and system, since the process began; a difference once subtracted.
  double start_s = 0;  // When it began, since 1970; to a hundredth or so.
  int64_t resident_bytes = 0, resident_bytes_max = 0, virtual_bytes = 0;
  int32_t threads = 0;
  int32_t open_files = 0;  // 0 where they are not ours to see.
  int64_t open_files_max = 0;
};

// What the process `pid` uses; 0 stands for this one.
ProcessUsage process_usage(int32_t pid = 0);

}  // namespace weir
