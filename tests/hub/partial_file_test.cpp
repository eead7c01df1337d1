#include "hub/partial_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "scripted_transport.h"

namespace weir::hub {
namespace {

namespace fs = std::filesystem;

class PartialFileTest : public testing::Test {
 protected:
  PartialFileTest()
      : folder_(fs::temp_directory_path() / ("weir_partial_" + std::to_string(getpid()))) {
    fs::remove_all(folder_);
  }
  ~PartialFileTest() override { fs::remove_all(folder_); }

  Result<std::optional<PartialFile>> open(const TreeFile& file) {
    return PartialFile::open((folder_ / "blobs" / file.blob).string(),
                             (folder_ / "locks" / file.blob).string(), file);
  }
  std::string content(const std::string& name) {
    std::ifstream file(folder_ / "blobs" / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  const fs::path folder_;
  const std::string bytes_ = std::string(100'000, 'x') + "end";
  const TreeFile file_{.path = "f", .size = 100'003, .blob = blob_of(bytes_, true)};
};

TEST_F(PartialFileTest, GetsItsNameWhenItsBytesAreRight) {
  auto partial = open(file_);
  ASSERT_TRUE(partial && *partial);
  PartialFile& file = **partial;
  ASSERT_TRUE(file.write(50'000, bytes_.substr(50'000)));
  EXPECT_FALSE(*file.hash(1 << 30)) << "its beginning is missing";
  ASSERT_TRUE(file.write(0, bytes_.substr(0, 50'000)));
  EXPECT_TRUE(file.whole());
  EXPECT_TRUE(*file.hash(1 << 30));
  std::string found;
  EXPECT_TRUE(*file.finish(found));
  EXPECT_EQ(content(file_.blob), bytes_);
  EXPECT_FALSE(fs::exists(folder_ / "blobs" / (file_.blob + ".weir")));
  EXPECT_FALSE(fs::exists(folder_ / "blobs" / (file_.blob + ".weir.json")));
}

TEST_F(PartialFileTest, LeavesNothingOfWrongBytes) {
  auto partial = open(file_);
  ASSERT_TRUE(partial && *partial);
  ASSERT_TRUE((*partial)->write(0, std::string(bytes_.size(), 'y')));
  ASSERT_TRUE(*(*partial)->hash(1 << 30));
  std::string found;
  EXPECT_FALSE(*(*partial)->finish(found));
  EXPECT_EQ(found, blob_of(std::string(bytes_.size(), 'y'), true));
  EXPECT_EQ((*partial)->written().bytes(), 0u);
  EXPECT_FALSE(fs::exists(folder_ / "blobs" / file_.blob));
}

TEST_F(PartialFileTest, GoesOnWhereAnotherProcessWasKilled) {
  {
    auto partial = open(file_);
    ASSERT_TRUE(partial && *partial);
    ASSERT_TRUE((*partial)->write(10, bytes_.substr(10, 1000)));
    ASSERT_TRUE((*partial)->save());
    ASSERT_TRUE((*partial)->write(2000, bytes_.substr(2000, 10)));  // Not in the list.
  }
  EXPECT_EQ(partial_bytes((folder_ / "blobs" / file_.blob).string()), 1000);
  auto partial = open(file_);
  ASSERT_TRUE(partial && *partial);
  EXPECT_EQ((*partial)->written().bytes(), 1000u);
  const std::vector<ByteRange> gaps = (*partial)->written().gaps(bytes_.size());
  ASSERT_EQ(gaps.size(), 2u);
  for (const ByteRange& gap : gaps)
    ASSERT_TRUE(
        (*partial)->write(gap.begin, std::string_view(bytes_).substr(gap.begin, gap.bytes())));
  while (!*(*partial)->hash(1000)) {
  }
  std::string found;
  EXPECT_TRUE(*(*partial)->finish(found)) << found;
}

// What was written but not synced is lost when the machine stops: another boot counts less.
TEST_F(PartialFileTest, AfterAnotherBootOnlyWhatWasSyncedCounts) {
  {
    auto partial = open(file_);
    ASSERT_TRUE(partial && *partial);
    ASSERT_TRUE((*partial)->write(0, bytes_.substr(0, 100)));
    ASSERT_TRUE((*partial)->sync());
    ASSERT_TRUE((*partial)->write(100, bytes_.substr(100, 100)));
    ASSERT_TRUE((*partial)->save());
  }
  const std::string list_name = file_.blob + ".weir.json";
  std::string list = content(list_name);
  const size_t at = list.find("\"boot\":\"") + 8;
  ASSERT_LT(at, list.size());
  list[at] = list[at] == '0' ? '1' : '0';
  std::ofstream(folder_ / "blobs" / list_name) << list;
  auto partial = open(file_);
  ASSERT_TRUE(partial && *partial);
  EXPECT_EQ((*partial)->written().bytes(), 100u);
}

TEST_F(PartialFileTest, AStrangeListCountsAsNone) {
  for (const char* text : {"", "{", "[]", R"({"size":7,"boot":"x","written":[],"synced":[]})",
                           R"({"size":100003,"boot":"x","written":[[0,5]],"synced":[[0,999999]]})",
                           R"({"size":100003,"boot":"x","written":[[5,0]],"synced":[[5,0]]})",
                           R"({"size":100003,"boot":"x","written":[[-1,5]],"synced":[["a",5]]})",
                           R"({"size":100003,"boot":"x","written":7,"synced":[[0]]})"}) {
    fs::create_directories(folder_ / "blobs");
    std::ofstream(folder_ / "blobs" / (file_.blob + ".weir.json")) << text;
    auto partial = open(file_);
    ASSERT_TRUE(partial && *partial);
    EXPECT_EQ((*partial)->written().bytes(), 0u) << text;
  }
  // A list that is longer than its data.
  std::ofstream(folder_ / "blobs" / (file_.blob + ".weir.json"))
      << R"({"size":100003,"boot":"","written":[],"synced":[[0,100003]]})";
  fs::resize_file(folder_ / "blobs" / (file_.blob + ".weir"), 10);
  auto partial = open(file_);
  ASSERT_TRUE(partial && *partial);
  EXPECT_EQ((*partial)->written().bytes(), 0u);
}

TEST_F(PartialFileTest, KeepsOtherProcessesOut) {
  auto first = open(file_);
  ASSERT_TRUE(first && *first);
  const auto second = open(file_);
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->has_value());
}

TEST_F(PartialFileTest, DoesNotWriteThroughALink) {
  fs::create_directories(folder_ / "blobs");
  std::ofstream(folder_ / "precious") << "precious";
  fs::create_symlink(folder_ / "precious", folder_ / "blobs" / (file_.blob + ".weir"));
  EXPECT_FALSE(open(file_));
  std::ifstream precious(folder_ / "precious");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(precious), {}), "precious");
}

// Against a set of single bytes.
TEST(ByteRanges, AreASetOfBytes) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    constexpr uint64_t kSize = 60;
    std::vector<bool> there(kSize);
    ByteRanges ranges;
    for (int i = 0; i < 12; ++i) {
      const uint64_t a = random() % kSize, b = random() % (kSize + 1);
      ranges.add({a, b});
      for (uint64_t at = a; at < b; ++at) there[at] = true;
      std::vector<bool> found(kSize);
      uint64_t last = 0;
      for (const ByteRange& range : ranges.ranges()) {
        ASSERT_TRUE(range.begin < range.end && (last == 0 || range.begin > last));
        last = range.end;
        for (uint64_t at = range.begin; at < range.end; ++at) found[at] = true;
      }
      ASSERT_EQ(found, there);
      uint64_t missing = 0;
      for (const ByteRange& gap : ranges.gaps(kSize)) missing += gap.bytes();
      ASSERT_EQ(missing + ranges.bytes(), kSize);
      ASSERT_EQ(ranges.front(),
                static_cast<uint64_t>(std::ranges::find(there, false) - there.begin()));
    }
  }
}

}  // namespace
}  // namespace weir::hub
