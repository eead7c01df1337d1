#include "program/memory_limit.h"

#include <limits>

#include "base/cgroup.h"

namespace weir {

MemoryLimit memory_limit(const Options& options, const MeminfoFiles& files) {
  if (options.mem_limit > 0) return {options.mem_limit, "--mem-limit"};
  MemoryLimit least{-1, "unknown"};
  const auto bound = [&least](int64_t free, const char* from) {
    if (free >= 0 && (least.bytes < 0 || free < least.bytes)) least = {free, from};
  };
  bound(memory_available(files), "MemAvailable");
  bound(cgroup_memory_left(), "cgroup");
  bound(memory_to_commit(files), "CommitLimit");
  if (least.bytes < 0) return {std::numeric_limits<int64_t>::max() / 4, least.from};
  return {least.bytes / 10 * 9, least.from};
}

}  // namespace weir
