#include "base/meminfo.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weir {
namespace {

class Meminfo : public testing::Test {
 protected:
  Meminfo() { std::filesystem::create_directories(root_); }
  ~Meminfo() override { std::filesystem::remove_all(root_); }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ + name) << text;
  }
  MeminfoFiles files() const { return {root_ + "/meminfo", root_ + "/overcommit"}; }

  const std::string root_ = testing::TempDir() + "weir_meminfo_" + std::to_string(::getpid());
};

TEST_F(Meminfo, IsReadLineByLine) {
  EXPECT_EQ(memory_available(files()), -1) << "there is no file";
  write("/meminfo", "HugePages_Total:       0\nMemTotal:  9000 kB\nMemAvailable:    3000 kB\n");
  EXPECT_EQ(memory_available(files()), 3000 << 10) << "some lines have no unit";
}

TEST_F(Meminfo, WhatMayBeReservedCountsWhereNothingIsOvercommitted) {
  write("/meminfo", "MemAvailable: 9000 kB\nCommitLimit:    5000 kB\nCommitted_AS:   1000 kB\n");
  EXPECT_EQ(memory_to_commit(files()), -1) << "the kernel does not say";
  for (const char* mode : {"0\n", "1\n"}) {
    write("/overcommit", mode);
    EXPECT_EQ(memory_to_commit(files()), -1) << mode;
  }
  write("/overcommit", "2\n");
  EXPECT_EQ(memory_to_commit(files()), 4000 << 10);
  write("/meminfo", "CommitLimit:    5000 kB\nCommitted_AS:   6000 kB\n");
  EXPECT_EQ(memory_to_commit(files()), 0) << "the limit was lowered";
  write("/meminfo", "CommitLimit:    5000 kB\n");
  EXPECT_EQ(memory_to_commit(files()), -1);
}

}  // namespace
}  // namespace weir
