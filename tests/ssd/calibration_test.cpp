#include "ssd/calibration.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "ssd/temp_file.h"

namespace weir::ssd {
namespace {

Calibration example() {
  Calibration calibration;
  calibration.mode = "io_uring, O_DIRECT";
  calibration.bytes_per_second = 2.1e9;
  calibration.window_bytes = 4 << 20;
  calibration.latency_seconds = 0.5;
  calibration.completes_together = true;
  calibration.sweep = {{1 << 20, 1.5e9}, {4 << 20, 2.1e9}};
  return calibration;
}

// XDG_CACHE_HOME for the length of a test.
class CacheFolder {
 public:
  explicit CacheFolder(const std::string& folder) {
    if (const char* before = std::getenv("XDG_CACHE_HOME")) before_ = before;
    ::setenv("XDG_CACHE_HOME", folder.c_str(), 1);
  }
  ~CacheFolder() {
    if (before_)
      ::setenv("XDG_CACHE_HOME", before_->c_str(), 1);
    else
      ::unsetenv("XDG_CACHE_HOME");
  }
  CacheFolder(const CacheFolder&) = delete;
  CacheFolder& operator=(const CacheFolder&) = delete;

 private:
  std::optional<std::string> before_;
};

TEST(Calibration, JsonGivesBackWhatItWasMadeOf) {
  const Calibration a = example();
  const auto b = calibration_from_json(to_json(a));
  ASSERT_TRUE(b) << b.error().message;
  EXPECT_EQ(b->mode, a.mode);
  EXPECT_EQ(b->bytes_per_second, a.bytes_per_second);
  EXPECT_EQ(b->window_bytes, a.window_bytes);
  EXPECT_EQ(b->latency_seconds, a.latency_seconds);
  EXPECT_EQ(b->completes_together, a.completes_together);
  ASSERT_EQ(b->sweep.size(), 2u);
  EXPECT_EQ(b->sweep[1].window_bytes, a.sweep[1].window_bytes);
  EXPECT_EQ(b->sweep[1].bytes_per_second, a.sweep[1].bytes_per_second);
}

TEST(Calibration, JsonThatIsNoneOfOursIsRefused) {
  const std::string good = to_json(example());
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    return calibration_from_json(text).has_value();
  };
  EXPECT_TRUE(with("\"mode\"", "\"mode\""));
  EXPECT_FALSE(with("\"version\":1", "\"version\":2"));
  EXPECT_FALSE(with("\"mode\"", "\"mood\""));
  EXPECT_FALSE(with("\"window_bytes\":4194304", "\"window_bytes\":0"));
  EXPECT_FALSE(with("\"window_bytes\":4194304", "\"window_bytes\":-1"));
  EXPECT_FALSE(with("\"window_bytes\":4194304", "\"window_bytes\":1e300"));
  EXPECT_FALSE(with("\"latency_seconds\":0.5", "\"latency_seconds\":\"a\""));
  EXPECT_FALSE(with("\"sweep\":[", "\"sweep\":[1,"));
  for (const char* text : {"", "[]", "{}", "nonsense", "{\"version\":1"})
    EXPECT_FALSE(calibration_from_json(text)) << text;
}

TEST(Calibration, IsKeptPerDiskInTheCacheFolder) {
  TempFolder folder;
  const CacheFolder cache(folder.path() + "/cache");
  const std::string model = folder.write("weights", 1, kBlockBytes);
  EXPECT_FALSE(load_calibration(model));
  const auto saved = save_calibration(model, example());
  ASSERT_TRUE(saved) << saved.error().message;
  const auto file = calibration_file(model);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->starts_with(folder.path() + "/cache/weir/disk-")) << *file;
  const auto loaded = load_calibration(folder.write("other", 1, kBlockBytes));
  ASSERT_TRUE(loaded);
  EXPECT_EQ(to_json(*loaded), to_json(example()));
  const auto left =
      std::distance(std::filesystem::directory_iterator(folder.path() + "/cache/weir"),
                    std::filesystem::directory_iterator());
  EXPECT_EQ(left, 1);  // Nothing temporary.

  std::ofstream(*file) << "{\"version\":1";
  EXPECT_FALSE(load_calibration(model));
  EXPECT_FALSE(load_calibration(folder.path() + "/missing"));
}

TEST(Calibration, AFolderThatCannotBeMadeIsNamed) {
  TempFolder folder;
  const std::string file = folder.write("file", 1, kBlockBytes);
  const CacheFolder cache(file);
  const auto saved = save_calibration(file, example());
  ASSERT_FALSE(saved);
  EXPECT_NE(saved.error().message.find("/file/weir/disk-"), std::string::npos);
}

TEST(Calibration, MeasuresARealFile) {
  TempFolder folder;
  const std::string path = folder.write("weights", 1, uint64_t{64} << 20);
  CalibrationOptions options;
  options.seconds_per_window = 0.015;
  options.window_bytes_max = 8 << 20;
  const auto measured = calibrate(path, options);
  ASSERT_TRUE(measured) << measured.error().message;
  ASSERT_EQ(measured->sweep.size(), 4u);
  double best = 0;
  for (const auto& point : measured->sweep) best = std::max(best, point.bytes_per_second);
  EXPECT_GT(measured->bytes_per_second, 0.89 * best);
  EXPECT_GT(measured->latency_seconds, 0);
  EXPECT_FALSE(measured->mode.empty());
  EXPECT_GE(measured->window_bytes, options.window_bytes_min);
  EXPECT_LE(measured->window_bytes, options.window_bytes_max);
  ASSERT_TRUE(calibration_from_json(to_json(*measured)));
}

TEST(Calibration, RefusesWhatItCannotMeasure) {
  TempFolder folder;
  const std::string path = folder.write("weights", 1, uint64_t{1} << 20);
  const auto small = calibrate(path);
  ASSERT_FALSE(small);
  EXPECT_NE(small.error().message.find("expected at least 64 MiB"), std::string::npos);
  EXPECT_FALSE(calibrate(folder.path() + "/missing"));
  CalibrationOptions options;
  options.read_bytes = 1000;
  EXPECT_FALSE(calibrate(path, options));
}

TEST(Calibration, LimitsFollowTheDisk) {
  const QueueLimits limits = limits_for(example());
  EXPECT_EQ(limits.demand_window_bytes, uint64_t{4} << 20);
  EXPECT_EQ(limits.speculative_window_bytes, 2100000u);
  EXPECT_EQ(limits.speculative_reads, 2);
  Calibration slow = example();
  slow.bytes_per_second = 1e7;
  slow.window_bytes = 1000;
  EXPECT_EQ(limits_for(slow).demand_window_bytes, uint64_t{4} << 20);
  EXPECT_GE(limits_for(slow).speculative_window_bytes, uint64_t{1} << 20);
}

}  // namespace
}  // namespace weir::ssd
