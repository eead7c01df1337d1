// Whisper's fixture through the engine: the tokens and the log-probabilities that the reference
// recorded; and to the last bit the same alone, among others that hear other sounds, in pieces, after
// others took its place, and when its sound has been heard before.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "../../tools/check/family_fixture.h"
#include "../../tools/check/sound_fixture.h"
#include "card/checkpoint.h"
#include "card/model_card.h"
#include "encoder/encoder.h"
#include "kernels/cpu_ops.h"
#include "media/features/sound_plan.h"
#include "sched/engine_runner.h"
#include "sched/fake_model.h"

namespace weir::sched {
namespace {

// Of the fixture's model.
constexpr size_t kWidth = 64, kHeads = 4, kHeadDim = kWidth / kHeads;

using Row = std::vector<double>;

// Tensors of the decoder, in plain arithmetic.
class PlainDecoder {
 public:
  explicit PlainDecoder(const card::Checkpoint& file) : file_(file) {}

  std::vector<float> read(const std::string& name) const {
    const card::StoredTensor* stored = file_.find("model.decoder." + name);
    CHECK(stored != nullptr);
    std::vector<float> values(static_cast<size_t>(stored->tensor.elements()));
    std::memcpy(values.data(), stored->tensor.data, values.size() * sizeof(float));
    return values;
  }
  Row linear(const std::string& module, const Row& x, bool bias = true) const {
    const std::vector<float> weight = read(module + ".weight");
    Row y(weight.size() / x.size(), 0);
    if (bias) std::ranges::copy(read(module + ".bias"), y.begin());
    for (size_t n = 0; n < y.size(); ++n)
      for (size_t k = 0; k < x.size(); ++k) y[n] += double{weight[n * x.size() + k]} * x[k];
    return y;
  }
  Row norm(const std::string& module, const Row& x) const {
    const std::vector<float> weight = read(module + ".weight"), bias = read(module + ".bias");
    double mean = 0, variance = 0;
    for (const double value : x) mean += value / static_cast<double>(x.size());
    for (const double value : x) variance += (value - mean) * (value - mean) / 64;
    Row y(x.size());
    for (size_t i = 0; i < x.size(); ++i)
      y[i] = (x[i] - mean) / std::sqrt(variance + 1e-5) * weight[i] + bias[i];
    return y;
  }
  // How much a query attends to each of the keys in one head.
  static Row attend(const Row& q, std::span<const Row> keys, size_t head) {
    Row weights;
    double sum = 0;
    for (const Row& k : keys) {
      double score = 0;
      for (size_t d = head * kHeadDim; d < (head + 1) * kHeadDim; ++d) score += q[d] * k[d];
      weights.push_back(std::exp(score / std::sqrt(static_cast<double>(kHeadDim))));
      sum += weights.back();
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  }
  // Of the first layer: how much each token attends to each of the sound's first rows.
  std::vector<Row> heard_by(std::span<const int32_t> tokens, std::span<const float> sound,
                            size_t rows, size_t head) const {
    const std::vector<float> embedding = read("embed_tokens.weight"),
                             positions = read("embed_positions.weight");
    const std::string layer = "layers.0.";
    std::vector<Row> keys, values, heard, out;
    for (size_t i = 0; i < rows; ++i) {
      const Row row(sound.begin() + static_cast<std::ptrdiff_t>(i * kWidth),
                    sound.begin() + static_cast<std::ptrdiff_t>((i + 1) * kWidth));
      heard.push_back(linear(layer + "encoder_attn.k_proj", row, /*bias=*/false));
    }
    for (size_t t = 0; t < tokens.size(); ++t) {
      Row x(kWidth);
      for (size_t i = 0; i < kWidth; ++i)
        x[i] = double{embedding[static_cast<size_t>(tokens[t]) * kWidth + i]} +
               positions[t * kWidth + i];
      const Row normed = norm(layer + "self_attn_layer_norm", x);
      const Row q = linear(layer + "self_attn.q_proj", normed);
      keys.push_back(linear(layer + "self_attn.k_proj", normed, /*bias=*/false));
      values.push_back(linear(layer + "self_attn.v_proj", normed));
      Row attended(kWidth, 0);
      for (size_t h = 0; h < kHeads; ++h) {
        const Row weights = attend(q, keys, h);
        for (size_t j = 0; j < weights.size(); ++j)
          for (size_t d = h * kHeadDim; d < (h + 1) * kHeadDim; ++d)
            attended[d] += weights[j] * values[j][d];
      }
      const Row added = linear(layer + "self_attn.out_proj", attended);
      for (size_t i = 0; i < kWidth; ++i) x[i] += added[i];
      out.push_back(attend(linear(layer + "encoder_attn.q_proj",
                                  norm(layer + "encoder_attn_layer_norm", x)),
                           heard, head));
    }
    return out;
  }

 private:
  const card::Checkpoint& file_;
};

constexpr double kBound = 2e-3;
constexpr int kMembers = 2;
constexpr int32_t kRows = 64;

std::shared_ptr<const HeardSound> heard(media::SoundFeatures features) {
  auto sound = std::make_shared<HeardSound>();
  sound->hash = hash_of(features);
  sound->features = std::make_shared<const media::SoundFeatures>(std::move(features));
  return sound;
}

// The fixture's model, its encoder, its sound and others like it.
class HearingFixture : public testing::Test {
 protected:
  void SetUp() override {
    const char* const families = std::getenv("WEIR_FAMILIES");
    if (families == nullptr) GTEST_SKIP() << "WEIR_FAMILIES: where fixtures are unpacked";
    const std::string folder = std::string(families) + "/given/whisper";
    const auto card = card::ModelCard::open_folder(folder);
    ASSERT_TRUE(card) << card.error().message;
    auto loaded = model::Model::load(
        *card, {.compute = model::Compute::kExact, .rows_max = kRows}, ops_, team_);
    ASSERT_TRUE(loaded) << loaded.error().message;
    model_ = *std::move(loaded);
    auto sound = check::SoundFixture::open(folder);
    ASSERT_TRUE(sound) << sound.error().message;
    auto answers = check::FamilyFixture::open(folder, check::Answers::kSound);
    ASSERT_TRUE(answers) << answers.error().message;
    answers_ = *std::move(answers);
    const auto longest = media::plan_sound(sound->front_end, sound->front_end.samples_max);
    auto ear = encoder::Encoder::load(*card,
                                      {.compute = model::Compute::kExact,
                                       .medium = encoder::Medium::kSound,
                                       .frames_max = longest->frames},
                                      ops_, team_);
    ASSERT_TRUE(ear) << ear.error().message;
    ear_ = *std::move(ear);
    tensors_ = card->tensors;
    encoded_ = sound->encoded;
    features_ = {.frames = longest->frames, .heard = longest->frames, .numbers = sound->features};
    options_.members = kMembers;
    options_.ear = ear_.get();
    options_.engine.step_tokens_max = kRows;
    options_.engine.running_max = 12;
  }

  // The fixture's sound, louder by so much.
  std::shared_ptr<const HeardSound> sound(int32_t louder = 0) const {
    media::SoundFeatures features = features_;
    for (float& number : features.numbers) number += 0.05f * static_cast<float>(louder);
    return heard(std::move(features));
  }
  std::unique_ptr<Request> request(std::shared_ptr<const HeardSound> sound, int32_t max_tokens = 16,
                                   sample::SamplingParams params = {}) const {
    params.temperature = 0;
    auto request = std::make_unique<Request>(answers_.input_ids, params, max_tokens, true);
    request->heard = std::move(sound);
    request->arrived = Clock::now();
    return request;
  }
  static void run(EngineRunner& runner, Request& request) {
    const Result<void> submitted = runner.handle().submit(&request);
    ASSERT_TRUE(submitted) << submitted.error().message;
    runner.wait(request);
  }
  // The reference's log-probability of a token, of row `row`.
  static double logprob(std::span<const float> logits, size_t vocab, size_t row, int32_t token) {
    const std::span<const float> of = logits.subspan(row * vocab, vocab);
    double sum = 0;
    for (const float logit : of) sum += std::exp(static_cast<double>(logit));
    return of[static_cast<size_t>(token)] - std::log(sum);
  }
  size_t vocab() const { return answers_.logits.size() / answers_.input_ids.size(); }

  const kernels::Ops& ops_ = kernels::ops_for(kernels::detect_isa());
  ThreadTeam team_{kMembers};
  std::unique_ptr<model::Model> model_;
  std::unique_ptr<encoder::Encoder> ear_;
  check::FamilyFixture answers_;
  media::SoundFeatures features_;
  std::shared_ptr<const card::Checkpoint> tensors_;
  std::vector<float> encoded_;  // What the reference's encoder gave.
  RunnerOptions options_;
};

void expect_same_bits(const TokenLog& found, const TokenLog& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (int32_t i = 0; i < found.size(); ++i)
    ASSERT_TRUE(same_bits(found[i], expected[i])) << "token " << i;
}

TEST_F(HearingFixture, GivesWhatTheReferenceGave) {
  EngineRunner runner(*model_, ops_, options_);
  auto found = request(sound());
  found->prompt_log =
      std::make_unique<TokenLog>(static_cast<int32_t>(answers_.input_ids.size()) - 1, 0);
  run(runner, *found);
  ASSERT_EQ(found->log.size(), std::ssize(answers_.gen_ids));
  for (int32_t i = 0; i < found->log.size(); ++i) {
    const int32_t token = answers_.gen_ids[static_cast<size_t>(i)];
    EXPECT_EQ(found->log[i].token, token);
    EXPECT_NEAR(found->log[i].logprob,
                logprob(answers_.gen_logits, vocab(), static_cast<size_t>(i), token), kBound);
  }
  for (int32_t i = 0; i < found->prompt_log->size(); ++i)
    EXPECT_NEAR((*found->prompt_log)[i].logprob,
                logprob(answers_.logits, vocab(), static_cast<size_t>(i),
                        answers_.input_ids[static_cast<size_t>(i) + 1]),
                kBound);
  EXPECT_EQ(runner.handle().stats().audio_encoded.value(), 1u);
}

TEST_F(HearingFixture, GivesTheSameBitsInAnyCompany) {
  auto alone = request(sound(), 40);
  {
    EngineRunner runner(*model_, ops_, options_);
    run(runner, *alone);
  }
  // Among nine others, in pieces, in too few pages for all, so that some give way; then once more.
  options_.engine.step_tokens_max = 13;
  options_.page_count = 7;
  options_.held = true;
  EngineRunner runner(*model_, ops_, options_);
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 10; ++i) {
    const bool own = i % 5 == 4;
    requests.push_back(request(sound(own ? 0 : 1 + i), own ? 40 : 20 + 2 * i));
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
  }
  runner.begin();
  int32_t preemptions = 0;
  for (const auto& one : requests) {
    runner.wait(*one);
    preemptions += one->preemptions;
  }
  EXPECT_GT(preemptions, 0);
  expect_same_bits(requests[4]->log, alone->log);
  expect_same_bits(requests[9]->log, alone->log);
  for (int32_t i = 0; i < 9; i += i == 3 ? 2 : 1)
    EXPECT_NE(requests[static_cast<size_t>(i)]->log[0].logprob, alone->log[0].logprob) << i;
  const uint64_t encoded = runner.handle().stats().audio_encoded.value();
  EXPECT_GE(encoded, 9u);
  auto again = request(sound(), 40);
  run(runner, *again);
  expect_same_bits(again->log, alone->log);
  EXPECT_EQ(runner.handle().stats().audio_encoded.value(), encoded);
}

TEST_F(HearingFixture, SharesPagesOnlyOfTheSameSound) {
  EngineRunner runner(*model_, ops_, options_);
  auto first = request(sound(), 40), other = request(sound(3), 40), same = request(sound(), 40);
  std::vector<int32_t> longer = answers_.input_ids;
  for (Request* one : {first.get(), other.get(), same.get()}) {
    run(runner, *one);
    EXPECT_EQ(one->cached_tokens, 0);  // The prompt is less than a page.
  }
  // What was said before, as a prompt.
  for (int32_t i = 0; i < 30; ++i) longer.push_back(first->log[i].token);
  const auto continued = [&](std::shared_ptr<const HeardSound> of) {
    sample::SamplingParams params;
    params.temperature = 0;
    auto request = std::make_unique<Request>(longer, params, 4, true);
    request->heard = std::move(of);
    run(runner, *request);
    return request;
  };
  const auto own = continued(sound()), others = continued(sound(3)), unheard = continued(sound(7));
  EXPECT_EQ(own->cached_tokens, 32);
  EXPECT_EQ(unheard->cached_tokens, 0);
  for (int32_t i = 0; i < 4; ++i) EXPECT_EQ(own->log[i].token, first->log[30 + i].token);
  EXPECT_NE(own->log[0].logprob, others->log[0].logprob);
}

TEST_F(HearingFixture, ProbesAnyTokenOfThePrompt) {
  EngineRunner runner(*model_, ops_, options_);
  const auto last = static_cast<int32_t>(answers_.input_ids.size()) - 1;
  for (const int32_t after : {0, 3, last}) {
    auto asked = request(sound(), 3);
    asked->probe = {.after = after, .token = 17};
    run(runner, *asked);
    EXPECT_NEAR(asked->probed, logprob(answers_.logits, vocab(), static_cast<size_t>(after), 17),
                kBound);
    EXPECT_EQ(asked->log[0].token, answers_.gen_ids[0]);
  }
}

TEST_F(HearingFixture, GivesWhatTokensAttendTo) {
  constexpr int32_t kHeard = 43;
  const auto tokens = static_cast<int32_t>(answers_.input_ids.size());
  const auto weights_of = [&](EngineRunner& runner, int32_t first) {
    auto request = std::make_unique<Request>(answers_.input_ids, sample::SamplingParams{}, 0, false);
    request->heard = sound();
    request->attended = AttendedSound{.heads = {{0, 1}, {1, 3}, {0, 2}}, .first = first, .rows = kHeard};
    request->attended->weights.resize(static_cast<size_t>(3 * (tokens - first) * kHeard));
    run(runner, *request);
    EXPECT_EQ(request->log.finish_reason(), FinishReason::kLength);
    return request->attended->weights;
  };
  std::vector<float> whole;
  {
    EngineRunner runner(*model_, ops_, options_);
    whole = weights_of(runner, 0);
  }
  ASSERT_EQ(std::ssize(whole), 3 * tokens * kHeard);
  const PlainDecoder plain(*tensors_);
  for (const auto& [at, head] : {std::pair<size_t, size_t>{0, 1}, {2, 2}}) {
    const std::vector<Row> expected = plain.heard_by(answers_.input_ids, encoded_, kHeard, head);
    for (size_t t = 0; t < expected.size(); ++t)
      for (size_t row = 0; row < kHeard; ++row)
        ASSERT_NEAR(whole[(at * expected.size() + t) * kHeard + row], expected[t][row], 1e-5)
            << "head " << head << " token " << t << " row " << row;
  }
  // In pieces, and of the last tokens alone, to the bit.
  options_.engine.step_tokens_max = 5;
  options_.engine.running_max = 2;
  EngineRunner runner(*model_, ops_, options_);
  EXPECT_EQ(weights_of(runner, 0), whole);
  const std::vector<float> last = weights_of(runner, 9);
  for (int32_t h = 0; h < 3; ++h)
    EXPECT_TRUE(std::equal(last.begin() + h * 3 * kHeard, last.begin() + (h + 1) * 3 * kHeard,
                           whole.begin() + (h * tokens + 9) * kHeard));
}

TEST_F(HearingFixture, TellsTheEndsLogProbability) {
  EngineRunner runner(*model_, ops_, options_);
  sample::SamplingParams params;
  params.stop_token_ids = {answers_.gen_ids[0]};
  auto ended = request(sound(), 16, params);
  run(runner, *ended);
  EXPECT_EQ(ended->log.finish_reason(), FinishReason::kStop);
  EXPECT_EQ(ended->log.size(), 0);
  EXPECT_NEAR(ended->end_logprob, logprob(answers_.gen_logits, vocab(), 0, answers_.gen_ids[0]),
              kBound);
}

TEST_F(HearingFixture, RefusesWhatItCannotHear) {
  EngineRunner runner(*model_, ops_, options_);
  EngineHandle& handle = runner.handle();
  const auto refused = [&](Request& request, const char* why) {
    const Result<void> submitted = handle.submit(&request);
    ASSERT_FALSE(submitted);
    EXPECT_NE(submitted.error().message.find(why), std::string::npos) << submitted.error().message;
  };
  refused(*request(nullptr), "expected a sound");
  auto probe = request(sound());
  probe->probe = {.after = 12, .token = 1};
  refused(*probe, "Expected a probe after one of the prompt's 12 tokens");
  auto weights = request(sound());
  weights->attended = AttendedSound{.heads = {{2, 0}}, .rows = 50};
  refused(*weights, "found head 0 of layer 2");
  // What its encoder says comes later, as the request's failure; others go on.
  media::SoundFeatures few = features_;
  few.numbers.resize(80);
  auto short_one = request(heard(few)), good = request(sound());
  ASSERT_TRUE(handle.submit(short_one.get()));
  ASSERT_TRUE(handle.submit(good.get()));
  runner.wait(*short_one);
  runner.wait(*good);
  EXPECT_EQ(short_one->log.finish_reason(), FinishReason::kError);
  EXPECT_NE(short_one->failure.find("80"), std::string::npos) << short_one->failure;
  EXPECT_EQ(good->log.finish_reason(), FinishReason::kLength);
}

}  // namespace
}  // namespace weir::sched
