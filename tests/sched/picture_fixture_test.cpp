// Models of the fixtures with pictures, through the engine: the tokens and the log-probabilities that
// the reference recorded; and to the last bit the same alone, among others, from the prefix cache and
// in pieces. The rows of features are those that the reference recorded.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "card/model_card.h"
#include "card/safetensors.h"
#include "kernels/cpu_ops.h"
#include "sched/engine_runner.h"
#include "sched/fake_encoder.h"

namespace weir::sched {
namespace {

constexpr int32_t kVocab = 256;
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

// Gives the rows that were recorded, by the number of the picture, which is its first "pixel".
class RecordedEncoder final : public exec::Encoder {
 public:
  RecordedEncoder(std::vector<float> rows, std::vector<size_t> begins)
      : rows_(std::move(rows)), begins_(std::move(begins)) {}

  Result<bool> place_weights(const std::function<void(int64_t, int64_t)>&,
                             Clock::time_point) override {
    return true;
  }
  std::string lost_weights() const override { return {}; }
  void rest() override {}
  int32_t levels() const override { return 0; }
  Result<int32_t> begin(std::span<const exec::EncodeTask> tasks) override {
    tasks_.assign(tasks.begin(), tasks.end());
    return static_cast<int32_t>(tasks.size());
  }
  bool advance(int32_t) override {
    for (const exec::EncodeTask& task : tasks_) {
      const size_t begin = begins_[static_cast<size_t>(task.pixels->numbers[0])];
      std::copy_n(rows_.begin() + static_cast<ptrdiff_t>(begin), task.features.size(),
                  task.features.begin());
      ++encoded;
    }
    return true;
  }
  int encoded = 0;

 private:
  const std::vector<float> rows_;
  const std::vector<size_t> begins_;
  std::vector<exec::EncodeTask> tasks_;
};

// A prompt with its pictures, and the recorded answer.
struct Recorded {
  PicturePrompt prompt;
  std::vector<int64_t> greedy;
  std::vector<float> logits, greedy_logits;  // [tokens, kVocab]
  std::vector<float> features;
  std::vector<size_t> begins;  // Of each picture in them.

  Recorded(const std::string& folder, int32_t placeholder, int32_t hidden) {
    auto view = FileView::map(folder + "/expected.safetensors");
    auto file = card::open_safetensors(std::move(*view));
    const std::vector<int64_t> ids = read_tensor<int64_t>(*file, "input_ids");
    const std::vector<int64_t> grids = read_tensor<int64_t>(*file, "image_grid_thw");
    greedy = read_tensor<int64_t>(*file, "gen_ids");
    logits = read_tensor<float>(*file, "logits");
    greedy_logits = read_tensor<float>(*file, "gen_logits");
    features = read_tensor<float>(*file, "image_features");
    size_t begin = 0;
    for (const int64_t id : ids) {
      const auto at = static_cast<int32_t>(prompt.tokens.size());
      prompt.tokens.push_back(static_cast<int32_t>(id));
      if (id != placeholder) continue;
      if (at > 0 && prompt.tokens[static_cast<size_t>(at) - 1] == placeholder) continue;
      const size_t number = prompt.media.pictures.size();
      const auto rows = static_cast<int32_t>(grids[3 * number + 1] / 2);
      const auto columns = static_cast<int32_t>(grids[3 * number + 2] / 2);
      Picture picture = made_up_picture(static_cast<int32_t>(number), rows, columns, false);
      picture.first = picture.runs[0].first = at;
      prompt.media.pictures.push_back(picture);
      begins.push_back(begin);
      begin += static_cast<size_t>(rows * columns * hidden);
    }
    EXPECT_EQ(begin, features.size());
  }
};

double logprob(std::span<const float> logits, size_t row, int64_t token) {
  const std::span<const float> of = logits.subspan(row * kVocab, kVocab);
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

void compare(const Recorded& recorded, const Request& request) {
  const auto& prompt = recorded.prompt.tokens;
  for (size_t i = 0; i + 1 < prompt.size(); ++i)
    EXPECT_NEAR((*request.prompt_log)[static_cast<int32_t>(i)].logprob,
                logprob(recorded.logits, i, prompt[i + 1]), kBound)
        << "after token " << i;
  ASSERT_EQ(request.log.size(), std::ssize(recorded.greedy));
  for (int32_t i = 0; i < request.log.size(); ++i) {
    const int64_t token = recorded.greedy[static_cast<size_t>(i)];
    EXPECT_EQ(request.log[i].token, token);
    EXPECT_NEAR(request.log[i].logprob,
                logprob(recorded.greedy_logits, static_cast<size_t>(i), token), kBound);
  }
}

TEST_P(PictureFixture, GivesWhatTheReferenceGaveAndTheSameBitsInAnyCompany) {
  const Result<card::ModelCard> card = card::ModelCard::open_folder(folder_);
  ASSERT_TRUE(card) << card.error().message;
  int64_t placeholder = -1;
  ASSERT_EQ(card->config.root()["image_token_id"].get(placeholder), simdjson::SUCCESS);
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  constexpr int kMembers = 2;
  ThreadTeam team(kMembers);
  const auto model = model::Model::load(
      *card, {.compute = model::Compute::kExact, .rows_max = 128, .draft_rows_max = 64}, ops, team);
  ASSERT_TRUE(model) << model.error().message;
  const Recorded recorded(folder_, static_cast<int32_t>(placeholder), (*model)->spec().hidden_size);
  RecordedEncoder encoder(recorded.features, recorded.begins);
  RunnerOptions options;
  options.encoder = &encoder;
  options.members = kMembers;
  options.engine.image_cache_bytes = 1 << 20;
  options.engine.step_tokens_max = 128;

  // Alone, and after a text, which has it lie otherwise in pages.
  PicturePrompt later = recorded.prompt;
  const std::vector<int32_t> before = {9, 8, 7, 6, 5, 4, 3, 10, 11, 12, 13};
  later.tokens.insert(later.tokens.begin(), before.begin(), before.end());
  for (Picture& picture : later.media.pictures) {
    picture.first += static_cast<int32_t>(before.size());
    picture.runs[0].first += static_cast<int32_t>(before.size());
  }
  later.tokens.insert(later.tokens.end(), before.begin(), before.end());
  auto alone = greedy_request(recorded.prompt, 16, /*scored=*/true);
  auto later_alone = greedy_request(later, 24);
  {
    options.engine.prefix_cache = false;
    EngineRunner runner(**model, ops, options);
    for (Request* request : {alone.get(), later_alone.get()}) {
      ASSERT_TRUE(runner.handle().submit(request));
      runner.wait(*request);
    }
  }
  compare(recorded, *alone);
  EXPECT_EQ(encoder.encoded, std::ssize(recorded.prompt.media.pictures));

  // Among others, in pieces; then once more, from the cache.
  options.engine.prefix_cache = true;
  options.engine.step_tokens_max = 21;
  options.engine.running_max = 10;
  options.held = true;
  encoder.encoded = 0;
  EngineRunner runner(**model, ops, options);
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 8; ++i) {
    PicturePrompt other = i % 2 == 0 ? recorded.prompt : PicturePrompt();
    other.add_text(std::vector<int32_t>(static_cast<size_t>(3 + 5 * i), 20 + i));
    requests.push_back(greedy_request(other, 6 + i));
  }
  requests.push_back(greedy_request(recorded.prompt, 16, /*scored=*/true));
  requests.push_back(greedy_request(later, 24));
  for (const auto& request : requests) ASSERT_TRUE(runner.handle().submit(request.get()));
  runner.begin();
  for (const auto& request : requests) runner.wait(*request);
  expect_same_bits(requests[8]->log, alone->log);
  expect_same_bits(*requests[8]->prompt_log, *alone->prompt_log);
  expect_same_bits(requests[9]->log, later_alone->log);
  EXPECT_EQ(encoder.encoded, std::ssize(recorded.prompt.media.pictures));
  auto again = greedy_request(later, 24);
  ASSERT_TRUE(runner.handle().submit(again.get()));
  runner.wait(*again);
  expect_same_bits(again->log, later_alone->log);
  EXPECT_GT(again->cached_tokens, 0);
  EXPECT_EQ(encoder.encoded, std::ssize(recorded.prompt.media.pictures));
}

INSTANTIATE_TEST_SUITE_P(Families, PictureFixture,
                         testing::Values("qwen2_vl", "qwen2_5_vl", "qwen3_5", "qwen3_5_moe"),
                         [](const auto& family) { return std::string(family.param); });

}  // namespace
}  // namespace weir::sched
