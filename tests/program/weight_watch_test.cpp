#include "program/weight_watch.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

namespace weir {
namespace {

class WeightWatchTest : public testing::Test {
 protected:
  WeightWatchTest() {
    std::filesystem::create_directories(folder_);
    for (int i = 0; i < 12; ++i) {
      std::ofstream(path(i)) << "weights";
      views_.push_back(std::move(*FileView::map(path(i))));
    }
    for (const FileView& view : views_) files_.push_back(&view);
  }
  ~WeightWatchTest() override { std::filesystem::remove_all(folder_); }

  std::string path(int i) const { return folder_ + "/" + std::to_string(i); }
  void look_at_all(WeightWatch& watch) const {
    for (size_t i = 0; i < WeightWatch::kRound; ++i) watch.look();
  }

  const std::string folder_ =
      (std::filesystem::temp_directory_path() / ("weir_watch_" + std::to_string(::getpid())))
          .string();
  std::vector<FileView> views_;
  std::vector<const FileView*> files_;
  Bell bell_;
  sched::EngineHandle engine_{4, 8, bell_};
};

TEST_F(WeightWatchTest, GivesUpWhenAnyOfTheFilesIsWrittenTo) {
  WeightWatch watch(files_, engine_);
  look_at_all(watch);
  EXPECT_EQ(engine_.given_up(), nullptr);
  std::ofstream(path(11), std::ios::app) << "more";
  look_at_all(watch);
  ASSERT_NE(engine_.given_up(), nullptr);
  EXPECT_TRUE(engine_.given_up()->starts_with(path(11) + ": expected the file of 7 bytes"))
      << *engine_.given_up();
  watch.look();
}

TEST_F(WeightWatchTest, AReplacedFileIsServedOn) {
  WeightWatch watch(files_, engine_);
  std::filesystem::remove(path(3));
  std::ofstream(path(4) + ".new") << "others";
  std::filesystem::rename(path(4) + ".new", path(4));
  look_at_all(watch);
  look_at_all(watch);
  EXPECT_EQ(engine_.given_up(), nullptr);
}

}  // namespace
}  // namespace weir
