// What the control group of this process allows.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>

namespace weir {

// Bytes that the cgroup (version 2, else 1) of this process still allows: the least of its own
// limit and its ancestors', each less what is used there. -1 without any limit. The arguments are
// for tests.
int64_t cgroup_memory_left(const std::string& root = "/sys/fs/cgroup",
                           const std::string& membership = "/proc/self/cgroup");

}  // namespace weir
