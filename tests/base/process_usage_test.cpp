#include "base/process_usage.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <thread>

namespace weir {
namespace {

TEST(ProcessUsages, TellWhatThisProcessTakes) {
  const ProcessUsage before = process_usage();
  ASSERT_TRUE(before.is_known);
  EXPECT_GT(before.resident_bytes, 1 << 20);
  EXPECT_GE(before.resident_bytes_max, before.resident_bytes);
  EXPECT_GE(before.virtual_bytes, before.resident_bytes);
  EXPECT_LE(before.start_s, static_cast<double>(std::time(nullptr)) + 1);
  EXPECT_GT(before.start_s, static_cast<double>(std::time(nullptr)) - 3600);
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  EXPECT_EQ(before.open_files_max, static_cast<int64_t>(files.rlim_cur));

  const int file = ::open("/dev/null", O_RDONLY);
  std::thread busy([] {
    const std::clock_t begin = std::clock();
    while (std::clock() - begin < CLOCKS_PER_SEC / 20) {
    }
  });
  const ProcessUsage during = process_usage(::getpid());
  busy.join();
  EXPECT_EQ(during.open_files, before.open_files + 1);
  EXPECT_GE(during.threads, before.threads);
  EXPECT_GT(process_usage().cpu_s, before.cpu_s);
  ::close(file);
}

TEST(ProcessUsages, AreUnknownOfNobody) {
  EXPECT_FALSE(process_usage(-1).is_known);
  EXPECT_FALSE(process_usage(INT32_MAX).is_known);
}

}  // namespace
}  // namespace weir
