// What becomes of a store whose files are replaced, written to or cut while it reads them (real
// files): never a byte that was not there when they were opened.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "ssd/pread_disk.h"
#include "ssd/small_store.h"

namespace weir::ssd {
namespace {

using namespace std::chrono_literals;

// A real disk whose clock a test can put forward: files are looked at every ten seconds.
class HastyDisk final : public Disk {
 public:
  explicit HastyDisk(std::chrono::nanoseconds& ahead) : ahead_(ahead) {}

  Result<int32_t> open_file(const std::string& path) override { return disk_.open_file(path); }
  bool submit(const DiskRead& read) override { return disk_.submit(read); }
  void flush() override { disk_.flush(); }
  int32_t poll(std::span<DiskDone> out) override { return disk_.poll(out); }
  int32_t wait(std::span<DiskDone> out, std::chrono::nanoseconds timeout) override {
    return disk_.wait(out, timeout);
  }
  bool leave_direct(int32_t file) override { return disk_.leave_direct(file); }
  const std::string& path(int32_t file) const override { return disk_.path(file); }
  FileState file_state(int32_t file) const override { return disk_.file_state(file); }
  std::string_view mode() const override { return disk_.mode(); }
  std::chrono::nanoseconds now() const override { return disk_.now() + ahead_; }

 private:
  PreadDisk disk_{DiskOptions{}};
  std::chrono::nanoseconds& ahead_;
};

class FileChanges : public testing::TestWithParam<bool> {
 protected:
  // The file that is read.
  const std::string& file() const { return GetParam() ? small_.bundle_path() : small_.path(); }
  uint64_t changes() { return small_.store().reads().file_changes.value(); }
  void look() { ahead_ += 25s; }

  // Every expert in turn: most have to be read.
  std::string read_all() {
    for (int32_t expert = 0; expert < SmallStore::kExperts; expert += 2)
      if (std::string why = small_.step({{expert, expert + 1}}); !why.empty()) return why;
    return "";
  }
  std::vector<std::string> notices() {
    std::vector<std::string> lines;
    while (auto line = small_.store().take_notice()) lines.push_back(std::move(*line));
    return lines;
  }
  void expect_told(const std::string& how) {
    const std::string line = "ssd file changed since it was opened file=" + file() + " how=" + how;
    EXPECT_TRUE(std::ranges::any_of(notices(), [&](const std::string& notice) {
      return notice.starts_with(line);
    })) << line;
  }

  std::chrono::nanoseconds ahead_{0};
  SmallStore small_{std::make_unique<HastyDisk>(ahead_), 6, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Of, FileChanges, testing::Bool(), [](const auto& bundle) {
  return std::string(bundle.param ? "ABundle" : "ACheckpoint");
});

TEST_P(FileChanges, AReplacedFileIsReadOnAsItWas) {
  EXPECT_EQ(read_all(), "");
  std::filesystem::rename(small_.folder().write("other", 77, SmallStore::kFileBytes), file());
  look();
  EXPECT_EQ(read_all(), "");
  EXPECT_EQ(changes(), 1u);
  expect_told("replaced");
  std::filesystem::remove(file());
  look();
  EXPECT_EQ(read_all(), "");
  EXPECT_EQ(small_.store().stats().crc_failures.value(), 0u);
}

// What no checksum vouches for is refused; what a bundle has lost is read from the checkpoint.
TEST_P(FileChanges, WhatWasWrittenInPlaceIsNeverComputedWith) {
  EXPECT_EQ(read_all(), "");
  struct stat before {};
  ASSERT_EQ(::stat(file().c_str(), &before), 0);
  std::vector<std::byte> bytes(SmallStore::kExpertBytes);
  const auto write = [&](uint64_t seed) {
    std::fstream out(file(), std::ios::in | std::ios::out | std::ios::binary);
    fill_words(seed, 0, bytes);  // The first expert of the first layer.
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  };
  write(77);
  look();
  const std::string why = read_all();
  if (GetParam()) {
    EXPECT_EQ(why, "");
    EXPECT_EQ(small_.store().stats().crc_failures.value(), 4u) << "two parts, twice";
    EXPECT_EQ(read_all(), "");
    EXPECT_EQ(small_.store().stats().crc_failures.value(), 4u) << "never read from there again";
  } else {
    EXPECT_TRUE(why.starts_with(file() + ": expected ")) << why;
    EXPECT_NE(why.find("was written to since"), std::string::npos) << why;
    EXPECT_GT(small_.store().reads().errors[static_cast<size_t>(ReadError::kChanged)].value(), 0u);
  }
  expect_told("modified");
  // Put back, with its time: it is again what was opened.
  write(SmallStore::kSeed);
  const timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, file().c_str(), times, 0), 0);
  // Guesses that were under way before fail those that wait for them, once.
  for (int32_t expert = 0; expert < SmallStore::kExperts && !read_all().empty(); ++expert) {
  }
  EXPECT_EQ(read_all(), "");
}

// Bytes that were read before anybody knew that they were others' are neither computed with later
// nor kept, and the step that may have computed with them says so.
class ReadTooLate : public testing::Test {
 protected:
  static constexpr int32_t kEarly = 0, kLate = 4;

  static void set_time(const std::string& file, timespec time) {
    const timespec times[2] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, time};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  }
  static timespec time_of(const std::string& file) {
    struct stat found {};
    EXPECT_EQ(::stat(file.c_str(), &found), 0);
    return found.st_mtim;
  }
  static std::string step(SmallStore& small, int32_t expert) {
    return small.step({{expert, expert + 1}});
  }
  static uint64_t reads(SmallStore& small) { return small.store().reads().reads[0].value(); }
  static void expect_doubt(SmallStore& small, const std::string& file) {
    const std::string& doubt = small.store().doubt();
    EXPECT_TRUE(doubt.starts_with(file + ": expected the file that was opened, found: a file of "))
        << doubt;
    EXPECT_NE(doubt.find("written to since"), std::string::npos) << doubt;
    EXPECT_GT(small.store().stats().distrusted_experts.value(), 0u);
  }

  std::chrono::nanoseconds ahead_{0};  // The clock never comes to the next look of its own.
};

TEST_F(ReadTooLate, OfACheckpointItIsDroppedAndWhatWasReadBeforeStays) {
  SmallStore small(std::make_unique<HastyDisk>(ahead_), 16);
  const timespec opened = time_of(small.path());
  EXPECT_EQ(step(small, kEarly), "");
  EXPECT_EQ(small.store().doubt(), "");
  set_time(small.path(), {.tv_sec = 1, .tv_nsec = 0});
  EXPECT_EQ(step(small, kLate), "") << "nobody has looked when it is computed";
  expect_doubt(small, small.path());
  EXPECT_EQ(small.store().stats().distrusted_experts.value(), 2u * SmallStore::kLayers);

  const uint64_t before = reads(small);
  EXPECT_EQ(step(small, kEarly), "");
  EXPECT_EQ(small.store().doubt(), "");
  EXPECT_EQ(reads(small), before) << "they were there";
  EXPECT_NE(step(small, kLate), "");
  set_time(small.path(), opened);
  EXPECT_EQ(step(small, kLate), "");
  EXPECT_EQ(small.store().doubt(), "");
}

// Of a part that was good when it was read first only few later loads are checked.
TEST_F(ReadTooLate, OfABundleItIsReadAgainWithItsChecksums) {
  SmallStore small(std::make_unique<HastyDisk>(ahead_), 6, /*bundle=*/true);
  for (const int32_t expert : {kEarly, kLate, kEarly}) EXPECT_EQ(step(small, expert), "");
  set_time(small.bundle_path(), {.tv_sec = 1, .tv_nsec = 0});
  EXPECT_EQ(step(small, kLate), "");
  expect_doubt(small, small.bundle_path());
  const uint64_t before = reads(small);
  EXPECT_EQ(step(small, kLate), "");
  EXPECT_EQ(small.store().doubt(), "");
  EXPECT_GT(reads(small), before);
}

TEST_P(FileChanges, WhatIsLeftOfACutFileIsNotMixedWithWhatComesLater) {
  EXPECT_EQ(read_all(), "");
  std::filesystem::resize_file(file(), SmallStore::kFileBytes / 2);
  const std::string why = read_all();
  if (GetParam()) {
    EXPECT_EQ(why, "") << "the checkpoint has it all";
    EXPECT_GT(small_.store().stats().source_parts.value(), 0u);
  } else {
    EXPECT_NE(why.find(file() + ": expected "), std::string::npos) << why;
    EXPECT_NE(
        why.find("found: a file of " + std::to_string(SmallStore::kFileBytes / 2) + " bytes (" +
                 std::to_string(SmallStore::kFileBytes) + " when it was opened)"),
        std::string::npos)
        << why;
  }
  expect_told("truncated");
  // Somebody copies another model over it, and is half done.
  {
    std::vector<std::byte> bytes(SmallStore::kFileBytes / 2);
    fill_words(77, 0, bytes);
    std::fstream out(file(), std::ios::in | std::ios::out | std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()),
              static_cast<std::streamsize>(bytes.size()));
  }
  for (int i = 0; i < 3; ++i) EXPECT_EQ(read_all().empty(), GetParam());
}

}  // namespace
}  // namespace weir::ssd
