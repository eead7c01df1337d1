#include "ssd/disk.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "measure/modelled_disk.h"
#include "ssd/pread_disk.h"
#include "ssd/temp_file.h"
#include "ssd/uring_disk.h"

namespace weir::ssd {
namespace {

using namespace std::chrono_literals;

constexpr uint64_t kBlock = kBlockBytes;

struct Way {
  const char* name;
  bool uring;
  bool direct;
};

constexpr Way kWays[] = {{"uring_direct", true, true},
                         {"uring_buffered", true, false},
                         {"pread_direct", false, true},
                         {"pread_buffered", false, false}};

// Every way to read, on real files. A way that this machine lacks is skipped by name.
class DiskWays : public testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    const Way way = GetParam();
    DiskOptions options;
    options.direct = way.direct;
    if (way.uring) {
      auto disk = make_uring_disk(options);
      if (!disk) GTEST_SKIP() << disk.error().message;
      disk_ = std::move(*disk);
    } else {
      disk_ = std::make_unique<PreadDisk>(options);
    }
    if (way.direct && !folder_.direct()) GTEST_SKIP() << folder_.path() << " has no O_DIRECT";
  }

  int32_t open(const std::string& path) {
    auto file = disk_->open_file(path);
    EXPECT_TRUE(file) << (file ? "" : file.error().message);
    return file.value_or(-1);
  }

  // Answers of the next `count` reads, in the order in which they come.
  std::vector<DiskDone> answers(size_t count) {
    std::vector<DiskDone> all;
    std::array<DiskDone, 8> some;
    const auto end = disk_->now() + 20s;
    while (all.size() < count && disk_->now() < end) {
      const int32_t n = disk_->wait(some, 1s);
      all.insert(all.end(), some.begin(), some.begin() + n);
    }
    return all;
  }

  TempFolder folder_;
  ReadMemory memory_{size_t{16} << 20};
  std::unique_ptr<Disk> disk_;
};

INSTANTIATE_TEST_SUITE_P(All, DiskWays, testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name); });

TEST_P(DiskWays, SaysHowItReads) {
  open(folder_.write("a", 1, 3 * kBlock));
  const std::string_view mode = disk_->mode();
  EXPECT_EQ(mode.starts_with("io_uring, "), GetParam().uring) << mode;
  EXPECT_EQ(mode.ends_with("O_DIRECT"), GetParam().direct) << mode;
}

TEST_P(DiskWays, RandomReadsOfSeveralFilesHaveTheFilesBytes) {
  constexpr uint64_t kFileBytes = 4 << 20;
  std::vector<int32_t> files;
  for (uint64_t seed = 0; seed < 3; ++seed)
    files.push_back(open(folder_.write("f" + std::to_string(seed), seed, kFileBytes)));
  std::mt19937_64 random(7);
  std::vector<DiskRead> reads;
  for (int round = 0; round < 4; ++round) {
    reads.clear();
    size_t place = 0;
    for (uint64_t tag = 0; tag < 60; ++tag) {
      DiskRead read;
      read.file = files[random() % files.size()];
      read.bytes = static_cast<uint32_t>((1 + random() % 60) * kBlock);
      read.offset = random() % ((kFileBytes - read.bytes) / kBlock + 1) * kBlock;
      read.to = memory_.at(place);
      read.tag = tag;
      place += read.bytes;
      ASSERT_TRUE(disk_->submit(read));
      if (tag % 7 == 0) disk_->flush();
      reads.push_back(read);
    }
    std::vector<bool> answered(reads.size());
    for (const DiskDone& done : answers(reads.size())) {
      ASSERT_LT(done.tag, reads.size());
      EXPECT_FALSE(answered[done.tag]);
      answered[done.tag] = true;
      const DiskRead& read = reads[done.tag];
      EXPECT_EQ(done.result, static_cast<int32_t>(read.bytes));
      EXPECT_TRUE(has_words(static_cast<uint64_t>(read.file), read.offset, {read.to, read.bytes}));
    }
    EXPECT_EQ(std::ranges::count(answered, true), 60);
  }
}

TEST_P(DiskWays, AReadPastTheEndGivesWhatThereIs) {
  const int32_t file = open(folder_.write("a", 5, 3 * kBlock + 100));
  disk_->submit({file, 2 * kBlock, 2 * kBlock, memory_.at(0), 1});
  disk_->submit({file, 4 * kBlock, 8 * kBlock, memory_.at(4 * kBlock), 2});
  auto done = answers(2);
  ASSERT_EQ(done.size(), 2u);
  std::ranges::sort(done, {}, &DiskDone::tag);
  EXPECT_EQ(done[0].result, static_cast<int32_t>(kBlock + 100));
  EXPECT_TRUE(has_words(5, 2 * kBlock, memory_.span(0, kBlock + 100)));
  EXPECT_EQ(done[1].result, 0);
}

TEST_P(DiskWays, RefusesMoreReadsThanItsDepthAndTakesThemLater) {
  const int32_t file = open(folder_.write("a", 1, 64 * kBlock));
  int32_t taken = 0;
  while (disk_->submit({file, kBlock, 0, memory_.at(0), 0})) ++taken;
  EXPECT_EQ(taken, DiskOptions().depth);
  EXPECT_EQ(answers(static_cast<size_t>(taken)).size(), static_cast<size_t>(taken));
  EXPECT_TRUE(disk_->submit({file, kBlock, 0, memory_.at(0), 0}));
  EXPECT_EQ(answers(1).size(), 1u);
}

TEST_P(DiskWays, PollSubmitsAndSeesCompletionsWithoutWaiting) {
  const int32_t file = open(folder_.write("a", 1, 64 * kBlock));
  ASSERT_TRUE(disk_->submit({file, 64 * kBlock, 0, memory_.at(0), 3}));
  std::array<DiskDone, 4> done;
  const auto end = disk_->now() + 20s;
  int32_t count = 0;
  while ((count = disk_->poll(done)) == 0 && disk_->now() < end) std::this_thread::sleep_for(1ms);
  ASSERT_EQ(count, 1);
  EXPECT_EQ(done[0].tag, 3u);
  EXPECT_EQ(disk_->poll(done), 0);
}

TEST_P(DiskWays, WaitEndsAfterItsTimeWithNothingInFlight) {
  std::array<DiskDone, 4> done;
  const auto begin = disk_->now();
  EXPECT_EQ(disk_->wait(done, 20ms), 0);
  EXPECT_GE(disk_->now() - begin, 15ms);
}

TEST_P(DiskWays, CountsTheProcessorTimeOfReadsAndNoSleep) {
  const int32_t file = open(folder_.write("a", 1, 4 << 20));
  for (uint64_t i = 0; i < 16; ++i)
    ASSERT_TRUE(disk_->submit({file, 256 << 10, i * (256 << 10), memory_.at(i * (256 << 10)), i}));
  EXPECT_EQ(answers(16).size(), 16u);
  const auto read = disk_->cpu_time();
  EXPECT_GT(read, 1us);
  EXPECT_LT(read, 4s) << "of 4 MiB";
  std::array<DiskDone, 1> none;
  EXPECT_EQ(disk_->wait(none, 300ms), 0);
  EXPECT_LT(disk_->cpu_time() - read, 100ms);
}

TEST_P(DiskWays, MayBeUsedByAnotherThreadThanTheOneThatMadeIt) {
  const int32_t file = open(folder_.write("a", 1, 64 * kBlock));
  std::thread([&] {
    ASSERT_TRUE(disk_->submit({file, 4 * kBlock, kBlock, memory_.at(0), 9}));
    EXPECT_EQ(answers(1).size(), 1u);
  }).join();
  EXPECT_TRUE(has_words(1, kBlock, memory_.span(0, 4 * kBlock)));
}

TEST_P(DiskWays, ADiskMayGoWithReadsInFlight) {
  const int32_t file = open(folder_.write("a", 1, 1024 * kBlock));
  for (int i = 0; i < 32; ++i) disk_->submit({file, 256 * kBlock, 0, memory_.at(0), 0});
  disk_->flush();
  disk_.reset();
}

TEST_P(DiskWays, LeavesODirectOnceAndReadsOn) {
  const int32_t file = open(folder_.write("a", 1, 64 * kBlock));
  EXPECT_EQ(disk_->leave_direct(file), GetParam().direct);
  EXPECT_FALSE(disk_->leave_direct(file));
  EXPECT_NE(disk_->mode().find("buffered"), std::string_view::npos) << disk_->mode();
  ASSERT_TRUE(disk_->submit({file, 64 * kBlock, 0, memory_.at(0), 1}));
  ASSERT_EQ(answers(1).size(), 1u);
  EXPECT_TRUE(has_words(1, 0, memory_.span(0, 64 * kBlock)));
}

TEST_P(DiskWays, AFileThatCannotBeOpenedIsNamed) {
  const auto missing = disk_->open_file(folder_.path() + "/missing");
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().message.find("/missing"), std::string::npos);
  EXPECT_NE(missing.error().message.find("No such file"), std::string::npos);
  const auto directory = disk_->open_file(folder_.path());
  ASSERT_FALSE(directory);
  EXPECT_EQ(directory.error().code, ErrorCode::kIo);
}

TEST_P(DiskWays, SeesWhatBecomesOfAFile) {
  const std::string same = folder_.write("same", 1, 4 * kBlock);
  const std::string cut = folder_.write("cut", 1, 4 * kBlock);
  const std::string written = folder_.write("written", 1, 4 * kBlock);
  const std::string replaced = folder_.write("replaced", 1, 4 * kBlock);
  const std::string gone = folder_.write("gone", 1, 4 * kBlock);
  std::vector<int32_t> files;
  for (const auto& path : {same, cut, written, replaced, gone}) files.push_back(open(path));
  for (const int32_t file : files)
    EXPECT_EQ(disk_->file_state(file).change, FileChange::kNone) << disk_->path(file);

  std::filesystem::resize_file(cut, kBlock);
  std::this_thread::sleep_for(20ms);  // A file system's clock ticks every 1 to 10 ms.
  folder_.write("written", 2, 4 * kBlock);
  std::filesystem::rename(folder_.write("new", 2, 4 * kBlock), replaced);
  std::filesystem::remove(gone);
  EXPECT_EQ(disk_->file_state(files[0]).change, FileChange::kNone);
  EXPECT_EQ(disk_->file_state(files[1]).change, FileChange::kTruncated);
  EXPECT_EQ(disk_->file_state(files[1]).bytes, kBlock);
  EXPECT_EQ(disk_->file_state(files[1]).opened_bytes, 4 * kBlock);
  EXPECT_EQ(disk_->file_state(files[2]).change, FileChange::kModified);
  EXPECT_EQ(disk_->file_state(files[3]).change, FileChange::kReplaced);
  EXPECT_EQ(disk_->file_state(files[4]).change, FileChange::kReplaced);
}

TEST(Disk, CreateReadsInTheBestWayThatThereIs) {
  TempFolder folder;
  auto disk = Disk::create({});
  ASSERT_TRUE(disk);
  ASSERT_TRUE((*disk)->open_file(folder.write("a", 1, kBlock)));
  const bool uring = make_uring_disk({}).has_value();
  EXPECT_TRUE((*disk)->mode().starts_with(uring ? "io_uring" : "pread")) << (*disk)->mode();
  EXPECT_EQ((*disk)->mode().ends_with("O_DIRECT"), folder.direct()) << (*disk)->mode();
}

TEST(Disk, ReadsAFileSystemInMemoryToo) {
  if (::access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm";
  const std::string path = "/dev/shm/weir_disk_test_" + std::to_string(::getpid());
  std::vector<std::byte> bytes(8 * kBlock);
  fill_words(3, 0, bytes);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<long>(bytes.size()));
  auto disk = Disk::create({});
  const auto file = (*disk)->open_file(path);
  std::filesystem::remove(path);
  ASSERT_TRUE(file) << file.error().message;
  ReadMemory memory(8 * kBlock);
  ASSERT_TRUE((*disk)->submit({*file, 8 * kBlock, 0, memory.at(0), 1}));
  std::array<DiskDone, 1> done;
  ASSERT_EQ((*disk)->wait(done, 20s), 1);
  EXPECT_EQ(done[0].result, static_cast<int32_t>(8 * kBlock));
  EXPECT_TRUE(has_words(3, 0, memory.span(0, 8 * kBlock)));
}

}  // namespace
}  // namespace weir::ssd
