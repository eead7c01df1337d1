// Towers against the reference's answers to pictures (docs/encoders.md): the fixtures that
// tools/test unpacks, where they are.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "../../tools/check/picture_check.h"

namespace weir::check {
namespace {

void check_all(const CheckOptions& options) {
  const char* families = std::getenv("WEIR_FAMILIES");
  if (families == nullptr || !std::filesystem::exists(families))
    GTEST_SKIP() << "WEIR_FAMILIES names no folder of fixtures";
  const auto folders = find_folders({families}, "image.png");
  ASSERT_TRUE(folders) << folders.error().message;
  const auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime) << runtime.error().message;
  Report report;
  for (const std::string& folder : *folders) {
    const auto card = card::ModelCard::open_folder(folder);
    ASSERT_TRUE(card) << card.error().message;
    const auto done = check_pictures(folder, *card, *runtime, report);
    EXPECT_TRUE(done) << folder << ": " << done.error().message;
  }
  EXPECT_EQ(report.finish(), 0);
}

TEST(PictureFixtures, GiveTheRecordedLogits) { check_all({}); }

TEST(PictureFixtures, GiveNearlyTheseInFastMode) {
  CheckOptions options;
  options.compute = model::Compute::kFast;
  options.threads = 2;
  check_all(options);
}

}  // namespace
}  // namespace weir::check
