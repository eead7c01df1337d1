#include "base/mapping_guard.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"

namespace weir {
namespace {

constexpr size_t kPage = 4096, kPages = 64;

class MappingGuardTest : public testing::Test {
 protected:
  MappingGuardTest() {
    MappingGuard::install();
    std::ofstream(path_, std::ios::binary) << std::string(kPages * kPage, 'a');
  }
  ~MappingGuardTest() override { std::filesystem::remove(path_); }

  static size_t count(std::span<const std::byte> bytes, char value) {
    return static_cast<size_t>(std::ranges::count(bytes, static_cast<std::byte>(value)));
  }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("weir_mapping_" + std::to_string(::getpid())))
          .string();
};

TEST_F(MappingGuardTest, WhatACutFileHasLostReadsAsZerosAndIsTold) {
  const auto view = FileView::map(path_);
  const auto other = FileView::map(path_);
  ASSERT_TRUE(view && other);
  EXPECT_TRUE(view->check_unchanged());
  std::filesystem::resize_file(path_, 3 * kPage);
  EXPECT_FALSE(view->lost()) << "nobody has read it";
  EXPECT_EQ(count(view->bytes().first(3 * kPage), 'a'), 3 * kPage);
  EXPECT_FALSE(view->lost());
  EXPECT_EQ(count(view->bytes().subspan(10 * kPage), '\0'), (kPages - 10) * kPage);
  EXPECT_TRUE(view->lost());
  EXPECT_TRUE(MappingGuard::any_lost());
  EXPECT_FALSE(other->lost()) << "another mapping, though of the same file";
  EXPECT_EQ(count(view->bytes(), '\0'), (kPages - 3) * kPage) << "what lies before it too";
  const Result<void> unchanged = view->check_unchanged();
  ASSERT_FALSE(unchanged);
  EXPECT_EQ(unchanged.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(unchanged.error().message,
            path_ +
                ": expected the file of 262144 bytes that was opened, found one of 12288 bytes "
                "that was truncated since; a restart reads it anew");
}

TEST_F(MappingGuardTest, ThreadsThatFaultAtOnceAllGoOn) {
  for (int round = 0; round < 20; ++round) {
    std::ofstream(path_, std::ios::binary) << std::string(kPages * kPage, 'a');
    const auto view = FileView::map(path_);
    ASSERT_TRUE(view);
    std::filesystem::resize_file(path_, 0);
    std::vector<size_t> zeros(8);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < zeros.size(); ++i)
      threads.emplace_back([&, i] { zeros[i] = count(view->bytes(), '\0'); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(zeros, std::vector<size_t>(8, kPages * kPage));
    EXPECT_TRUE(view->lost());
  }
}

TEST_F(MappingGuardTest, APlaceInTheTableIsUsedAgain) {
  for (int i = 0; i < 2 * MappingGuard::kMappingsMax; ++i) ASSERT_TRUE(FileView::map(path_));
  const auto view = FileView::map(path_);
  ASSERT_TRUE(view);
  EXPECT_FALSE(view->lost());
  std::filesystem::resize_file(path_, 0);
  EXPECT_EQ(count(view->bytes(), '\0'), kPages * kPage);
  EXPECT_TRUE(view->lost());
}

// A sanitizer, whose handler was there before ours, reports the signal and ends the process.
bool ended_by_sigbus(int status) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
#else
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS;
#endif
}

TEST_F(MappingGuardTest, OtherFaultsEndTheProcessAsTheyDid) {
  const auto fault = [this] {
    const int fd = ::open(path_.c_str(), O_RDONLY);
    const auto* bytes =
        static_cast<const char*>(::mmap(nullptr, kPage, PROT_READ, MAP_PRIVATE, fd, 0));
    std::filesystem::resize_file(path_, 0);
    std::exit(bytes[0]);
  };
  EXPECT_EXIT(fault(), ended_by_sigbus, "");
  EXPECT_EXIT(::raise(SIGBUS), ended_by_sigbus, "");
  EXPECT_EXIT(::kill(::getpid(), SIGBUS), ended_by_sigbus, "");
}

}  // namespace
}  // namespace weir
