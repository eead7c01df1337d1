// Models of the fixtures with pictures, through the engine: the tokens and the log-probabilities that
// the reference recorded; and to the last bit the same alone, among others, from the prefix cache and
// in pieces. Features are the tower's; of families whose tower is not here, those that the reference
// recorded.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../../tools/check/image_fixture.h"
#include "card/model_card.h"
#include "card/safetensors.h"
#include "encoder/encoder.h"
#include "kernels/cpu_ops.h"
#include "sched/engine_runner.h"
#include "sched/fake_encoder.h"
#include "sched/recorded_prompt.h"

namespace weir::sched {
namespace {

// Gives the rows that were recorded, one picture after another: each is known by its numbers.
class RecordedEncoder final : public exec::Encoder {
 public:
  void add(std::vector<float> numbers, std::vector<float> rows) {
    pictures_.emplace_back(std::move(numbers), std::move(rows));
  }

  Result<bool> place_weights(const std::function<void(int64_t, int64_t)>&,
                             Clock::time_point) override {
    return true;
  }
  std::string lost_weights() const override { return {}; }
  void rest() override {}
  bool sees_pictures() const override { return true; }
  bool hears_sounds() const override { return false; }
  int32_t levels() const override { return 0; }
  Result<int32_t> begin(std::span<const exec::EncodeTask> tasks) override {
    tasks_.assign(tasks.begin(), tasks.end());
    return static_cast<int32_t>(tasks.size());
  }
  bool advance(int32_t) override {
    for (const exec::EncodeTask& task : tasks_) {
      const auto found = std::ranges::find(pictures_, task.pixels->numbers,
                                           &std::pair<std::vector<float>, std::vector<float>>::first);
      CHECK(found != pictures_.end() && found->second.size() == task.features.size());
      std::ranges::copy(found->second, task.features.begin());
    }
    return true;
  }

 private:
  std::vector<std::pair<std::vector<float>, std::vector<float>>> pictures_;
  std::vector<exec::EncodeTask> tasks_;
};

std::shared_ptr<const PictureInput> input_of(const media::Processor& processor,
                                             const media::Image& image) {
  auto input = std::make_shared<PictureInput>();
  auto plan = media::plan_image(processor, {image.width, image.height});
  EXPECT_TRUE(plan);
  input->plan = *plan;
  input->pixels = media::pixel_values(processor, *plan, image);
  as_given(input->pixels.numbers);
  return input;
}

// The picture's tokens are the next ones that are placeholders, from `at` on.
Medium picture_of(const media::Processor& processor, const media::Image& image,
                  const std::vector<int64_t>& ids, int64_t placeholder, size_t& at) {
  Medium picture;
  picture.input.picture = input_of(processor, image);
  const PictureInput& input = *picture.input.picture;
  picture.hash = hash_of(input);
  const media::Size grid = media::token_grid(processor, input.pixels.views[0]);
  picture.grid_rows = static_cast<int32_t>(grid.height);
  picture.grid_columns = static_cast<int32_t>(grid.width);
  place(picture, ids, placeholder, media::token_count(processor, input.plan), at);
  return picture;
}

Recorded open_recorded(const std::string& folder, const card::ModelCard& card, int32_t vocab) {
  Recorded out;
  const auto images = check::ImageFixture::open(folder);
  EXPECT_TRUE(images) << images.error().message;
  auto file = card::open_safetensors(*FileView::map(folder + "/expected.safetensors"));
  const std::vector<int64_t> ids = open_answer(*file, vocab, out);
  if (file->find("image_features") != nullptr)
    out.features = read_tensor<float>(*file, "image_features");
  int64_t placeholder = -1;
  for (const char* key : {"image_token_id", "image_token_index"})
    if (card.config.root()[key].get(placeholder) == simdjson::SUCCESS) break;
  size_t at = 0;
  for (const media::Image& image : images->pictures)
    out.prompt.media.items.push_back(picture_of(images->processor, image, ids, placeholder, at));
  return out;
}

class PictureFixture : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const char* const families = std::getenv("WEIR_FAMILIES");
    if (families == nullptr) GTEST_SKIP() << "WEIR_FAMILIES: where fixtures are unpacked";
    folder_ = std::string(families) + "/given/" + GetParam();
  }

  std::string folder_;
};

Result<std::unique_ptr<encoder::Encoder>> tower_of(const std::string& folder,
                                                   const card::ModelCard& card,
                                                   const kernels::Ops& ops, ThreadTeam& team) {
  WEIR_ASSIGN(const check::ImageFixture images, check::ImageFixture::open(folder));
  return encoder::Encoder::load(card,
                                {.compute = model::Compute::kExact,
                                 .view_pixels_max = media::view_pixels_max(images.processor)},
                                ops, team);
}

// A model of a fixture, and what reads its pictures.
class PictureWorld {
 public:
  PictureWorld(const std::string& folder, const card::ModelCard& card) {
    options.members = kMembers;
    options.engine.image_cache_bytes = 1 << 20;
    options.engine.step_tokens_max = kRows;
    options.engine.running_max = 10;
    auto loaded = model::Model::load(
        card, {.compute = model::Compute::kExact, .rows_max = kRows, .draft_rows_max = 64}, ops,
        team_);
    EXPECT_TRUE(loaded) << loaded.error().message;
    model = *std::move(loaded);
    recorded = open_recorded(folder, card, model->spec().vocab_size);
    auto tower = tower_of(folder, card, ops, team_);
    if (tower) {
      tower_ = *std::move(tower);
      options.tower = tower_.get();
      return;
    }
    EXPECT_FALSE(recorded.features.empty()) << tower.error().message;
    auto from = recorded.features.begin();
    for (const Medium& picture : recorded.prompt.media.items) {
      const auto end = from + picture.features() * model->spec().hidden_size;
      rows_.add(picture.input.picture->pixels.numbers, {from, end});
      from = end;
    }
    options.encoder = &rows_;
  }

  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  std::unique_ptr<model::Model> model;
  Recorded recorded;
  RunnerOptions options;

 private:
  static constexpr int kMembers = 2;
  static constexpr int32_t kRows = 128;

  ThreadTeam team_{kMembers};
  std::unique_ptr<encoder::Encoder> tower_;
  RecordedEncoder rows_;
};

TEST_P(PictureFixture, GivesWhatTheReferenceGaveAndTheSameBitsInAnyCompany) {
  const Result<card::ModelCard> card = card::ModelCard::open_folder(folder_);
  ASSERT_TRUE(card) << card.error().message;
  PictureWorld world(folder_, *card);
  expect_recorded_answer(*world.model, world.ops, world.options, world.recorded,
                         [](const EngineStats& stats) { return stats.image_encoded.value(); });
}

INSTANTIATE_TEST_SUITE_P(Families, PictureFixture,
                         testing::Values("gemma3", "gemma4_dense", "glm4v", "glm_ocr", "idefics3",
                                         "internvl", "lfm2_vl", "llama4", "llava", "mistral3",
                                         "paligemma", "pixtral", "qwen2_vl", "qwen2_5_vl",
                                         "qwen3_5", "qwen3_5_moe", "qwen3_vl", "qwen3_vl_moe",
                                         "smolvlm"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace weir::sched
