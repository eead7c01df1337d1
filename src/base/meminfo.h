// What the machine's memory has room for, as the kernel tells it.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>

namespace weir {

// Where the kernel tells of memory. Tests give files of their own.
struct MeminfoFiles {
  std::string meminfo = "/proc/meminfo";
  std::string overcommit = "/proc/sys/vm/overcommit_memory";
};

// Bytes that can be used without swapping. -1 where the kernel does not say.
int64_t memory_available(const MeminfoFiles& files = {});

// Bytes that may still be reserved, used or not, where the kernel counts what is reserved
// (vm.overcommit_memory=2). -1 where it does not.
int64_t memory_to_commit(const MeminfoFiles& files = {});

}  // namespace weir
