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

namespace weir::sched {
namespace {

// Of the recorded greedy answers the best token leads by more than 0.08 everywhere.
constexpr double kBound = 2e-3;

template <class T>
std::vector<T> read_tensor(const card::Checkpoint& file, std::string_view name) {
  const card::StoredTensor* stored = file.find(name);
  EXPECT_NE(stored, nullptr) << name;
  if (stored == nullptr) return {};
  std::vector<T> values(static_cast<size_t>(stored->tensor.elements()));
  std::memcpy(values.data(), stored->tensor.data, values.size() * sizeof(T));
  return values;
}

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

// A prompt with its pictures, and the recorded answer.
struct Recorded {
  PicturePrompt prompt;
  std::vector<int64_t> greedy;
  std::vector<float> logits, greedy_logits;  // [tokens, vocab]
  std::vector<float> features;               // Of all pictures; empty: none are recorded.
};

// The reference was given its processor's numbers rounded to multiples of 2^-13.
std::shared_ptr<const PictureInput> input_of(const media::Processor& processor,
                                             const media::Image& image) {
  auto input = std::make_shared<PictureInput>();
  auto plan = media::plan_image(processor, {image.width, image.height});
  EXPECT_TRUE(plan);
  input->plan = *plan;
  input->pixels = media::pixel_values(processor, *plan, image);
  for (float& number : input->pixels.numbers) number = std::nearbyint(number * 0x1p13f) * 0x1p-13f;
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
  for (int64_t left = media::token_count(processor, input.plan); left > 0; ++at) {
    if (ids.at(at) != placeholder) continue;
    const auto token = static_cast<int32_t>(at);
    std::vector<FeatureRun>& runs = picture.runs;
    if (runs.empty() || runs.back().first + runs.back().count != token) runs.push_back({token, 0});
    ++runs.back().count;
    --left;
  }
  picture.first = picture.runs.front().first;
  picture.tokens = static_cast<int32_t>(at) - picture.first;
  return picture;
}

Recorded open_recorded(const std::string& folder, const card::ModelCard& card, int32_t vocab) {
  Recorded out;
  const auto images = check::ImageFixture::open(folder);
  EXPECT_TRUE(images) << images.error().message;
  auto file = card::open_safetensors(*FileView::map(folder + "/expected.safetensors"));
  const std::vector<int64_t> ids = read_tensor<int64_t>(*file, "input_ids");
  out.greedy = read_tensor<int64_t>(*file, "gen_ids");
  out.logits = read_tensor<float>(*file, "logits");
  out.greedy_logits = read_tensor<float>(*file, "gen_logits");
  if (file->find("image_features") != nullptr)
    out.features = read_tensor<float>(*file, "image_features");
  int64_t placeholder = -1;
  for (const char* key : {"image_token_id", "image_token_index"})
    if (card.config.root()[key].get(placeholder) == simdjson::SUCCESS) break;
  for (const int64_t id : ids)
    out.prompt.tokens.push_back(id < vocab ? static_cast<int32_t>(id) : 0);
  size_t at = 0;
  for (const media::Image& image : images->pictures)
    out.prompt.media.items.push_back(picture_of(images->processor, image, ids, placeholder, at));
  return out;
}

double logprob(std::span<const float> logits, size_t vocab, size_t row, int64_t token) {
  const std::span<const float> of = logits.subspan(row * vocab, vocab);
  const float largest = *std::ranges::max_element(of);
  double sum = 0;
  for (const float logit : of) sum += std::exp(static_cast<double>(logit - largest));
  return of[static_cast<size_t>(token)] - largest - std::log(sum);
}

std::unique_ptr<Request> greedy_request(const PicturePrompt& prompt, int32_t max_tokens,
                                        bool scored = false) {
  sample::SamplingParams greedy;
  greedy.temperature = 0;
  auto request = prompt.request(greedy, max_tokens);
  if (scored)
    request->prompt_log =
        std::make_unique<TokenLog>(static_cast<int32_t>(prompt.tokens.size()) - 1, 0);
  return request;
}

void expect_same_bits(const TokenLog& found, const TokenLog& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (int32_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(same_bits(found[i], expected[i])) << "token " << i;
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

void compare(const Recorded& recorded, const Request& request) {
  const auto& prompt = recorded.prompt.tokens;
  const size_t vocab = recorded.logits.size() / prompt.size();
  for (size_t i = 0; i + 1 < prompt.size(); ++i)
    EXPECT_NEAR((*request.prompt_log)[static_cast<int32_t>(i)].logprob,
                logprob(recorded.logits, vocab, i, prompt[i + 1]), kBound)
        << "after token " << i;
  ASSERT_EQ(request.log.size(), std::ssize(recorded.greedy));
  for (int32_t i = 0; i < request.log.size(); ++i) {
    const int64_t token = recorded.greedy[static_cast<size_t>(i)];
    EXPECT_EQ(request.log[i].token, token);
    EXPECT_NEAR(request.log[i].logprob,
                logprob(recorded.greedy_logits, vocab, static_cast<size_t>(i), token), kBound);
  }
}

// The same prompt within a text, which has it lie otherwise in pages.
PicturePrompt within_text(const PicturePrompt& prompt) {
  const std::vector<int32_t> text = {9, 8, 7, 6, 5, 4, 3, 10, 11, 12, 13};
  PicturePrompt out = prompt;
  out.tokens.insert(out.tokens.begin(), text.begin(), text.end());
  for (Medium& picture : out.media.items) {
    picture.first += static_cast<int32_t>(text.size());
    for (FeatureRun& run : picture.runs) run.first += static_cast<int32_t>(text.size());
  }
  out.add_text(text);
  return out;
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

void run(EngineRunner& runner, Request& request) {
  const Result<void> submitted = runner.handle().submit(&request);
  ASSERT_TRUE(submitted) << submitted.error().message;
  runner.wait(request);
}

TEST_P(PictureFixture, GivesWhatTheReferenceGaveAndTheSameBitsInAnyCompany) {
  const Result<card::ModelCard> card = card::ModelCard::open_folder(folder_);
  ASSERT_TRUE(card) << card.error().message;
  PictureWorld world(folder_, *card);
  const PicturePrompt& prompt = world.recorded.prompt;
  const PicturePrompt later = within_text(prompt);
  const auto pictures = static_cast<uint64_t>(prompt.media.items.size());

  auto alone = greedy_request(prompt, 16, /*scored=*/true);
  auto later_alone = greedy_request(later, 24);
  {
    world.options.engine.prefix_cache = false;
    EngineRunner runner(*world.model, world.ops, world.options);
    run(runner, *alone);
    run(runner, *later_alone);
    EXPECT_EQ(runner.handle().stats().image_encoded.value(), pictures);
  }
  compare(world.recorded, *alone);

  // Among others, in pieces; then once more, from the cache.
  world.options.engine.prefix_cache = true;
  world.options.engine.step_tokens_max = 21;
  world.options.held = true;
  EngineRunner runner(*world.model, world.ops, world.options);
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 8; ++i) {
    PicturePrompt other = i % 2 == 0 ? prompt : PicturePrompt();
    other.add_text(std::vector<int32_t>(static_cast<size_t>(3 + 5 * i), 20 + i));
    requests.push_back(greedy_request(other, 6 + i));
  }
  requests.push_back(greedy_request(prompt, 16, /*scored=*/true));
  requests.push_back(greedy_request(later, 24));
  for (const auto& request : requests) ASSERT_TRUE(runner.handle().submit(request.get()));
  runner.begin();
  for (const auto& request : requests) runner.wait(*request);
  expect_same_bits(requests[8]->log, alone->log);
  expect_same_bits(*requests[8]->prompt_log, *alone->prompt_log);
  expect_same_bits(requests[9]->log, later_alone->log);
  auto again = greedy_request(later, 24);
  run(runner, *again);
  expect_same_bits(again->log, later_alone->log);
  if (world.model->spec().both_ways != model::BothWays::kRuns) {  // Else a window may be too short.
    EXPECT_GT(again->cached_tokens, 0);
  }
  EXPECT_EQ(runner.handle().stats().image_encoded.value(), pictures);
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
