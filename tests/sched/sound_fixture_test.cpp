// Models of the fixtures with sounds, through the engine: the tokens and the log-probabilities that
// the reference recorded; and to the last bit the same alone, among others, from the prefix cache
// and in pieces.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "../../tools/check/sound_fixture.h"
#include "card/model_card.h"
#include "card/safetensors.h"
#include "encoder/encoder.h"
#include "kernels/cpu_ops.h"
#include "media/features/sound_plan.h"
#include "sched/recorded_prompt.h"

namespace weir::sched {
namespace {

constexpr int kMembers = 2;
constexpr int32_t kRows = 128;

Medium sound_of(const check::SoundFixture& fixture, const std::vector<int64_t>& ids,
                int64_t placeholder) {
  const std::vector<float>& samples = fixture.sound.samples;
  const auto plan = media::plan_sound(fixture.front_end, std::ssize(samples));
  EXPECT_TRUE(plan);
  auto input =
      std::make_shared<SoundInput>(media::sound_features(fixture.front_end, *plan, samples));
  as_given(input->numbers);
  Medium sound;
  sound.hash = hash_of(*input);
  sound.input.sound = std::move(input);
  size_t at = 0;
  place(sound, ids, placeholder, plan->rows, at);
  return sound;
}

Recorded open_recorded(const std::string& folder, const check::SoundFixture& fixture,
                       const card::ModelCard& card, int32_t vocab) {
  Recorded out;
  auto file = card::open_safetensors(*FileView::map(folder + "/expected.safetensors"));
  const std::vector<int64_t> ids = open_answer(*file, vocab, out);
  int64_t placeholder = -1;
  for (const char* key : {"audio_token_id", "audio_token_index"})
    if (card.config.root()[key].get(placeholder) == simdjson::SUCCESS) break;
  out.prompt.media.items.push_back(sound_of(fixture, ids, placeholder));
  return out;
}

class SoundFixture : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* const families = std::getenv("WEIR_FAMILIES");
    if (families == nullptr) GTEST_SKIP() << "WEIR_FAMILIES: where fixtures are unpacked";
    folder_ = std::string(families) + "/given/" + GetParam();
  }

  std::string folder_;
};

TEST_P(SoundFixture, GivesWhatTheReferenceGaveAndTheSameBitsInAnyCompany) {
  const Result<card::ModelCard> card = card::ModelCard::open_folder(folder_);
  ASSERT_TRUE(card) << card.error().message;
  const auto fixture = check::SoundFixture::open(folder_);
  ASSERT_TRUE(fixture) << fixture.error().message;
  const auto longest = media::plan_sound(fixture->front_end, fixture->front_end.samples_max);
  ASSERT_TRUE(longest);
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  ThreadTeam team(kMembers);
  const auto model = model::Model::load(
      *card, {.compute = model::Compute::kExact, .rows_max = kRows, .draft_rows_max = 64}, ops,
      team);
  ASSERT_TRUE(model) << model.error().message;
  // gemma4's answer was recorded with a mask that was turned around (decision 49).
  const auto encoder =
      encoder::Encoder::load(*card,
                             {.compute = model::Compute::kExact,
                              .medium = encoder::Medium::kSound,
                              .frames_max = longest->frames,
                              .turned_masks = GetParam() == std::string("gemma4_audio")},
                             ops, team);
  ASSERT_TRUE(encoder) << encoder.error().message;
  RunnerOptions options;
  options.members = kMembers;
  options.ear = encoder->get();
  options.engine.image_cache_bytes = 1 << 20;
  options.engine.step_tokens_max = kRows;
  options.engine.running_max = 10;
  options.page_count = 512;
  const Recorded recorded = open_recorded(folder_, *fixture, *card, (*model)->spec().vocab_size);
  expect_recorded_answer(**model, ops, options, recorded,
                         [](const EngineStats& stats) { return stats.audio_encoded.value(); });
}

INSTANTIATE_TEST_SUITE_P(Families, SoundFixture,
                         testing::Values("gemma3n_audio", "gemma4_audio", "qwen2_audio"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace weir::sched
