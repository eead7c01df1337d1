// Conversations with models that have states: each turn begins with all that was said before, and
// goes on from a checkpoint of it. What it computes is bounded, and what it answers is what it
// would answer with nothing remembered, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <random>
#include <vector>

#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "kv/checkpoints.h"
#include "measure/modelled_disk.h"
#include "sched/engine_runner.h"
#include "sched/fake_model.h"
#include "ssd/expert_store.h"

namespace weir::sched {
namespace {

using Tokens = std::vector<int32_t>;
using Requests = std::vector<std::unique_ptr<Request>>;

constexpr int32_t kAnswer = 150;
constexpr int32_t kOwn = 70;  // What the user says in a turn.
// Of what was said before, a turn computes at most this: the next checkpoint lies so far back, and
// one block is not whole.
constexpr int32_t kAgain = kv::kCheckpointTokens + kv::kPageTokens;

Tokens random_tokens(std::mt19937& rng, int32_t count, int32_t vocab) {
  Tokens tokens(static_cast<size_t>(count));
  for (int32_t& token : tokens) token = static_cast<int32_t>(rng() % static_cast<unsigned>(vocab));
  return tokens;
}

void append(Tokens& tokens, const Tokens& more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

std::unique_ptr<Request> make_request(Tokens prompt, int32_t answer = kAnswer) {
  sample::SamplingParams params;
  params.temperature = 0.8f;
  params.seed = prompt.size();
  auto request = std::make_unique<Request>(std::move(prompt), params, answer, /*logprobs=*/true);
  request->arrived = Clock::now();
  return request;
}

RunnerOptions runner_options(int32_t checkpoints) {
  RunnerOptions options;
  options.engine.step_tokens_max = 200;
  options.engine.running_max = 8;
  options.engine.queue_max = 64;
  options.page_count = 1000;
  options.checkpoints = checkpoints;
  options.members = 2;
  return options;
}

void expect_same(const Request& request, const Request& expected) {
  ASSERT_EQ(request.log.size(), expected.log.size());
  for (int32_t i = 0; i < request.log.size(); ++i) {
    ASSERT_EQ(request.log[i].token, expected.log[i].token) << "token " << i;
    ASSERT_EQ(std::bit_cast<uint32_t>(request.log[i].logprob),
              std::bit_cast<uint32_t>(expected.log[i].logprob))
        << "token " << i;
  }
}

struct Kind {
  const char* name = "";
  bool real = false;
  int32_t slab_rows = 0;
  int32_t checkpoints = 64;
  model::Compute compute = model::Compute::kExact;
};
const std::vector<Kind> kKinds = {
    {.name = "Fake"},
    {.name = "FakeTiny", .checkpoints = 2},
    {.name = "FakeSlabs", .slab_rows = 700},
    {.name = "FakeSlabsTiny", .slab_rows = 700, .checkpoints = 2},
    {.name = "Real", .real = true},
    {.name = "RealFast", .real = true, .compute = model::Compute::kFast},
    {.name = "RealTiny", .real = true, .checkpoints = 2},
    {.name = "RealSlabs", .real = true, .slab_rows = 700},
    {.name = "RealSlabsFast", .real = true, .slab_rows = 700, .compute = model::Compute::kFast},
};

// A model of a kind, and one with nothing remembered to compare it with.
class Turns : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    ops_ = GetParam().real ? &kernels::ops_for(kernels::detect_isa()) : &test_ops();
    model_ = make_model();
    ASSERT_NE(model_, nullptr);
    alone_ = make_model();
    RunnerOptions options = runner_options(0);
    options.engine.prefix_cache = false;
    options.engine.running_max = 1;
    reference_ = std::make_unique<EngineRunner>(*alone_, *ops_, options);
  }

  std::unique_ptr<model::Model> make_model() const {
    if (!GetParam().real)
      return std::make_unique<FakeModel>(
          FakeModelOptions{.slab_rows = GetParam().slab_rows, .states = true});
    const auto card =
        card::ModelCard::open_folder(WEIR_SOURCE_DIR "/tests/data/families/qwen3_next");
    EXPECT_TRUE(card) << card.error().message;
    ThreadTeam team(2);
    const bool streams = GetParam().slab_rows > 0;
    auto model = model::Model::load(*card,
                                    {.compute = GetParam().compute,
                                     .rows_max = 200,
                                     .context_max = 4096,
                                     .stream_experts = streams,
                                     .slab_rows = GetParam().slab_rows},
                                    *ops_, team);
    EXPECT_TRUE(model) << model.error().message;
    if (!model) return nullptr;
    if (streams) {
      const Result<void> opened =
          (*model)->open_experts(std::make_unique<measure::ModelledDisk>(measure::DiskModel{}),
                                 {.memory = 1 << 20, .sequences_max = 72});
      EXPECT_TRUE(opened) << opened.error().message;
    }
    return std::move(*model);
  }

  void run(EngineRunner& runner, Request& request) {
    const Result<void> submitted = runner.handle().submit(&request);
    ASSERT_TRUE(submitted) << submitted.error().message;
    runner.wait(request);
    ASSERT_EQ(request.log.finish_reason(), FinishReason::kLength) << request.failure;
  }
  void expect_as_alone(const Request& request) {
    const auto expected = make_request(request.prompt, request.max_tokens);
    run(*reference_, *expected);
    EXPECT_EQ(expected->cached_tokens, 0);
    expect_same(request, *expected);
  }

  const kernels::Ops* ops_ = nullptr;
  std::unique_ptr<model::Model> model_, alone_;
  std::unique_ptr<EngineRunner> reference_;
};

TEST_P(Turns, ComputeLittleOfWhatWasSaidBefore) {
  EngineRunner runner(*model_, *ops_, runner_options(GetParam().checkpoints));
  std::mt19937 rng(5);
  for (const int32_t first : {700, 1300}) {
    Tokens said = random_tokens(rng, first, 48);
    int32_t answered = 0;
    for (int32_t turn = 0; turn < 4; ++turn) {
      const auto request = make_request(said);
      run(runner, *request);
      expect_as_alone(*request);
      if (turn > 0) {
        const auto before = static_cast<int32_t>(said.size()) - kOwn;
        // Generated tokens that take another form than a prompt's are computed once more.
        const bool differ = model_->prompts_differ_from().value_or(model_->context_max()) < before;
        const int32_t again = kAgain + (differ ? answered : 0);
        EXPECT_GE(request->cached_tokens, before - again) << "turn " << turn;
        if (GetParam().checkpoints > 2 && !differ) {
          EXPECT_GE(request->cached_tokens, before - 2 * kv::kPageTokens) << "turn " << turn;
        }
      }
      for (int32_t i = 0; i < request->log.size(); ++i) said.push_back(request->log[i].token);
      answered = request->log.size();
      append(said, random_tokens(rng, kOwn, 48));
    }
  }
  runner.stop();
  EXPECT_LE(runner.handle().stats().checkpoints.value(), GetParam().checkpoints);
  EXPECT_GT(runner.handle().stats().checkpoints.value(), 0);
}

// They begin alike: what they share is computed once, and less than one stretch between checkpoints
// once more.
TEST_P(Turns, AtOnceShareTheirBeginning) {
  RunnerOptions options = runner_options(GetParam().checkpoints);
  options.held = true;
  EngineRunner runner(*model_, *ops_, options);
  std::mt19937 rng(6);
  const Tokens system = random_tokens(rng, 1000, 48);
  Requests requests;
  for (int32_t i = 0; i < 6; ++i) {
    Tokens prompt = system;
    append(prompt, random_tokens(rng, kOwn + i, 48));
    requests.push_back(make_request(std::move(prompt), 20));
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
  }
  runner.begin();
  for (const auto& request : requests) runner.wait(*request);
  const auto computed = static_cast<int32_t>(runner.handle().stats().prompt_tokens.value());
  if (GetParam().checkpoints > 2) {
    EXPECT_LE(computed, 1000 + kAgain + 6 * (kOwn + 6 + kv::kPageTokens));
  }
  for (const auto& request : requests) expect_as_alone(*request);
}

// With blocks for two of five: those that have given way go on from what they have left.
TEST_P(Turns, ThatHaveGivenWayGoOn) {
  RunnerOptions options = runner_options(GetParam().checkpoints);
  options.held = true;
  options.page_count = 60;
  EngineRunner runner(*model_, *ops_, options);
  std::mt19937 rng(7);
  Requests requests;
  for (int32_t i = 0; i < 5; ++i) {
    requests.push_back(make_request(random_tokens(rng, 200 + 60 * i, 48), 600));
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
  }
  runner.begin();
  for (const auto& request : requests) runner.wait(*request);
  runner.stop();
  EXPECT_GT(runner.handle().stats().preemptions.value(), 0u);
  for (const auto& request : requests) expect_as_alone(*request);
}

INSTANTIATE_TEST_SUITE_P(Kinds, Turns, testing::ValuesIn(kKinds),
                         [](const testing::TestParamInfo<Kind>& kind) {
                           return std::string(kind.param.name);
                         });

// That a slice has failed is known when others have gone on from its checkpoint already.
TEST(Turn, WhatAFailedSliceHasLeftIsNobodys) {
  for (const int32_t slab_rows : {0, 700}) {
    FakeModel model({.slab_rows = slab_rows, .states = true});
    model.fails = [](const model::BatchSlice& slice) {
      return slice.prompt_length == 601 && slice.first_position + slice.rows >= 512;
    };
    RunnerOptions options = runner_options(64);
    options.held = true;
    EngineRunner runner(model, test_ops(), options);
    std::mt19937 rng(9);
    const Tokens common = random_tokens(rng, 600, 48);
    Requests requests;
    for (int32_t i = 0; i < 5; ++i) {
      Tokens prompt = common;
      append(prompt, random_tokens(rng, 1 + 200 * i, 48));
      requests.push_back(make_request(std::move(prompt), 30));
      ASSERT_TRUE(runner.handle().submit(requests.back().get()));
    }
    runner.begin();
    for (const auto& request : requests) runner.wait(*request);
    EXPECT_EQ(requests[0]->log.finish_reason(), FinishReason::kError);
    requests.push_back(make_request(requests[4]->prompt, 30));
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
    runner.wait(*requests.back());
    EXPECT_EQ(requests.back()->log.finish_reason(), FinishReason::kLength);
    for (const auto& request : requests) {
      if (request->log.finish_reason() == FinishReason::kError) {
        EXPECT_EQ(request->failure, "disk on fire");
        continue;
      }
      const Answer expected = reference_answer(model, *request);
      for (int32_t i = 0; i < request->log.size(); ++i)
        ASSERT_EQ(request->log[i].token, expected.tokens[static_cast<size_t>(i)].token);
    }
  }
}

// One that gives its place to another caller, while there is memory for all, goes on from the end
// of its own answer.
TEST(Turn, ThatHasGivenItsPlaceGoesOnFromItsOwnAnswer) {
  FakeModel model({.states = true});
  std::mt19937 rng(8);
  Requests requests;
  for (int32_t i = 0; i < 3; ++i)
    requests.push_back(make_request(random_tokens(rng, 90, 48), i < 2 ? 800 : 20));
  requests[2]->caller = 1;
  RunnerOptions options = runner_options(64);
  options.engine.running_max = 2;
  options.held = true;
  EngineRunner runner(model, test_ops(), options);
  int32_t from_answer = 0;
  bool submitted = false;
  model.on_batch = [&](const model::Batch& batch) {
    for (const model::BatchSlice& slice : batch.slices)
      if (slice.memory.restored_from >= 0 && slice.first_position > slice.prompt_length)
        ++from_answer;
    if (submitted || requests[1]->log.size() < 100) return;
    submitted = true;
    EXPECT_TRUE(runner.handle().submit(requests[2].get()));
  };
  ASSERT_TRUE(runner.handle().submit(requests[0].get()));
  ASSERT_TRUE(runner.handle().submit(requests[1].get()));
  runner.begin();
  for (const auto& request : requests) runner.wait(*request);
  runner.stop();
  EXPECT_EQ(runner.handle().stats().preemptions.value(), 1u);
  EXPECT_EQ(from_answer, 1);
  // Little of the answer is computed again, and nothing of the prompt.
  EXPECT_LE(runner.handle().stats().prompt_tokens.value(), 3u * 90 + 2 * kv::kPageTokens);
  for (const auto& request : requests) {
    const Answer expected = reference_answer(model, *request);
    ASSERT_EQ(static_cast<size_t>(request->log.size()), expected.tokens.size());
    for (int32_t i = 0; i < request->log.size(); ++i)
      ASSERT_EQ(request->log[i].token, expected.tokens[static_cast<size_t>(i)].token);
  }
}

}  // namespace
}  // namespace weir::sched
