// Prompts with pictures through the engine: each gets what it must, whatever runs beside it, whatever
// the caches hold, and nothing is encoded that is there.
#include "sched/media_features.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <random>
#include <thread>
#include <vector>

#include "sched/engine_runner.h"
#include "sched/fake_encoder.h"
#include "sched/made_up_drafts.h"

namespace weir::sched {
namespace {

std::vector<int32_t> made_up_text(int32_t seed, int32_t tokens) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::vector<int32_t> text(static_cast<size_t>(tokens));
  for (int32_t& token : text) token = 3 + static_cast<int32_t>(random() % 40);
  return text;
}

// Texts and pictures, of which many begin alike.
std::vector<PicturePrompt> made_up_prompts(int32_t count, bool marks) {
  std::mt19937 random(20261126);
  const auto below = [&](int32_t bound) {
    return static_cast<int32_t>(random() % static_cast<unsigned>(bound));
  };
  std::vector<PicturePrompt> prompts;
  for (int32_t i = 0; i < count; ++i) {
    PicturePrompt& prompt = prompts.emplace_back();
    prompt.add_text(made_up_text(i % 3, i % 4 == 3 ? 3 + below(60) : 41));
    const int32_t pictures = i % 5 == 4 ? 0 : 1 + below(3);
    for (int32_t p = 0; p < pictures; ++p) {
      const int32_t number = below(6);  // The sizes are the picture's, too.
      prompt.add(made_up_picture(number, 2 + number % 3 * 3, 3 + number % 2 * 8, marks));
      prompt.add_text(made_up_text(10 + p, 1 + below(8)));
    }
    prompt.add_text(made_up_text(100 + i, 2 + below(30)));
  }
  return prompts;
}

struct World {
  FakeModelOptions model{};
  int32_t levels = 0;
  bool marks = false;
  RunnerOptions runner{};
  int64_t cache_bytes = 1 << 20;
};

std::vector<std::unique_ptr<Request>> requests_of(const World& world) {
  const std::vector<PicturePrompt> prompts = made_up_prompts(40, world.marks);
  std::vector<std::unique_ptr<Request>> requests;
  for (size_t i = 0; i < prompts.size(); ++i) {
    sample::SamplingParams params;
    params.temperature = i % 2 == 0 ? 0.0f : 1.0f;
    params.seed = i;
    requests.push_back(prompts[i].request(params, 1 + static_cast<int32_t>(i) % 40));
    requests.back()->id = i;
  }
  return requests;
}

void run_and_compare(const World& world, EngineRunner& runner, const FakeModel& model) {
  const std::vector<std::unique_ptr<Request>> requests = requests_of(world);
  for (size_t i = 0; i < requests.size(); ++i) {
    const Result<void> submitted = runner.handle().submit(requests[i].get());
    EXPECT_TRUE(submitted) << submitted.error().message;
    if (i % 7 == 6) runner.handle().cancel(requests[i - 3].get());
  }
  for (size_t i = 0; i < requests.size(); ++i) {
    runner.wait(*requests[i]);
    const Answer answer = reference_answer(model, *requests[i], nullptr,
                                           rows_of(*requests[i], world.model, world.levels));
    EXPECT_TRUE(has_answer(*requests[i], answer)) << "request " << i;
  }
}

void check_world(World world) {
  FakeModel model(world.model);
  FakeEncoder encoder(world.levels);
  world.runner.encoder = &encoder;
  world.runner.engine.image_cache_bytes = world.cache_bytes;
  EngineRunner runner(model, test_ops(), world.runner);
  run_and_compare(world, runner, model);
  runner.stop();
  const EngineStats& stats = runner.handle().stats();
  EXPECT_GT(stats.image_encoded.value(), 0u);
  EXPECT_LE(stats.image_encoded.value(), encoder.pictures());
  if (world.runner.engine.prefix_cache && world.model.both_ways != model::BothWays::kPrompt) {
    EXPECT_GT(stats.prefix_hits.value(), 0u);
  }
}

TEST(Pictures, GiveEachRequestItsOwnAnswer) {
  for (const bool cached : {false, true})
    for (const bool marks : {false, true}) {
      World world = {.levels = marks ? 2 : 0, .marks = marks};
      world.runner.engine.prefix_cache = cached;
      check_world(world);
    }
}

TEST(Pictures, TurnByThreePositions) {
  World world = {.model = {.three_positions = true}, .levels = 3};
  check_world(world);
  world.runner.engine.step_tokens_max = 37;
  world.runner.engine.running_max = 5;
  check_world(world);
}

// Pages for little more than the longest sequence, and an image cache for the largest prompt: both
// are full all the time.
TEST(Pictures, StandPreemptionAndALackOfRoom) {
  World world = {.model = {.three_positions = true}, .levels = 1};
  world.runner.page_count = 14;
  world.cache_bytes = 3 * 88 * 2 * 8 * 4;
  check_world(world);
}

TEST(Pictures, SeeBothWaysWithinAStep) {
  for (const model::BothWays both_ways : {model::BothWays::kRuns, model::BothWays::kPrompt}) {
    World world = {.model = {.both_ways = both_ways}, .marks = true};
    check_world(world);
    world.runner.page_count = 20;
    world.runner.engine.running_max = 3;
    world.runner.engine.step_seconds_max = 1e-6;  // Few tokens a step, but for what must be whole.
    check_world(world);
  }
}

// What a token leaves depends on those after it then.
TEST(Pictures, OfPromptsThatSeeBothWaysShareWithTheirEqualsAlone) {
  const FakeModelOptions options = {.both_ways = model::BothWays::kPrompt};
  FakeModel model(options);
  FakeEncoder encoder;
  RunnerOptions runner_options;
  runner_options.encoder = &encoder;
  runner_options.engine.image_cache_bytes = 1 << 20;
  EngineRunner runner(model, test_ops(), runner_options);
  PicturePrompt prompt;
  prompt.add(made_up_picture(1, 6, 11, false));
  prompt.add_text(made_up_text(2, 30));
  PicturePrompt longer = prompt;
  longer.add_text(made_up_text(3, 10));
  const auto cached_of = [&](const PicturePrompt& asked) {
    const auto request = asked.request({}, 8);
    EXPECT_TRUE(runner.handle().submit(request.get()));
    runner.wait(*request);
    EXPECT_TRUE(has_answer(
        *request, reference_answer(model, *request, nullptr, rows_of(*request, options, 0))));
    return request->cached_tokens;
  };
  EXPECT_EQ(cached_of(prompt), 0);
  EXPECT_EQ(cached_of(longer), 0);
  EXPECT_EQ(cached_of(prompt), 64);
  EXPECT_EQ(cached_of(longer), 96);
}

// A window that is shorter than a picture: its first tokens are seen by the last ones all the same.
TEST(Pictures, SeeBothWaysBeyondAWindow) {
  World world = {.model = {.both_ways = model::BothWays::kRuns}};
  world.model.windows = {40};
  check_world(world);
}

TEST(Pictures, GoWithStatesAndSlabs) {
  check_world({.model = {.states = true, .three_positions = true}});
  World slabs = {.model = {.slab_rows = 256, .both_ways = model::BothWays::kRuns}, .marks = true};
  check_world(slabs);
}

TEST(Pictures, GoWithDrafts) {
  World world = {.model = {.three_positions = true}, .levels = 1};
  const FakeModel model(world.model);
  std::vector<std::vector<int32_t>> answers;
  for (const auto& request : requests_of(world)) {
    std::vector<int32_t>& tokens = answers.emplace_back();
    for (const TokenLogprob& token :
         reference_answer(model, *request, nullptr, rows_of(*request, world.model, world.levels))
             .tokens)
      tokens.push_back(token.token);
  }
  MadeUpDrafts drafts(
      MadeUpDrafts::Way::kRandom, world.model.vocab_size,
      [&](const Request& request) -> const std::vector<int32_t>& { return answers[request.id]; },
      [](const Request& request) { return static_cast<int32_t>(request.id % 8); });
  world.runner.engine.speculation = {.sources = {&drafts}, .measured = false};
  check_world(world);
  EXPECT_GT(drafts.right(), 0);
  EXPECT_EQ(drafts.wrong_pending() + drafts.wrong_positions(), 0);
}

// A conversation about a picture, and others' about another one that looks the same in ids.
TEST(Pictures, AreEncodedOnceInAConversation) {
  const FakeModelOptions options;
  FakeModel model(options);
  FakeEncoder encoder;
  RunnerOptions runner_options;
  runner_options.encoder = &encoder;
  runner_options.engine.image_cache_bytes = 6 * 11 * 8 * 4;  // One picture, and no other beside it.
  EngineRunner runner(model, test_ops(), runner_options);
  PicturePrompt prompt;
  prompt.add_text(made_up_text(1, 20));
  prompt.add(made_up_picture(1, 6, 11, false));
  prompt.add_text(made_up_text(2, 30));
  const auto turn = [&](const PicturePrompt& asked) {
    auto request = asked.request({}, 8);
    EXPECT_TRUE(runner.handle().submit(request.get()));
    runner.wait(*request);
    EXPECT_TRUE(has_answer(
        *request, reference_answer(model, *request, nullptr, rows_of(*request, options, 0))));
    return request;
  };
  (void)turn(prompt);
  EXPECT_EQ(encoder.pictures(), 1u);
  PicturePrompt second = prompt;  // The next turn: pages hold the picture.
  second.add_text(made_up_text(3, 40));
  EXPECT_EQ(turn(second)->cached_tokens, 96);  // 116 tokens are known, whole blocks of them.
  EXPECT_EQ(encoder.pictures(), 1u);
  EXPECT_EQ(runner.handle().stats().image_hits.value(), 0u);

  PicturePrompt other;  // The same ids, another picture.
  other.add_text(made_up_text(1, 20));
  other.add(made_up_picture(7, 6, 11, false));
  other.add_text(made_up_text(2, 30));
  EXPECT_EQ(other.tokens, prompt.tokens);
  EXPECT_EQ(turn(other)->cached_tokens, 0);
  EXPECT_EQ(encoder.pictures(), 2u);

  PicturePrompt elsewhere;  // The same picture in another text: from the image cache.
  elsewhere.add_text(made_up_text(9, 11));
  elsewhere.add(made_up_picture(7, 6, 11, false));
  elsewhere.add_text(made_up_text(2, 30));
  EXPECT_EQ(turn(elsewhere)->cached_tokens, 0);
  EXPECT_EQ(encoder.pictures(), 2u);
  EXPECT_EQ(runner.handle().stats().image_hits.value(), 1u);
}

TEST(Pictures, AreEncodedTogetherBetweenOthersSteps) {
  FakeModel model;
  FakeEncoder encoder(/*levels=*/0, /*together=*/4, /*sublayers=*/40);
  RunnerOptions options;
  options.encoder = &encoder;
  options.engine.image_cache_bytes = 1 << 20;
  options.held = true;
  EngineRunner runner(model, test_ops(), options);
  int64_t steps = -1, most = 0;
  encoder.on_advance = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));  // Much longer than a step.
    const int64_t now = model.steps();
    if (steps >= 0) most = std::max(most, now - steps);
    steps = now;
  };
  PicturePrompt text;
  text.add_text(made_up_text(1, 20));
  auto writer = text.request({}, 300);
  EXPECT_TRUE(runner.handle().submit(writer.get()));
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 3; ++i) {
    PicturePrompt prompt;
    prompt.add_text(made_up_text(2 + i, 5));
    prompt.add(made_up_picture(i, 4, 4, false));
    prompt.add_text(made_up_text(1, 5));
    requests.push_back(prompt.request({}, 4));
    EXPECT_TRUE(runner.handle().submit(requests.back().get()));
  }
  runner.begin();
  for (const auto& request : requests) runner.wait(*request);
  // A step of the one that writes comes after each sublayer of the pictures.
  EXPECT_GE(writer->log.size(), 10);
  EXPECT_EQ(most, 1);
  runner.wait(*writer);
  runner.stop();
  EXPECT_EQ(encoder.most(), 3u);
}

TEST(Pictures, ThatCannotBeEncodedFailTheirRequestsAlone) {
  const FakeModelOptions model_options;
  FakeModel model(model_options);
  FakeEncoder encoder;
  RunnerOptions options;
  options.encoder = &encoder;
  options.engine.image_cache_bytes = 1 << 20;
  options.held = true;
  EngineRunner runner(model, test_ops(), options);
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < 6; ++i) {
    PicturePrompt prompt;
    prompt.add_text(made_up_text(2 + i, 5));
    prompt.add(made_up_picture(i == 1 || i == 4 ? -1 : i, 4, 4, false));
    prompt.add_text(made_up_text(1, 5));
    requests.push_back(prompt.request({}, 4));
    EXPECT_TRUE(runner.handle().submit(requests.back().get()));
  }
  runner.begin();
  for (size_t i = 0; i < requests.size(); ++i) {
    runner.wait(*requests[i]);
    if (i == 1 || i == 4) {
      EXPECT_EQ(requests[i]->log.finish_reason(), FinishReason::kError);
      EXPECT_EQ(requests[i]->failure, "too dark");
      continue;
    }
    EXPECT_TRUE(has_answer(*requests[i], reference_answer(model, *requests[i], nullptr,
                                                          rows_of(*requests[i], model_options, 0))));
  }
}

TEST(Pictures, ThatAreTooLargeAreRefused) {
  FakeModel model({.rows_max = 128, .both_ways = model::BothWays::kRuns});
  FakeEncoder encoder;
  RunnerOptions options;
  options.engine.step_tokens_max = 128;
  options.engine.running_max = 16;
  options.encoder = &encoder;
  options.engine.image_cache_bytes = 150 * 8 * 4;
  EngineRunner runner(model, test_ops(), options);
  const auto refused = [&](const PicturePrompt& prompt) {
    const auto request = prompt.request({}, 4);
    const Result<void> submitted = runner.handle().submit(request.get());
    EXPECT_FALSE(submitted);
    return submitted ? std::string() : submitted.error().message;
  };
  PicturePrompt prompt;
  prompt.add_text(made_up_text(1, 5));
  prompt.add(made_up_picture(1, 10, 11, false));
  EXPECT_EQ(refused(prompt),
            "Expected at most 108 tokens of a picture, which see each other and so are computed in "
            "one step; found 110");
  PicturePrompt two;
  for (int32_t i = 0; i < 2; ++i) {
    two.add_text(made_up_text(1, 5));
    two.add(made_up_picture(i, 9, 10, false));
  }
  EXPECT_EQ(refused(two),
            "Expected pictures and sounds of at most 150 tokens together, which is what "
            "--image-cache holds; found 180");
  two.media.items[1].first -= 1;
  EXPECT_EQ(refused(two),
            "Expected a picture's tokens to begin and end with a row of features");
  runner.stop();
  EngineRunner plain(model, test_ops(), {});
  two.media.items[1].first += 1;
  const auto request = two.request({}, 4);
  const Result<void> submitted = plain.handle().submit(request.get());
  ASSERT_FALSE(submitted);
  EXPECT_EQ(submitted.error().message, "This model takes no pictures");
}

}  // namespace
}  // namespace weir::sched
