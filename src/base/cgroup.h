// What the control groups of this process allow: memory and processor time. A group's limit holds
// for everything below it, so the least of the own group's and its ancestors' counts.
//
// Threads: any.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weir {

// Where the system tells of control groups. Tests give files of their own.
struct CgroupFiles {
  std::string membership = "/proc/self/cgroup";
  std::string mounts = "/proc/self/mountinfo";
  std::string root = "/sys/fs/cgroup";  // Where groups lie if `mounts` does not say.
};

// Folders of this process's group and of its ancestors, its own first, as far up as this process
// can see: in version 1's hierarchy of `controller`, or with an empty one in version 2's. A folder
// need not exist: a container may name a group that lies outside of it.
std::vector<std::string> cgroup_folders(std::string_view controller, const CgroupFiles& files = {});

// Bytes that the groups (version 2, else 1) still allow: the least limit, each less what is used
// there, but for the cache of files. -1 without any limit.
int64_t cgroup_memory_left(const CgroupFiles& files = {});

// Processors' worth of time that the groups' quotas allow (systemd's CPUQuota=, docker's --cpus):
// 1.5 is a core and a half. -1 without any limit.
double cgroup_cores(const CgroupFiles& files = {});

}  // namespace weir
