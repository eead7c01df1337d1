// Requests that want their prompt's hidden states pooled, or its tokens' log-probabilities: each
// gets to the bit what it gets alone, however prompts are cut, among answers, cached prefixes and
// preemptions; first with a fake model whose states are known, then with a real one.
#include <gtest/gtest.h>

#include <bit>
#include <memory>
#include <random>
#include <vector>

#include "card/default_model.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "sched/engine_runner.h"
#include "sched/fake_model.h"

namespace weir::sched {
namespace {

using Requests = std::vector<std::unique_ptr<Request>>;

std::unique_ptr<Request> answering(std::vector<int32_t> prompt, int32_t max_tokens,
                                   int32_t top_logprobs = 0) {
  sample::SamplingParams params;
  params.temperature = 0;
  params.top_logprobs = params.prompt_top_logprobs = top_logprobs;
  auto request = std::make_unique<Request>(std::move(prompt), params, max_tokens, true);
  request->arrived = Clock::now();
  return request;
}

std::unique_ptr<Request> pooling(std::vector<int32_t> prompt, Pooling how, int32_t hidden) {
  auto request = answering(std::move(prompt), 0);
  request->pooling = how;
  request->pooled.assign(static_cast<size_t>(hidden), -77);
  return request;
}

std::unique_ptr<Request> scoring(std::vector<int32_t> prompt, int32_t max_tokens,
                                 int32_t top_logprobs) {
  auto request = answering(std::move(prompt), max_tokens, top_logprobs);
  request->prompt_log =
      std::make_unique<TokenLog>(static_cast<int32_t>(request->prompt.size()) - 1, top_logprobs);
  request->prompt_ranks.resize(request->prompt.size() - 1);
  return request;
}

std::vector<int32_t> random_tokens(std::mt19937& rng, size_t count, int32_t vocab) {
  std::vector<int32_t> tokens(count);
  for (int32_t& token : tokens) token = static_cast<int32_t>(rng() % static_cast<unsigned>(vocab));
  return tokens;
}

// Of all kinds, of 1 to 170 tokens, half of which begin alike.
Requests mixed_requests(int32_t count, int32_t vocab, int32_t hidden) {
  std::mt19937 rng(20261122);
  const std::vector<int32_t> shared = random_tokens(rng, 110, vocab);
  Requests requests;
  for (int32_t i = 0; i < count; ++i) {
    std::vector<int32_t> prompt = random_tokens(rng, 1 + rng() % (i % 4 == 0 ? 60 : 170), vocab);
    if (rng() % 2 == 0)
      std::copy_n(shared.begin(), std::min(shared.size(), prompt.size()), prompt.begin());
    const auto outputs = static_cast<int32_t>(rng() % 30);
    switch (i % 6) {
      case 0:
        requests.push_back(pooling(std::move(prompt), Pooling::kLast, hidden));
        break;
      case 1:
        requests.push_back(pooling(std::move(prompt), Pooling::kMean, hidden));
        break;
      case 2:
        requests.push_back(pooling(std::move(prompt), Pooling::kCls, hidden));
        break;
      case 3:
        requests.push_back(scoring(std::move(prompt), outputs, i % 4));
        break;
      default:
        requests.push_back(answering(std::move(prompt), outputs, i % 3));
    }
  }
  return requests;
}

// What submits and waits for all.
struct Figures {
  uint64_t steps = 0, preemptions = 0, hits = 0;
};
Figures run(model::Model& model, const kernels::Ops& ops, RunnerOptions options,
            const Requests& requests) {
  options.held = true;
  EngineRunner runner(model, ops, options);
  for (const auto& request : requests) {
    const Result<void> submitted = runner.handle().submit(request.get());
    EXPECT_TRUE(submitted) << submitted.error().message;
  }
  runner.begin();
  for (const auto& request : requests) runner.wait(*request);
  runner.stop();
  const EngineStats& stats = runner.handle().stats();
  return {stats.steps.value(), stats.preemptions.value(), stats.prefix_hits.value()};
}

// The state or the logits behind each token of the prompt are known of a fake model.
void expect_known_pool(const FakeModel& model, const Request& request) {
  const auto width = static_cast<size_t>(model.spec().hidden_size);
  const auto length = static_cast<int32_t>(request.prompt.size());
  std::vector<float> expected(width, 0), state(width);
  uint64_t hash = 0;
  for (int32_t i = 0; i < length; ++i) {
    hash = mix(mix(hash, static_cast<uint64_t>(request.prompt[static_cast<size_t>(i)])),
               static_cast<uint64_t>(model.rope_length(length, i)));
    model.fill_hidden(hash, state);
    const bool only = request.pooling == Pooling::kLast ? i == length - 1 : i == 0;
    for (size_t k = 0; k < width; ++k) {
      if (request.pooling == Pooling::kMean)
        expected[k] += state[k];
      else if (only)
        expected[k] = state[k];
    }
  }
  if (request.pooling == Pooling::kMean)
    for (float& x : expected) x *= 1 / static_cast<float>(length);
  EXPECT_EQ(request.pooled, expected);
}

void expect_known_scores(const FakeModel& model, const Request& request) {
  const int32_t vocab = model.spec().vocab_size;
  const auto length = static_cast<int32_t>(request.prompt.size());
  const TokenLog& log = *request.prompt_log;
  ASSERT_EQ(log.size(), length - 1);
  std::vector<float> logits(static_cast<size_t>(vocab));
  sample::SamplerScratch scratch(vocab);
  sample::SamplingParams params;
  params.temperature = 0;
  params.top_logprobs = log.top_count();
  uint64_t hash = 0;
  for (int32_t i = 0; i + 1 < length; ++i) {
    hash = mix(mix(hash, static_cast<uint64_t>(request.prompt[static_cast<size_t>(i)])),
               static_cast<uint64_t>(model.rope_length(length, i)));
    // The sampler's own figures, of a token that it is made to choose.
    const int32_t next = request.prompt[static_cast<size_t>(i) + 1];
    params.logit_bias = {{next, 1000.0f}};
    model.fill_logits(hash, logits);
    const auto goes_before = [&](int32_t token) {
      const float own = logits[static_cast<size_t>(next)],
                  other = logits[static_cast<size_t>(token)];
      return other > own || (other == own && token < next);
    };
    int32_t rank = 1;
    for (int32_t token = 0; token < vocab; ++token) rank += goes_before(token);
    ASSERT_EQ(request.prompt_ranks[static_cast<size_t>(i)], rank) << "token " << i;
    sample::Sampler sampler(params, {}, vocab, 1);
    const sample::SampledToken expected =
        sampler.sample(logits, 0, /*want_logprob=*/true, test_ops(), scratch);
    ASSERT_TRUE(same_bits(log[i], expected.chosen)) << "token " << i;
    ASSERT_EQ(expected.top.size(), static_cast<size_t>(log.top_count()));
    for (size_t t = 0; t < expected.top.size(); ++t)
      ASSERT_TRUE(same_bits(log.top(i)[t], expected.top[t])) << "token " << i;
  }
}

class FakePooling : public testing::TestWithParam<int> {};

TEST_P(FakePooling, GivesWhatThePromptAloneSays) {
  for (const int32_t original_context : {0, 64}) {
    for (const int32_t pages : {12, 400}) {
      for (const bool prefix_cache : {false, true}) {
        SCOPED_TRACE("pages " + std::to_string(pages) + " cache " + std::to_string(prefix_cache));
        FakeModel model({.original_context = original_context});
        RunnerOptions options;
        options.members = GetParam();
        options.page_count = pages;
        options.engine.prefix_cache = prefix_cache;
        options.engine.step_tokens_max = 70;
        options.engine.running_max = 16;
        const Requests requests = mixed_requests(120, 48, 8);
        const Figures figures = run(model, test_ops(), options, requests);
        if (pages == 12) {
          EXPECT_GT(figures.preemptions, 0u);
        }
        if (prefix_cache && original_context == 0) {
          EXPECT_GT(figures.hits, 0u);
        }
        for (const auto& request : requests) {
          if (request->pooling != Pooling::kNone)
            expect_known_pool(model, *request);
          else
            ASSERT_TRUE(has_answer(*request, reference_answer(model, *request)));
          if (request->prompt_log) expect_known_scores(model, *request);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Members, FakePooling, testing::Values(1, 3));

TEST(Pooling, TakesOnlyPagesThatItMay) {
  FakeModel model;
  RunnerOptions options;
  EngineRunner runner(model, test_ops(), options);
  std::mt19937 rng(5);
  const std::vector<int32_t> prompt = random_tokens(rng, 100, 48);
  const auto cached = [&](std::unique_ptr<Request> request) {
    EXPECT_TRUE(runner.handle().submit(request.get()));
    runner.wait(*request);
    EXPECT_EQ(request->log.finish_reason(), FinishReason::kLength);
    return request->cached_tokens;
  };
  EXPECT_EQ(cached(pooling(prompt, Pooling::kMean, 8)), 0);
  EXPECT_EQ(cached(pooling(prompt, Pooling::kLast, 8)), 96);  // What the mean has left there.
  EXPECT_EQ(cached(pooling(prompt, Pooling::kMean, 8)), 0);
  EXPECT_EQ(cached(pooling(prompt, Pooling::kCls, 8)), 0);
  EXPECT_EQ(cached(scoring(prompt, 0, 2)), 0);
  EXPECT_EQ(cached(answering(prompt, 4)), 96);
}

TEST(Pooling, TakesAPromptAsLongAsTheContext) {
  FakeModel model;
  RunnerOptions options;
  options.engine.context_max = 128;
  options.page_count = 4;
  EngineRunner runner(model, test_ops(), options);
  for (const int32_t more : {0, 1}) {
    const auto request =
        pooling(std::vector<int32_t>(static_cast<size_t>(128 + more), 7), Pooling::kLast, 8);
    const Result<void> submitted = runner.handle().submit(request.get());
    ASSERT_EQ(submitted.has_value(), more == 0);
    if (submitted) runner.wait(*request);
  }
}

TEST(Pooling, RefusesWhatLacksItsParts) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), {});
  const auto refused = [&](Request& request) {
    const Result<void> submitted = runner.handle().submit(&request);
    return !submitted && submitted.error().code == ErrorCode::kInvalid;
  };
  const auto narrow = pooling({1, 2}, Pooling::kLast, 7);
  EXPECT_TRUE(refused(*narrow));
  const auto with_answer = answering({1, 2}, 3);
  with_answer->pooling = Pooling::kMean;
  with_answer->pooled.resize(8);
  EXPECT_TRUE(refused(*with_answer));
  const auto short_log = answering({1, 2, 3}, 3);
  short_log->prompt_log = std::make_unique<TokenLog>(1, 0);
  EXPECT_TRUE(refused(*short_log));
  const auto with_log = pooling({1, 2, 3}, Pooling::kLast, 8);
  EXPECT_FALSE(with_log->prompt_log);
  with_log->prompt_log = std::make_unique<TokenLog>(2, 0);
  EXPECT_TRUE(refused(*with_log));
}

TEST(Pooling, SurvivesCancellationsAtAnyTime) {
  FakeModel model;
  RunnerOptions options;
  options.members = 2;
  options.page_count = 40;
  options.engine.step_tokens_max = 32;
  options.engine.running_max = 8;
  EngineRunner runner(model, test_ops(), options);
  const Requests requests = mixed_requests(200, 48, 8);
  for (size_t i = 0; i < requests.size(); ++i) {
    ASSERT_TRUE(runner.handle().submit(requests[i].get()));
    if (i % 3 != 0) continue;
    if (i % 2 == 0) std::this_thread::sleep_for(std::chrono::microseconds(i));
    runner.handle().cancel(requests[i / 2].get());
  }
  for (const auto& request : requests) {
    runner.wait(*request);
    if (request->log.finish_reason() == FinishReason::kCancelled) continue;
    if (request->pooling != Pooling::kNone) expect_known_pool(model, *request);
    if (request->prompt_log) expect_known_scores(model, *request);
  }
}

// With a real model, everything at once equals each alone.
class RealPooling : public testing::TestWithParam<model::Compute> {};

TEST_P(RealPooling, DoesNotDependOnWhatRunsBeside) {
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  constexpr int kMembers = 2;
  ThreadTeam team(kMembers);
  Result<std::unique_ptr<model::Model>> loaded =
      model::Model::load(*card::ModelCard::open(card::default_model()),
                         {.compute = GetParam(), .rows_max = 128, .context_max = 512}, ops, team);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  model::Model& model = **loaded;
  const auto make = [&] {
    return mixed_requests(48, model.spec().vocab_size, model.spec().hidden_size);
  };
  RunnerOptions options;
  options.members = kMembers;
  options.kv_format = kernels::FloatType::kF32;
  options.engine.prefix_cache = false;
  options.engine.step_tokens_max = 128;
  options.engine.running_max = 1;
  const Requests alone = make();
  run(model, ops, options, alone);
  options.engine.running_max = 32;
  for (const int32_t pages : {16, 400}) {
    for (const bool prefix_cache : {false, true}) {
      SCOPED_TRACE("pages " + std::to_string(pages) + " cache " + std::to_string(prefix_cache));
      options.page_count = pages;
      options.engine.prefix_cache = prefix_cache;
      const Requests together = make();
      run(model, ops, options, together);
      for (size_t i = 0; i < alone.size(); ++i) {
        ASSERT_EQ(together[i]->pooled, alone[i]->pooled) << "request " << i;
        if (!alone[i]->prompt_log) continue;
        const TokenLog& expected = *alone[i]->prompt_log;
        const TokenLog& found = *together[i]->prompt_log;
        ASSERT_EQ(found.size(), expected.size());
        for (int32_t t = 0; t < found.size(); ++t)
          ASSERT_TRUE(same_bits(found[t], expected[t])) << "request " << i << " token " << t;
      }
    }
  }
}

// What a prompt's token is said to be worth is what an answer's is, where the arithmetic of both is
// the same.
TEST(PromptScores, AreThoseOfTheSameTextGenerated) {
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  ThreadTeam team(2);
  Result<std::unique_ptr<model::Model>> loaded = model::Model::load(
      *card::ModelCard::open(card::default_model()),
      {.compute = model::Compute::kExact, .rows_max = 64, .context_max = 512}, ops, team);
  ASSERT_TRUE(loaded.has_value()) << loaded.error().message;
  RunnerOptions options;
  options.members = 2;
  options.kv_format = kernels::FloatType::kF32;
  EngineRunner runner(**loaded, ops, options);
  const auto generated = answering({5, 900, 77, 4000}, 90, 3);
  ASSERT_TRUE(runner.handle().submit(generated.get()));
  runner.wait(*generated);
  ASSERT_EQ(generated->log.size(), 90);
  std::vector<int32_t> text = generated->prompt;
  for (int32_t i = 0; i < 90; ++i) text.push_back(generated->log[i].token);
  const auto scored = scoring(text, 0, 3);
  ASSERT_TRUE(runner.handle().submit(scored.get()));
  runner.wait(*scored);
  for (int32_t i = 0; i < 90; ++i) {
    EXPECT_TRUE(same_bits((*scored->prompt_log)[i + 3], generated->log[i])) << "token " << i;
    for (size_t t = 0; t < 3; ++t)
      EXPECT_TRUE(same_bits(scored->prompt_log->top(i + 3)[t], generated->log.top(i)[t]));
  }
}

INSTANTIATE_TEST_SUITE_P(Compute, RealPooling,
                         testing::Values(model::Compute::kFast, model::Compute::kExact),
                         [](const testing::TestParamInfo<model::Compute>& tested) {
                           return tested.param == model::Compute::kExact ? "Exact" : "Fast";
                         });

}  // namespace
}  // namespace weir::sched
