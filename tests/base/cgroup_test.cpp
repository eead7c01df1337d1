#include "base/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weir {
namespace {

class Cgroup : public testing::Test {
 protected:
  Cgroup() { std::filesystem::remove_all(root_); }
  ~Cgroup() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  int64_t left(const std::string& membership) const {
    write("/self", membership);
    return cgroup_memory_left(files());
  }
  double cores(const std::string& membership) const {
    write("/self", membership);
    return cgroup_cores(files());
  }
  CgroupFiles files() const { return {root_ + "/self", root_ + "/mounts", root_}; }

  const std::string root_ = testing::TempDir() + "weir_cgroup_" + std::to_string(::getpid());
};

TEST_F(Cgroup, TheLeastOfItsOwnLimitAndItsAncestorsCounts) {
  write("/a/b/memory.max", "5000\n");
  write("/a/b/memory.current", "1000\n");
  EXPECT_EQ(left("0::/a/b\n"), 4000);
  write("/a/memory.max", "6000\n");
  write("/a/memory.current", "3500\n");
  EXPECT_EQ(left("0::/a/b\n"), 2500) << "a service's slice may leave less than the service";
  EXPECT_EQ(left("0::/a\n"), 2500);
  EXPECT_EQ(left("0::/\n"), -1) << "the root has no limit";
  write("/a/memory.current", "7000\n");
  EXPECT_EQ(left("0::/a/b\n"), 0);
}

TEST_F(Cgroup, ThatIsNotVisibleIsTheContainersRoot) {
  write("/memory.max", "800\n");
  EXPECT_EQ(left("0::/docker/0123\n"), 800);
  write("/memory.max", "max\n");
  EXPECT_EQ(left("0::/docker/0123\n"), -1);
}

TEST_F(Cgroup, TheCacheOfFilesTakesNothing) {
  write("/a/memory.max", "5000\n");
  write("/a/memory.current", "4500\n");
  write("/a/memory.stat", "anon 400\nfile 4100\nactive_file 100\ninactive_file 4000\n");
  EXPECT_EQ(left("0::/a\n"), 4600) << "a model that was just downloaded";
  write("/a/memory.stat", "anon 400\nfile 4100\nactive_file 4000\ninactive_file 100\n");
  EXPECT_EQ(left("0::/a\n"), 4600) << "and read again since";
  write("/a/memory.stat", "anon 400\nfile 4100\nshmem 4100\nactive_file 0\ninactive_file 0\n");
  EXPECT_EQ(left("0::/a\n"), 500) << "files in memory stay there";
  write("/a/memory.stat", "inactive_file 9000\n");
  EXPECT_EQ(left("0::/a\n"), 5000);
  write("/memory/x/memory.limit_in_bytes", "5000\n");
  write("/memory/x/memory.usage_in_bytes", "4500\n");
  write("/memory/x/memory.stat",
        "inactive_file 1\nactive_file 2\ntotal_inactive_file 3000\ntotal_active_file 1000\n");
  EXPECT_EQ(left("4:memory:/x\n"), 4500);
}

TEST_F(Cgroup, OfVersionOneIsReadToo) {
  write("/memory/x/memory.limit_in_bytes", "9000\n");
  write("/memory/x/memory.usage_in_bytes", "1\n");
  write("/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(left("12:cpu,memory:/x\n3:pids:/y\n0::/\n"), 8999);
  EXPECT_EQ(left("12:cpuset:/x\n"), -1);
  EXPECT_EQ(left("nonsense\n::\n"), -1);
}

TEST_F(Cgroup, AQuotaIsThatOfItsOwnGroupOrOfAnAncestor) {
  write("/system.slice/weir.service/cpu.max", "150000 100000\n");
  EXPECT_EQ(cores("0::/system.slice/weir.service\n"), 1.5) << "systemd's CPUQuota=150%";
  write("/system.slice/cpu.max", "max 100000\n");
  EXPECT_EQ(cores("0::/system.slice/weir.service\n"), 1.5);
  write("/system.slice/cpu.max", "50000 50000\n");
  EXPECT_EQ(cores("0::/system.slice/weir.service\n"), 1) << "its slice may have less";
  EXPECT_EQ(cores("0::/system.slice/other.service/deep/er\n"), 1);
  EXPECT_EQ(cores("0::/user.slice\n"), -1);
  write("/cpu.max", "25000 100000\n");
  EXPECT_EQ(cores("0::/user.slice\n"), 0.25) << "the container's own group is the root";
}

TEST_F(Cgroup, AQuotaOfVersionOneIsReadToo) {
  write("/cpu/a/b/cpu.cfs_quota_us", "-1\n");
  write("/cpu/a/b/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores("4:cpu,cpuacct:/a/b\n9:memory:/\n"), -1);
  write("/cpu/a/cpu.cfs_quota_us", "300000\n");
  write("/cpu/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores("4:cpu,cpuacct:/a/b\n9:memory:/\n"), 3);
  EXPECT_EQ(cores("4:cpuacct,cpuset:/a/b\n"), -1) << "another controller's path";
  for (const char* nonsense : {"", "max", "0 100000", "-1 -1", "x y", "100000"}) {
    write("/cpu.max", nonsense);
    EXPECT_EQ(cores("0::/\n"), -1) << nonsense;
  }
}

// Without a namespace of its own a container sees the host's path, and its own group mounted.
TEST_F(Cgroup, LiesWhereItIsMounted) {
  const std::string line = " rw,nosuid - cgroup2 cgroup2 rw\n";
  write("/mounts",
        "22 1 0:20 / /proc rw - proc proc rw\n31 23 0:28 /docker/0123 " + root_ + "/here" + line);
  write("/here/sub/cpu.max", "200000 100000\n");
  write("/here/cpu.max", "800000 100000\n");
  write("/here/memory.max", "4096\n");
  write("/docker/0123/cpu.max", "1 100000\n");
  EXPECT_EQ(cores("0::/docker/0123/sub\n"), 2);
  EXPECT_EQ(cores("0::/docker/0123\n"), 8);
  EXPECT_EQ(cores("0::/docker/01234\n"), 8) << "not below the mount: its root is all there is";
  EXPECT_EQ(left("0::/docker/0123/sub\n"), 4096);
  EXPECT_EQ(cores("0::/../other\n"), 8) << "outside of the namespace";
  write("/mounts", "31 23 0:28 / " + root_ + "/here" + line);
  EXPECT_EQ(cores("0::/sub\n"), 2);
  EXPECT_EQ(cgroup_folders("", files()),
            (std::vector<std::string>{root_ + "/here/sub", root_ + "/here"}));
  EXPECT_EQ(cores("0::/../../sub\n"), 8) << "never above the mount";
}

TEST_F(Cgroup, OfVersionOneIsMountedByController) {
  write("/mounts", "32 31 0:29 / " + root_ + "/x rw - cgroup cgroup rw,cpuset\n33 31 0:30 / " +
                       root_ + "/cpu,cpuacct rw shared:9 - cgroup cgroup rw,cpu,cpuacct\n");
  write("/cpu,cpuacct/a/cpu.cfs_quota_us", "250000\n");
  write("/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  write("/x/a/cpu.cfs_quota_us", "1\n");
  write("/x/a/cpu.cfs_period_us", "1\n");
  EXPECT_EQ(cores("2:cpuset:/a\n3:cpu,cpuacct:/a\n0::/\n"), 2.5);
}

}  // namespace
}  // namespace weir
