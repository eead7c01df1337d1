#include "sound_check.h"

#include <algorithm>
#include <cmath>

#include "base/concat.h"
#include "difference.h"
#include "encoder_check.h"
#include "family_fixture.h"
#include "media/features/sound_features.h"
#include "media/features/sound_plan.h"
#include "media_fixture.h"
#include "sound_fixture.h"

namespace weir::check {

namespace {

// Of what an encoder gives, from the recorded features: a hundred times float32's rounding.
constexpr double kEncodedBound = 1e-4;
constexpr double kInexactEncodedBound = 0.1;  // Of the root mean square.

// Fixtures whose reference turned its encoder's mask around: transformers' eager attention makes
// one of floats, 0 where a row is seen, and gemma4's encoder reads it as flags (decision 49).
constexpr std::string_view kTurnedMasks[] = {"gemma4_audio"};

double difference(const std::vector<float>& found, const std::vector<float>& expected) {
  return found.size() == expected.size() ? largest_difference(found, expected) : HUGE_VAL;
}

class SoundCheck : public EncoderCheck {
 public:
  SoundCheck(const SoundFixture& sound, const card::ModelCard& card, const Runtime& runtime)
      : EncoderCheck(card, runtime), sound_(sound) {}

  Result<std::vector<Encoded>> encode(bool recorded) override {
    const std::vector<float>& samples = sound_.sound.samples;
    WEIR_ASSIGN(const media::SoundPlan plan,
                media::plan_sound(sound_.front_end, std::ssize(samples)));
    media::SoundFeatures values = media::sound_features(sound_.front_end, plan, samples);
    round_as_given(values.numbers);
    if (recorded && values.numbers.size() == sound_.features.size())
      values.numbers = sound_.features;
    std::vector<Encoded> out = {room(encoder_->sound_rows(values))};
    WEIR_TRY(run(std::vector<encoder::Sound>{{&values, out[0].rows}}));
    return out;
  }

  // What is wrong with the rows of the recorded features, or nothing.
  std::string wrong_rows(const std::vector<float>& found) const {
    const bool exact = is_exact(runtime_);
    const double bound = exact ? kEncodedBound : kInexactEncodedBound;
    const double far =
        exact ? difference(found, sound_.encoded) : relative_rms(found, sound_.encoded);
    return far < bound ? ""
                       : concat({"expected rows within ", std::to_string(bound),
                                 " of the reference's, found ", std::to_string(far)});
  }

 private:
  Result<encoder::EncoderOptions> options() const override {
    WEIR_ASSIGN(const media::SoundPlan longest,
                media::plan_sound(sound_.front_end, sound_.front_end.samples_max));
    return encoder::EncoderOptions{
        .medium = encoder::Medium::kSound,
        .frames_max = longest.frames,
        .turned_masks = std::ranges::find(kTurnedMasks, sound_.name) != std::end(kTurnedMasks)};
  }
  int64_t token() const override { return placeholder_id(card_.config.root(), "audio"); }

  std::string compare_rows(const std::vector<Encoded>& recorded, const std::string& name,
                           Report& report) const override {
    if (sound_.encoded.empty()) return "";
    const std::string about = figure("rows", difference(recorded[0].rows, sound_.encoded));
    if (const std::string why = wrong_rows(recorded[0].rows); !why.empty())
      report.fail(name, why + "; " + about);
    return about;
  }

  const SoundFixture& sound_;
};

}  // namespace

Result<void> check_sound(const std::string& folder, const card::ModelCard& card,
                         const Runtime& runtime, Report& report) {
  const auto plain = FamilyFixture::open(folder, Answers::kSound);
  if (!plain && plain.error().code == ErrorCode::kUnsupported) return {};
  if (!plain) return tl::unexpected(plain.error());
  WEIR_ASSIGN(const SoundFixture sound, SoundFixture::open(folder));
  SoundCheck check(sound, card, runtime);
  return check.check_answers(*plain, sound.name + ", sound", report);
}

}  // namespace weir::check
