// The engine with a fake model: every answer equals the one that the request gets alone, whatever
// runs beside it, in pools too small, with and without the prefix cache, with 1 to 3 team members.
#include "sched/engine.h"

#include <gtest/gtest.h>

#include <set>

#include "sched/random_load.h"

namespace weir::sched {
namespace {

TEST(Engine, OneRequestGetsItsAnswer) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), runner_options(1, 64, true));
  auto request = make_request({1, 2, 3}, 40);
  ASSERT_TRUE(runner.handle().submit(request.get()));
  runner.wait(*request);
  EXPECT_EQ(request->log.size(), 40);
  EXPECT_EQ(request->log.finish_reason(), FinishReason::kLength);
  EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
  EXPECT_GE(request->first_token, request->started);
}

TEST(Engine, LimitsByLengthCostNoRowAndAStopTokenCostsOne) {
  FakeModel model;
  auto request = make_request({1, 2, 3}, 20);
  {
    EngineRunner runner(model, test_ops(), runner_options(1, 64, true));
    ASSERT_TRUE(runner.handle().submit(request.get()));
    runner.wait(*request);
    runner.stop();
    EXPECT_EQ(model.rows(), 3 + 19);  // The last token is sampled, not computed.
  }
  FakeModel again;
  const int32_t stop = request->log[9].token;
  int32_t first = 0;  // Where it appears first.
  while (request->log[first].token != stop) ++first;
  auto stopped = make_request({1, 2, 3}, 20, greedy({stop}));
  EngineRunner runner(again, test_ops(), runner_options(1, 64, true));
  ASSERT_TRUE(runner.handle().submit(stopped.get()));
  runner.wait(*stopped);
  runner.stop();
  EXPECT_EQ(stopped->log.finish_reason(), FinishReason::kStop);
  EXPECT_EQ(stopped->log.size(), first);
  EXPECT_EQ(again.rows(), 3 + first + 1);
}

TEST(Engine, APromptLongerThanAStepIsComputedInSlices) {
  FakeModel model({.rows_max = 48});
  std::mt19937 rng(7);
  auto request = make_request(random_tokens(rng, 1000, 48), 5);
  EngineRunner runner(model, test_ops(), runner_options(2, 64, true));
  ASSERT_TRUE(runner.handle().submit(request.get()));
  runner.wait(*request);
  runner.stop();
  EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
  EXPECT_EQ(model.most_rows(), 48);
}

TEST(Engine, EqualPromptsSubmittedTogetherAreComputedOnce) {
  FakeModel model;
  std::mt19937 rng(3);
  const std::vector<int32_t> prompt = random_tokens(rng, 320, 48);
  Requests requests;
  for (uint64_t i = 0; i < 8; ++i) requests.push_back(make_request(prompt, 4, seeded(i)));
  EngineRunner runner(model, test_ops(), runner_options(1, 256, true));
  for (const auto& request : requests) ASSERT_TRUE(runner.handle().submit(request.get()));
  for (const auto& request : requests) runner.wait(*request);
  runner.stop();
  for (const auto& request : requests)
    EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
  // One computes 320 tokens, seven only the last page, whose last token must be computed.
  EXPECT_EQ(runner.handle().stats().prompt_tokens.value(), 320u + 7 * 32);
  EXPECT_EQ(runner.handle().stats().prefix_hits.value(), 7u * 288);
  EXPECT_EQ(runner.handle().stats().prefix_queries.value(), 8u * 320);
}

TEST(Engine, AFollowUpFindsThePagesOfPromptAndAnswer) {
  FakeModel model;
  std::mt19937 rng(4);
  EngineRunner runner(model, test_ops(), runner_options(1, 64, true));
  auto first = make_request(random_tokens(rng, 50, 48), 100);
  ASSERT_TRUE(runner.handle().submit(first.get()));
  runner.wait(*first);
  std::vector<int32_t> prompt = first->prompt;
  for (int32_t i = 0; i < first->log.size(); ++i) prompt.push_back(first->log[i].token);
  prompt.push_back(3);
  auto second = make_request(prompt, 10);
  ASSERT_TRUE(runner.handle().submit(second.get()));
  runner.wait(*second);
  EXPECT_EQ(second->cached_tokens, 128);  // 149 tokens were computed: 4 full pages.
  EXPECT_TRUE(has_answer(*second, reference_answer(model, *second)));
}

TEST(Engine, PromptsWithDifferentSaltsOrAdaptersShareNothing) {
  FakeModel model;
  // The model computes nothing with it: an address will do.
  const int stands_for_it = 0;
  const std::shared_ptr<const model::Adapter> some(
      std::shared_ptr<void>(), reinterpret_cast<const model::Adapter*>(&stands_for_it));
  std::set<const model::Adapter*> adapters;
  model.on_batch = [&](const model::Batch& batch) {
    for (const model::BatchSlice& slice : batch.slices) adapters.insert(slice.adapter);
  };
  std::mt19937 rng(4);
  EngineRunner runner(model, test_ops(), runner_options(1, 64, true));
  const std::vector<int32_t> prompt = random_tokens(rng, 100, 48);
  for (uint64_t salt = 0; salt < 3; ++salt)
    for (uint64_t key = 0; key < 2; ++key) {
      auto request = make_request(prompt, 4);
      request->cache_salt = salt;
      if (key > 0) request->adapter = some;
      request->adapter_key = key;
      ASSERT_TRUE(runner.handle().submit(request.get()));
      runner.wait(*request);
      EXPECT_EQ(request->cached_tokens, 0);
    }
  runner.stop();
  EXPECT_EQ(adapters, (std::set<const model::Adapter*>{nullptr, some.get()}));
}

TEST(Engine, AStepHasNoMoreAdaptersThanItMay) {
  FakeModel model;
  const int stand_for_them[3] = {};
  size_t most = 0;
  model.on_batch = [&](const model::Batch& batch) {
    std::set<const model::Adapter*> adapters;
    for (const model::BatchSlice& slice : batch.slices)
      if (slice.adapter != nullptr) adapters.insert(slice.adapter);
    most = std::max(most, adapters.size());
  };
  std::mt19937 rng(4);
  RunnerOptions options = runner_options(8, 256, true);
  options.engine.adapters_max = 2;
  EngineRunner runner(model, test_ops(), options);
  std::vector<std::unique_ptr<Request>> requests;
  for (int i = 0; i < 12; ++i) {
    requests.push_back(make_request(random_tokens(rng, 20, 48), 15));
    if (i % 4 == 3) continue;  // Without one.
    requests.back()->adapter = std::shared_ptr<const model::Adapter>(
        std::shared_ptr<void>(),
        reinterpret_cast<const model::Adapter*>(&stand_for_them[i % 4]));
    requests.back()->adapter_key = static_cast<uint64_t>(i % 4) + 1;
  }
  for (const auto& request : requests) ASSERT_TRUE(runner.handle().submit(request.get()));
  for (const auto& request : requests) {
    runner.wait(*request);
    EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
  }
  runner.stop();
  EXPECT_EQ(most, 2u);
}

TEST(Engine, LengthDependentRopeSharesOnlyEqualFrequencies) {
  FakeModel model({.original_context = 100});
  LoadOptions load{.seed = 9, .requests = 150, .prompt_max = 200};
  EngineStats stats;
  run_load(model, runner_options(2, 128, true), load, &stats);
  EXPECT_GT(stats.prefix_hits.value(), 0u);
}

// Prompts in steps, or in slabs of so many rows: those are computed some layers at a time between
// steps, and nobody else may write to their pages meanwhile, or read them. Layers that see the
// whole context, or a window only.
struct Kind {
  const char* name = "";
  FakeModelOptions model;
  int32_t checkpoints = 64;
};
const std::vector<Kind> kKinds = {
    {"Steps", {}},
    {"Slabs", {.slab_rows = 70}},
    {"StepsOneWindow", {.windows = {50}}},
    {"StepsWindowsAlone", {.windows = {70, 33}, .whole_context = false}},
    {"SlabsTwoWindows", {.slab_rows = 70, .windows = {100, 32}}},
    {"StepsStates", {.states = true}},
    {"StepsStatesAlone", {.whole_context = false, .states = true}},
    {"StepsStatesOneCheckpoint", {.states = true}, 1},
    {"SlabsStatesFewCheckpoints", {.slab_rows = 70, .states = true}, 3},
    {"SlabsStatesAndAWindow", {.slab_rows = 70, .windows = {40}, .states = true}},
};
class EngineLoad : public testing::TestWithParam<Kind> {
 protected:
  static EngineRunner::Options options(int members, int32_t page_count, bool prefix_cache) {
    EngineRunner::Options options = runner_options(members, page_count, prefix_cache);
    options.checkpoints = GetParam().checkpoints;
    return options;
  }
};

TEST_P(EngineLoad, GivesTheAnswersOfSingleRuns) {
  for (const bool prefix_cache : {true, false}) {
    for (const int members : {1, 2, 3}) {
      FakeModel model(GetParam().model);
      run_load(
          model, options(members, 256, prefix_cache),
          {.seed = static_cast<uint32_t>(members), .requests = 150 / members, .cancel_one_in = 5});
    }
  }
}

TEST_P(EngineLoad, InATinyPoolIsPreemptedAndGivesTheSameAnswers) {
  for (const bool prefix_cache : {true, false}) {
    for (const int members : {1, 2, 3}) {
      FakeModel model(GetParam().model);
      EngineStats stats;
      run_load(model, options(members, 12, prefix_cache),
               {.seed = 10 + static_cast<uint32_t>(members),
                .requests = 120 / members,
                .prompt_max = 100,
                .output_max = 200,
                .cancel_one_in = 9},
               &stats);
      EXPECT_GT(stats.preemptions.value(), 0u);
    }
  }
}

// Memory of pages goes back as soon as they are free, and cached ones are forgotten at once.
TEST_P(EngineLoad, GivesTheSameAnswersWhileMemoryGoesBack) {
  using namespace std::chrono_literals;
  for (const auto cached : {0us, 1us, 500us}) {
    for (const int32_t page_count : {12, 256}) {
      FakeModelOptions kept = GetParam().model;
      kept.kv_width = 16;
      FakeModel model(kept);
      EngineRunner::Options runner = options(2, page_count, true);
      runner.engine.keep = {.free = 1us, .cached = cached};
      run_load(
          model, runner,
          {.seed = 40, .requests = 80, .prompt_max = 100, .output_max = 100, .cancel_one_in = 9});
    }
  }
}

// Few run at once in a large pool, so that windows have far fewer pages than the spine.
TEST_P(EngineLoad, WithFewPagesOfWindowsGivesTheAnswersOfSingleRuns) {
  for (const bool prefix_cache : {true, false}) {
    FakeModel model(GetParam().model);
    EngineRunner::Options runner = options(2, 400, prefix_cache);
    runner.engine.running_max = 2;
    runner.engine.step_tokens_max = 40;
    run_load(
        model, runner,
        {.seed = 77, .requests = 80, .prompt_max = 600, .output_max = 200, .cancel_one_in = 9});
  }
}

// Sequences give way between a forced text and its computation, also where prompts are computed
// beside it.
TEST_P(EngineLoad, BoundToAGrammarGivesTheAnswersOfSingleRuns) {
  for (const int32_t page_count : {14, 256}) {
    FakeModel model(GetParam().model);
    run_load(model, options(2, page_count, true),
             {.seed = 60,
              .requests = 60,
              .prompt_max = 100,
              .output_max = 200,
              .cancel_one_in = 9,
              .bound_one_in = 2});
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, EngineLoad, testing::ValuesIn(kKinds),
                         [](const testing::TestParamInfo<Kind>& kind) {
                           return std::string(kind.param.name);
                         });

// A system prompt of 2,000 tokens, answers that leave it, and a window of 512.
TEST(Engine, ABeginningLongerThanTheWindowIsComputedOnce) {
  FakeModel model({.windows = {512}});
  EngineRunner::Options options = runner_options(2, 4000, true);
  options.engine.running_max = 8;
  EngineRunner runner(model, test_ops(), options);
  std::mt19937 rng(12);
  const std::vector<int32_t> system = random_tokens(rng, 2000, 48);
  for (int32_t i = 0; i < 12; ++i) {
    std::vector<int32_t> prompt = system;
    const std::vector<int32_t> own = random_tokens(rng, 30 + 100 * i, 48);
    prompt.insert(prompt.end(), own.begin(), own.end());
    const auto request = make_request(std::move(prompt), 300);
    ASSERT_TRUE(runner.handle().submit(request.get()));
    runner.wait(*request);
    EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
    EXPECT_GE(request->cached_tokens, i == 0 ? 0 : 1900);
  }
  runner.stop();
  const EngineStats& stats = runner.handle().stats();
  EXPECT_EQ(stats.window_pages_held.value(), 0);
  EXPECT_LE(stats.window_pages.value(), 8 * (16 + 2) + 16 + 500);
}

TEST(Engine, PromptsInSlabsLeaveOthersTheirSteps) {
  FakeModel model({.slab_rows = 64});
  EngineRunner runner(model, test_ops(), runner_options(1, 256, true));
  auto talker = make_request({1, 2, 3}, 1000);
  ASSERT_TRUE(runner.handle().submit(talker.get()));
  while (talker->log.size() < 5) std::this_thread::yield();
  std::mt19937 rng(3);
  auto reader = make_request(random_tokens(rng, 3000, 48), 5);
  ASSERT_TRUE(runner.handle().submit(reader.get()));
  runner.wait(*reader);
  runner.wait(*talker);
  runner.stop();
  EXPECT_TRUE(has_answer(*talker, reference_answer(model, *talker)));
  EXPECT_TRUE(has_answer(*reader, reference_answer(model, *reader)));
  // 47 slabs of three steps each, and a step of the talker between any two.
  EXPECT_LT(model.steps(), 1000 + 47 + 20);
}

// A slice that the model could not compute ends its request with the reason, and no other's.
TEST(Engine, WhatCannotBeReadFailsItsRequestAndNoOther) {
  for (const int32_t slab_rows : {0, 90}) {
    for (const bool prefix_cache : {true, false}) {
      FakeModel model({.slab_rows = slab_rows});
      model.fails = [](const model::BatchSlice& slice) {
        return slice.prompt_length == 40 ||
               (slice.prompt_length == 41 && slice.first_position > 60);
      };
      EngineRunner runner(model, test_ops(), runner_options(2, 256, prefix_cache));
      std::mt19937 rng(5);
      const std::vector<int32_t> common = random_tokens(rng, 39, 48);
      Requests requests;
      for (int32_t i = 0; i < 60; ++i) {
        std::vector<int32_t> prompt = common;  // The first page is shared.
        const std::vector<int32_t> own = random_tokens(rng, 1 + i % 4, 48);
        prompt.insert(prompt.end(), own.begin(), own.end());
        requests.push_back(make_request(prompt, 50));
        ASSERT_TRUE(runner.handle().submit(requests.back().get()));
      }
      for (const auto& request : requests) runner.wait(*request);
      runner.stop();
      int right = 0;
      for (const auto& request : requests) {
        if (request->log.finish_reason() == FinishReason::kError) {
          EXPECT_EQ(request->failure, "disk on fire");
          continue;
        }
        EXPECT_GT(request->prompt.size(), 41u);
        EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
        ++right;
      }
      EXPECT_GT(right, 0);
      EXPECT_EQ(runner.handle().open(), 0);
    }
  }
}

TEST(Engine, WhatAGrammarForcesIsAppendedWithoutAStepForEach) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), runner_options(1, 64, true));
  const auto request = make_request({7, 8, 9}, 60);
  request->matcher = std::make_unique<grammar::Matcher>(letters_grammar());
  ASSERT_TRUE(runner.handle().submit(request.get()).has_value());
  runner.wait(*request);
  runner.stop();
  EXPECT_EQ(request->log.size(), 60);
  EXPECT_GT(runner.handle().stats().forced_tokens.value(), 40u);
  EXPECT_LT(model.steps(), 30);
  const Answer expected =
      reference_answer(model, *request, std::make_unique<grammar::Matcher>(letters_grammar()));
  EXPECT_TRUE(has_answer(*request, expected));
}

// Pools of all sizes, so that sequences are preempted between a forced text and its computation.
TEST(Engine, RandomLoadBoundToAGrammarGivesTheAnswersOfSingleRuns) {
  for (const int members : {1, 2, 3}) {
    for (const int32_t pages : {12, 20, 256}) {
      FakeModel model;
      EngineStats stats;
      run_load(model, runner_options(members, pages, members != 2),
               {.seed = 50 + static_cast<uint32_t>(members),
                .requests = 120 / members,
                .prompt_max = 100,
                .output_max = 200,
                .cancel_one_in = 9,
                .bound_one_in = 2},
               &stats);
      EXPECT_GT(stats.forced_tokens.value(), 100u);
      EXPECT_TRUE(pages > 12 || stats.preemptions.value() > 0);
    }
  }
}

TEST(Engine, CancelledRequestsEndAndGiveTheirPagesBack) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), runner_options(1, 160, true));
  Requests requests;
  for (int i = 0; i < 20; ++i) {
    requests.push_back(make_request({1, 2, i}, 3000));
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
  }
  while (requests[0]->log.size() < 5) std::this_thread::yield();
  for (const auto& request : requests) runner.handle().cancel(request.get());
  for (const auto& request : requests) runner.wait(*request);
  for (const auto& request : requests) {
    EXPECT_EQ(request->log.finish_reason(), FinishReason::kCancelled);
    EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
    runner.handle().cancel(request.get());  // Too late: nothing happens.
  }
  auto last = make_request({1, 2, 3}, 4);
  ASSERT_TRUE(runner.handle().submit(last.get()));
  runner.wait(*last);
  EXPECT_EQ(last->log.finish_reason(), FinishReason::kLength);
  runner.stop();
  EXPECT_EQ(runner.handle().stats().kv_usage.value(), 0);
}

TEST(Engine, StopEndsEverythingAndRefusesMore) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), runner_options(2, 64, true));
  Requests requests;
  for (int i = 0; i < 30; ++i) {
    requests.push_back(make_request({1, 2, i}, 1500));
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
  }
  runner.stop();
  for (const auto& request : requests)
    EXPECT_EQ(request->log.finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(runner.handle().open(), 0);
  const Result<void> refused = runner.handle().submit(requests[0].get());
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUnavailable);
}

TEST(Engine, DrainingRefusesNewRequestsAndFinishesTheOld) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), runner_options(1, 64, true));
  auto old = make_request({1, 2}, 300);
  auto late = make_request({1, 2}, 3);
  ASSERT_TRUE(runner.handle().submit(old.get()));
  runner.handle().drain();
  EXPECT_EQ(runner.handle().submit(late.get()).error().code, ErrorCode::kUnavailable);
  runner.wait(*old);
  EXPECT_EQ(old->log.finish_reason(), FinishReason::kLength);
}

TEST(Engine, AFullQueueIsOverloaded) {
  FakeModel model;
  EngineRunner::Options options = runner_options(1, 512, true);
  options.engine.queue_max = 12;
  EngineRunner runner(model, test_ops(), options);
  Requests requests;
  for (int i = 0; i < 12; ++i) {
    requests.push_back(make_request({1, 2, i}, 4000));
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
  }
  auto more = make_request(std::vector<int32_t>{1}, 1);
  EXPECT_EQ(runner.handle().submit(more.get()).error().code, ErrorCode::kOverloaded);
  runner.handle().cancel(requests[3].get());
  runner.wait(*requests[3]);
  EXPECT_TRUE(runner.handle().submit(more.get()));
  runner.stop();
}

TEST(Engine, WhatCanNeverFitIsRefusedAtSubmission) {
  FakeModel model({.context_max = 400});
  EngineRunner runner(model, test_ops(), runner_options(1, 5, true));
  EXPECT_EQ(runner.handle().max_tokens_fit(), 160);
  auto large = make_request(std::vector<int32_t>(100, 1), 61);
  EXPECT_EQ(runner.handle().submit(large.get()).error().code, ErrorCode::kContextLength);
  auto foreign = make_request({1, 48}, 2);
  EXPECT_EQ(runner.handle().submit(foreign.get()).error().code, ErrorCode::kInvalid);
  auto empty = make_request(std::vector<int32_t>(), 2);
  EXPECT_EQ(runner.handle().submit(empty.get()).error().code, ErrorCode::kInvalid);
  auto fits = make_request(std::vector<int32_t>(100, 1), 60);
  ASSERT_TRUE(runner.handle().submit(fits.get()));
  runner.wait(*fits);
  EXPECT_TRUE(has_answer(*fits, reference_answer(model, *fits)));
}

// A finished request may be freed at once, and another may lie at its address.
TEST(Engine, RequestsMayBeFreedAsSoonAsTheirLogIsFinished) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), runner_options(2, 64, true));
  std::mt19937 rng(5);
  Requests open(8);
  for (int i = 0; i < 600; ++i) {
    std::unique_ptr<Request>& place = open[rng() % open.size()];
    if (place) {
      if (rng() % 3 == 0) runner.handle().cancel(place.get());
      runner.wait(*place);
    }
    place = make_request(random_tokens(rng, 1 + static_cast<int32_t>(rng() % 40), 48),
                         1 + static_cast<int32_t>(rng() % 12), random_params(rng));
    ASSERT_TRUE(runner.handle().submit(place.get()));
  }
  for (const auto& request : open)
    if (request) runner.wait(*request);
  runner.stop();
}

TEST(Engine, ManyThreadsSubmitAndCancelAtOnce) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), runner_options(2, 64, true));
  std::atomic<int> wrong{0};
  std::vector<std::thread> clients;
  for (uint32_t id = 0; id < 4; ++id) {
    clients.emplace_back([&, id] {
      std::mt19937 rng(id);
      for (int i = 0; i < 60; ++i) {
        auto request = make_request(random_tokens(rng, 1 + static_cast<int32_t>(rng() % 60), 48),
                                    1 + static_cast<int32_t>(rng() % 30), random_params(rng));
        if (!runner.handle().submit(request.get())) continue;
        if (rng() % 4 == 0) runner.handle().cancel(request.get());
        runner.wait(*request);
        wrong += has_answer(*request, reference_answer(model, *request)) ? 0 : 1;
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Engine, WakesTheReaderOnceAStep) {
  FakeModel model;
  EngineRunner runner(model, test_ops(), runner_options(1, 256, true));
  Requests requests;
  for (int i = 0; i < 10; ++i) {
    requests.push_back(make_request({1, 2, i}, 100));
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
  }
  for (const auto& request : requests) runner.wait(*request);
  runner.stop();
  const EngineStats& stats = runner.handle().stats();
  EXPECT_LE(stats.wakes.value(), stats.steps.value());
  EXPECT_EQ(runner.wakes(), stats.wakes.value() + 1);  // And once when it stopped.
  EXPECT_EQ(stats.generated_tokens.value(), 1000u);
}

}  // namespace
}  // namespace weir::sched
