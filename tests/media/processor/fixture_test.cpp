// Every vision fixture: what this build makes of its picture against what the reference made of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "../../../tools/check/image_fixture.h"

namespace weir::check {
namespace {

TEST(ImageFixtures, AreWhatTheReferenceMadeOfThem) {
  const char* families = std::getenv("WEIR_FAMILIES");
  if (families == nullptr) GTEST_SKIP() << "no fixtures of families (WEIR_FAMILIES)";
  int compared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           families, std::filesystem::directory_options::follow_directory_symlink)) {
    if (entry.path().filename() != "image.png") continue;
    const Result<ImageFixture> fixture = ImageFixture::open(entry.path().parent_path());
    ASSERT_TRUE(fixture) << entry.path() << ": " << fixture.error().message;
    const ImageComparison comparison = compare_images(*fixture);
    EXPECT_EQ(comparison.failure, "") << fixture->name;
    ++compared;
  }
  EXPECT_GE(compared, 23) << families;
}

}  // namespace
}  // namespace weir::check
