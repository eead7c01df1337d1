#include "cgroup.h"

#include <gtest/gtest.h>

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
    return cgroup_memory_left(root_, root_ + "/self");
  }

  const std::string root_ = testing::TempDir() + "/weir_cgroup_test";
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

TEST_F(Cgroup, OfVersionOneIsReadToo) {
  write("/memory/x/memory.limit_in_bytes", "9000\n");
  write("/memory/x/memory.usage_in_bytes", "1\n");
  write("/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(left("12:cpu,memory:/x\n3:pids:/y\n0::/\n"), 8999);
  EXPECT_EQ(left("12:cpuset:/x\n"), -1);
  EXPECT_EQ(left("nonsense\n::\n"), -1);
}

}  // namespace
}  // namespace weir
