// MemoryLimit: how much memory this process may take, and what says so.
#pragma once

#include <cstdint>
#include <string>

#include "base/meminfo.h"
#include "program/options.h"

namespace weir {

struct MemoryLimit {
  int64_t bytes = 0;
  std::string from;
};

// What this process may take: the option, else the least of the cgroup's limit (less what it uses),
// MemAvailable and, where nothing is overcommitted, what may still be reserved; less a tenth. Call
// before taking any.
MemoryLimit memory_limit(const Options& options, const MeminfoFiles& files = {});

}  // namespace weir
