#include "sound_check.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include "base/concat.h"
#include "difference.h"
#include "encoder/encoder.h"
#include "family_fixture.h"
#include "media/features/sound_features.h"
#include "media/features/sound_plan.h"
#include "sound_fixture.h"

namespace weir::check {

namespace {

// Of what an encoder gives, from the recorded features: a hundred times float32's rounding.
constexpr double kEncodedBound = 1e-4;
constexpr double kInexactEncodedBound = 0.1;  // Of the root mean square.

// Fixtures whose reference turned its encoder's mask around: transformers' eager attention makes
// one of floats, 0 where a row is seen, and gemma4's encoder reads it as flags (decision 49).
constexpr std::string_view kTurnedMasks[] = {"gemma4_audio"};

// The prompt's token that a row of features takes the place of.
int64_t sound_token(JsonValue config) {
  int64_t id = -1;
  for (const char* key : {"audio_token_id", "audio_token_index"})
    if (config[key].get(id) == simdjson::SUCCESS) break;
  return id;
}

// The reference was given its front end's numbers rounded to multiples of 2^-13.
float as_given(float number) { return std::nearbyint(number * 0x1p13f) * 0x1p-13f; }

class SoundCheck {
 public:
  SoundCheck(const SoundFixture& sound, const card::ModelCard& card, const Runtime& runtime)
      : sound_(sound), card_(card), runtime_(runtime) {}

  Result<void> load_encoder() {
    WEIR_ASSIGN(const media::SoundPlan longest,
                media::plan_sound(sound_.front_end, sound_.front_end.samples_max));
    const bool turned = std::ranges::find(kTurnedMasks, sound_.name) != std::end(kTurnedMasks);
    WEIR_ASSIGN(encoder_, encoder::Encoder::load(card_,
                                                 {.compute = runtime_.compute,
                                                  .medium = encoder::Medium::kSound,
                                                  .frames_max = longest.frames,
                                                  .turned_masks = turned},
                                                 *runtime_.ops, *runtime_.team));
    return {};
  }
  Result<void> load_model() {
    const model::ModelOptions options = {
        .compute = runtime_.compute, .rows_max = 256, .context_max = 512};
    WEIR_ASSIGN(model_, model::Model::load(card_, options, *runtime_.ops, *runtime_.team));
    return {};
  }

  // By the sound's file, or by the recorded features.
  Result<std::vector<float>> encode(bool recorded) {
    const std::vector<float>& samples = sound_.sound.samples;
    WEIR_ASSIGN(const media::SoundPlan plan,
                media::plan_sound(sound_.front_end, std::ssize(samples)));
    media::SoundFeatures values = media::sound_features(sound_.front_end, plan, samples);
    std::ranges::transform(values.numbers, values.numbers.begin(), as_given);
    if (recorded && values.numbers.size() == sound_.features.size())
      values.numbers = sound_.features;
    std::vector<float> rows(static_cast<size_t>(encoder_->sound_rows(values) * encoder_->width()),
                            NAN);
    const encoder::Sound begun = {&values, rows};
    WEIR_TRY(encoder_->begin(std::span(&begun, 1)));
    while (!encoder_->advance(*runtime_.team, 1)) {
    }
    return rows;
  }

  // The fixture's prompt, whose placeholders begin with the rows, or whose tokens attend to them.
  Result<FamilyFixture> prompt(FamilyFixture fixture, const std::vector<float>& rows) const {
    if (model_->cross_layers() > 0) {
      fixture.heard = rows;
      return fixture;
    }
    const int64_t token = sound_token(card_.config.root());
    const auto width = static_cast<size_t>(encoder_->width());
    auto& ids = fixture.input_ids;
    if (const auto places = static_cast<size_t>(std::ranges::count(ids, token));
        places != rows.size() / width)
      return fail(
          ErrorCode::kConfig,
          concat({fixture.name, ": expected as many rows as the prompt has places for, ",
                  std::to_string(places), ", found ", std::to_string(rows.size() / width)}));
    fixture.rows.assign(ids.size(), {});
    const float* next = rows.data();
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] != token) continue;
      fixture.rows[i] = {.rows = 1, .vectors = next};
      next += width;
      ids[i] = 0;  // An id that the vocabulary has.
    }
    return fixture;
  }

  Result<FamilyComparison> compare(const FamilyFixture& fixture) {
    return compare_family(fixture, *model_, *runtime_.team, runtime_.kv_format);
  }

 private:
  const SoundFixture& sound_;
  const card::ModelCard& card_;
  const Runtime& runtime_;
  std::unique_ptr<encoder::Encoder> encoder_;
  std::unique_ptr<model::Model> model_;
};

std::string number(const char* what, double value) {
  char text[80];
  std::snprintf(text, sizeof text, "%s %.1e, ", what, value);
  return text;
}

// One line: from the recorded features, or from the file.
Result<void> check_prompt(SoundCheck& check, const FamilyFixture& plain,
                          const std::vector<float>& rows, const std::string& name,
                          const std::string& about, bool exact, Report& report) {
  WEIR_ASSIGN(const FamilyFixture fixture, check.prompt(plain, rows));
  WEIR_ASSIGN(const FamilyComparison c, check.compare(fixture));
  const std::string failure = family_failure(fixture, c, exact);
  char detail[200];
  std::snprintf(detail, sizeof detail,
                "%sone pass %.1e, greedy %.1e (bound %.1e), %d of %zu tokens equal", about.c_str(),
                c.pass_difference, c.greedy_difference, static_cast<double>(fixture.bound),
                c.greedy_equal, fixture.gen_ids.size());
  failure.empty() ? report.pass(name, detail) : report.fail(name, failure + "; " + detail);
  return {};
}

double difference(const std::vector<float>& found, const std::vector<float>& expected) {
  return found.size() == expected.size() ? largest_difference(found, expected) : HUGE_VAL;
}

std::string rows_differ_by(const std::vector<float>& found, const std::vector<float>& expected) {
  return number("rows", difference(found, expected));
}

// What is wrong with the rows of the recorded features, or nothing.
std::string wrong_rows(const SoundFixture& sound, const std::vector<float>& found, bool exact) {
  const double bound = exact ? kEncodedBound : kInexactEncodedBound;
  const double far = exact ? difference(found, sound.encoded) : relative_rms(found, sound.encoded);
  return far < bound ? ""
                     : concat({"expected rows within ", std::to_string(bound),
                               " of the reference's, found ", std::to_string(far)});
}

bool is_exact(const Runtime& runtime) {
  return runtime.compute == model::Compute::kExact && runtime.kv_format == kernels::FloatType::kF32;
}

}  // namespace

Result<void> check_sound(const std::string& folder, const card::ModelCard& card,
                         const Runtime& runtime, Report& report) {
  const auto plain = FamilyFixture::open(folder, Answers::kSound);
  if (!plain && plain.error().code == ErrorCode::kUnsupported) return {};
  if (!plain) return tl::unexpected(plain.error());
  const std::string name = folder_name(folder) + ", sound";
  WEIR_ASSIGN(const SoundFixture sound, SoundFixture::open(folder));
  SoundCheck check(sound, card, runtime);
  if (const auto loaded = check.load_encoder(); !loaded) {
    if (loaded.error().code != ErrorCode::kUnsupported) return tl::unexpected(loaded.error());
    report.skip(name, loaded.error().message);
    return {};
  }
  WEIR_TRY(check.load_model());
  WEIR_ASSIGN(const std::vector<float> recorded, check.encode(/*recorded=*/true));
  WEIR_ASSIGN(const std::vector<float> of_file, check.encode(/*recorded=*/false));
  const bool exact = is_exact(runtime);
  std::string about;
  if (!sound.encoded.empty()) {
    about = rows_differ_by(recorded, sound.encoded);
    if (const std::string why = wrong_rows(sound, recorded, exact); !why.empty())
      report.fail(name, why + "; " + about);
  }
  WEIR_TRY(check_prompt(check, *plain, recorded, name, about, exact, report));
  about = number("rows by", largest_difference(of_file, recorded));
  return check_prompt(check, *plain, of_file, name + " from the file", about, exact, report);
}

}  // namespace weir::check
