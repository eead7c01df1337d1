#include "base/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace weir::log {
namespace {

using namespace std::chrono_literals;

std::string notice(uint64_t dropped) { return "dropped " + std::to_string(dropped) + "\n"; }

struct Pipe {
  Pipe() { EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
  }
  std::string read_line() const {
    std::string line;
    char byte = 0;
    while (!line.ends_with('\n') && ::read(ends[0], &byte, 1) == 1) line += byte;
    return line;
  }
  int ends[2] = {-1, -1};
};

std::string line_of(int number) {
  std::string line = std::to_string(number) + " ";
  line.append(99 - line.size(), 'x');
  return line + "\n";
}

// The loop logs a line for each request: it must go on whatever becomes of standard error.
TEST(LogWriter, OfAPipeThatNobodyReadsDropsLinesAndTellsSoLater) {
  const Pipe pipe;
  LogWriter writer(pipe.ends[1], &notice);
  constexpr int kLines = 30'000;  // 3 MB: more than the pipe and the queue hold.
  for (int i = 0; i < kLines; ++i) writer.push(line_of(i));
  EXPECT_FALSE(writer.flush(10ms));
  const uint64_t dropped = writer.dropped();
  EXPECT_GT(dropped, uint64_t{kLines} / 2);

  // Each notice stands where so many lines are missing.
  int seen = 0, next = 0;
  uint64_t told = 0;
  while (next < kLines) {
    const std::string line = pipe.read_line();
    ASSERT_FALSE(line.empty());
    if (line.starts_with("dropped ")) {
      told += std::stoul(line.substr(8));
      next += std::stoi(line.substr(8));
      continue;
    }
    ASSERT_EQ(line, line_of(next++)) << "in order, each whole";
    ++seen;
  }
  EXPECT_EQ(told, dropped);
  EXPECT_EQ(static_cast<uint64_t>(seen) + dropped, uint64_t{kLines});
  // From now on nothing is missing.
  ASSERT_TRUE(writer.flush(10s));
  writer.push("later\n");
  EXPECT_EQ(pipe.read_line(), "later\n");
  EXPECT_TRUE(writer.flush(10s));
  EXPECT_EQ(writer.dropped(), dropped);
}

TEST(LogWriter, WritesToEachFileWhatWasLoggedBeforeItsSuccessor) {
  const std::string name = testing::TempDir() + "weir_log_writer_" + std::to_string(::getpid());
  const auto open = [&](int i) {
    return ::open((name + std::to_string(i)).c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  };
  {
    LogWriter writer(STDERR_FILENO, &notice);
    for (int i = 0; i < 3; ++i) {
      writer.write_to(open(i));
      writer.push("first of " + std::to_string(i) + "\n");
      writer.push(std::string(10'000, 'x') + "\n");
    }
    EXPECT_TRUE(writer.flush(10s));
    EXPECT_EQ(writer.dropped(), 0u);
  }
  for (int i = 0; i < 3; ++i) {
    std::ifstream file(name + std::to_string(i));
    std::stringstream text;
    text << file.rdbuf();
    EXPECT_EQ(text.str(), "first of " + std::to_string(i) + "\n" + std::string(10'000, 'x') + "\n");
    ::unlink((name + std::to_string(i)).c_str());
  }
}

TEST(LogWriter, LeavesAFileThatTakesNothingForItsSuccessor) {
  const Pipe full, next;
  {
    LogWriter writer(STDERR_FILENO, &notice);
    const int fd = ::fcntl(full.ends[1], F_DUPFD_CLOEXEC, 0);
    ASSERT_EQ(::fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    writer.write_to(fd);
    for (int i = 0; i < 1'000; ++i) writer.push(line_of(i));  // 100 KB: more than the pipe holds.
    EXPECT_FALSE(writer.flush(1ms));
    writer.write_to(::fcntl(next.ends[1], F_DUPFD_CLOEXEC, 0));
    writer.push("here\n");
    EXPECT_EQ(next.read_line(), "here\n");
    EXPECT_GT(writer.dropped(), 0u) << "what the first did not take";
  }
}

TEST(LogWriter, CountsWhatAFullDiskDoesNotTake) {
  const int fd = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (fd < 0) GTEST_SKIP() << "no /dev/full here";
  LogWriter writer(STDERR_FILENO, &notice);
  writer.write_to(fd);
  writer.push("one\n");
  writer.push("two\n");
  EXPECT_TRUE(writer.flush(10s));
  EXPECT_EQ(writer.dropped(), 2u);
}

}  // namespace
}  // namespace weir::log
