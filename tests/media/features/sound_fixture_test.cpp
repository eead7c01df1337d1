// Every fixture with a sound: what this build makes of it against what the reference made of it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "../../../tools/check/sound_fixture.h"

namespace weir::check {
namespace {

TEST(SoundFixtures, AreWhatTheReferenceMadeOfThem) {
  const char* families = std::getenv("WEIR_FAMILIES");
  if (families == nullptr) GTEST_SKIP() << "no fixtures of families (WEIR_FAMILIES)";
  int compared = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(
           families, std::filesystem::directory_options::follow_directory_symlink)) {
    if (entry.path().filename() != "audio.wav") continue;
    const Result<SoundFixture> fixture = SoundFixture::open(entry.path().parent_path());
    ASSERT_TRUE(fixture) << entry.path() << ": " << fixture.error().message;
    const SoundComparison comparison = compare_sounds(*fixture);
    EXPECT_EQ(comparison.failure, "") << fixture->name;
    ++compared;
  }
  EXPECT_GE(compared, 4) << families;
}

}  // namespace
}  // namespace weir::check
