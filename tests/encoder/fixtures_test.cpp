// Towers against the reference's answers to pictures and sounds (docs/encoders.md): the fixtures
// that tools/test unpacks, where they are.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "../../tools/check/picture_check.h"
#include "../../tools/check/sound_check.h"
#include "model/families.h"

namespace weir::check {
namespace {

using Check = Result<void> (*)(const std::string&, const card::ModelCard&, const Runtime&, Report&);

// Of each fixture that has such a file: the encoder alone, where its text is not computed.
void check_all(const char* file, Check check, const CheckOptions& options = {}) {
  const char* families = std::getenv("WEIR_FAMILIES");
  if (families == nullptr || !std::filesystem::exists(families))
    GTEST_SKIP() << "WEIR_FAMILIES names no folder of fixtures";
  const auto folders = find_folders({families}, file);
  ASSERT_TRUE(folders) << folders.error().message;
  const auto runtime = Runtime::create(options);
  ASSERT_TRUE(runtime) << runtime.error().message;
  Report report;
  for (const std::string& folder : *folders) {
    const auto card = card::ModelCard::open_folder(folder);
    ASSERT_TRUE(card) << card.error().message;
    const auto done = check(folder, *card, *runtime, report);
    EXPECT_TRUE(done) << folder << ": " << done.error().message;
  }
  EXPECT_EQ(report.finish(), 0);
}

TEST(PictureFixtures, GiveTheRecordedLogits) { check_all("image.png", check_pictures); }

TEST(SoundFixtures, GiveTheRecordedLogits) { check_all("audio.wav", check_sound); }

CheckOptions fast() {
  CheckOptions options;
  options.compute = model::Compute::kFast;
  options.threads = 2;
  return options;
}

TEST(PictureFixtures, GiveNearlyTheseInFastMode) { check_all("image.png", check_pictures, fast()); }

TEST(SoundFixtures, GiveNearlyTheseInFastMode) { check_all("audio.wav", check_sound, fast()); }

}  // namespace
}  // namespace weir::check
