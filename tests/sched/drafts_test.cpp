// Steps with drafts: whatever the drafts are, every answer is, to the bit, the one without them,
// and right drafts save steps.
#include <gtest/gtest.h>

#include "sched/random_load.h"

namespace weir::sched {
namespace {

using Way = MadeUpDrafts::Way;

constexpr Way kWays[] = {Way::kNoneRight, Way::kAllRight, Way::kLastWrong, Way::kRandom};

TEST(Drafts, ChangeNoAnswerOfARandomLoad) {
  uint32_t seed = 100;
  for (const Way way : kWays)
    for (const bool prefix_cache : {true, false})
      for (const int members : {1, 3}) {
        FakeModel model;
        run_load(model, runner_options(members, 256, prefix_cache),
                 {.seed = ++seed, .bound_one_in = 4, .drafts = way});
      }
}

TEST(Drafts, ChangeNoAnswerWhereTheControllerSaysHowMany) {
  uint32_t seed = 500;
  for (const Way way : kWays)
    for (const bool states : {false, true}) {
      FakeModel model({.states = states});
      run_load(model, runner_options(2, 96, true),
               {.seed = ++seed,
                .cancel_one_in = 9,
                .bound_one_in = 6,
                .callers = 3,
                .drafts = way,
                .measured_drafts = true});
    }
}

TEST(Drafts, ChangeNoAnswerWherePagesAreFewAndRequestsLeave) {
  uint32_t seed = 200;
  for (const Way way : kWays)
    for (const bool prefix_cache : {true, false}) {
      FakeModel model;
      EngineStats stats;
      run_load(model, runner_options(2, 14, prefix_cache),
               {.seed = ++seed, .cancel_one_in = 6, .bound_one_in = 4, .drafts = way}, &stats);
      EXPECT_GT(stats.preemptions.value(), 0u);
    }
}

// What gives way to another caller's is let in again in the same plan, but not before the step that
// still computes it has said what it took.
// A sequence that gives way is let in again, but not before the step that still computes it has
// said which drafts it took and what a grammar has forced.
TEST(Drafts, ChangeNoAnswerWhereCallersGiveWayToEachOther) {
  for (uint32_t seed = 1000; seed < 1060; ++seed) {
    FakeModel model;
    EngineRunner::Options options =
        runner_options(2, 10 + static_cast<int>(seed % 12), seed % 2 == 0);
    options.engine.running_max = static_cast<int32_t>(3 + seed % 9);
    run_load(model, options,
             {.seed = seed,
              .requests = 60,
              .prompt_max = seed % 3 == 0 ? 40 : 150,
              .bound_one_in = 1,
              .callers = static_cast<int32_t>(2 + seed % 4),
              .drafts = kWays[seed % 4]});
  }
}

TEST(Drafts, ChangeNoAnswerOfModelsWithWindowsSlabsAndLengthDependentRope) {
  uint32_t seed = 300;
  for (const Way way : {Way::kAllRight, Way::kRandom})
    for (const FakeModelOptions& options :
         {FakeModelOptions{.windows = {40}},
          FakeModelOptions{.windows = {33, 70}, .whole_context = false},
          FakeModelOptions{.slab_rows = 90}, FakeModelOptions{.original_context = 100}}) {
      FakeModel model(options);
      run_load(model, runner_options(2, 96, true),
               {.seed = ++seed, .cancel_one_in = 9, .bound_one_in = 8, .drafts = way});
    }
}

TEST(Drafts, ChangeNoAnswerOfModelsWithStates) {
  uint32_t seed = 400;
  for (const Way way : kWays)
    for (const int32_t page_count : {20, 256}) {
      FakeModel model({.states = true});
      EngineStats stats;
      run_load(model, runner_options(2, page_count, true),
               {.seed = ++seed, .cancel_one_in = 9, .bound_one_in = 6, .drafts = way}, &stats);
      EXPECT_GT(stats.prefix_hits.value(), 0u);
    }
}

TEST(Drafts, ChangeNoAnswerOfModelsWithStatesWhereCallersGiveWay) {
  for (uint32_t seed = 2000; seed < 2040; ++seed) {
    FakeModel model({.states = true});
    EngineRunner::Options options = runner_options(2, 10 + static_cast<int>(seed % 12), true);
    options.engine.running_max = static_cast<int32_t>(3 + seed % 9);
    run_load(model, options,
             {.seed = seed,
              .requests = 60,
              .bound_one_in = 2,
              .callers = static_cast<int32_t>(1 + seed % 4),
              .drafts = kWays[seed % 4]});
  }
}

// One request alone: with seven right drafts a step takes eight tokens.
TEST(Drafts, ThatAreRightSaveSteps) {
  FakeModel model;
  auto request = make_request({1, 2, 3}, 81);
  std::vector<int32_t> text;
  for (const TokenLogprob& token : reference_answer(model, *request).tokens)
    text.push_back(token.token);
  uint64_t verified = 0, taken = 0;
  const auto steps_with = [&](int32_t most, Way way) {
    MadeUpDrafts drafts(
        way, model.spec().vocab_size,
        [&](const Request&) -> const std::vector<int32_t>& { return text; },
        [most](const Request&) { return most; });
    EngineRunner::Options options = runner_options(1, 64, true);
    options.engine.speculation = {.sources = {&drafts}, .drafts_max = 15, .measured = false};
    EngineRunner runner(model, test_ops(), options);
    auto again = make_request({1, 2, 3}, 81);
    EXPECT_TRUE(runner.handle().submit(again.get()));
    runner.wait(*again);
    runner.stop();
    EXPECT_TRUE(has_answer(*again, reference_answer(model, *again)));
    verified = runner.handle().stats().drafts.value();
    taken = runner.handle().stats().drafts_taken.value();
    return runner.handle().stats().steps.value();
  };
  EXPECT_EQ(steps_with(0, Way::kAllRight), 81u);
  EXPECT_EQ(verified, 0u);
  // The prompt's step gives the first token; then eight a step, and the last few where the answer
  // may have come to its end already: a step waits for what the one before has taken.
  EXPECT_LE(steps_with(7, Way::kAllRight), 16u);
  EXPECT_GT(taken, 60u);
  EXPECT_EQ(taken, verified);
  EXPECT_LE(steps_with(7, Way::kLastWrong), 18u);
  EXPECT_GE(steps_with(7, Way::kNoneRight), 81u);
  EXPECT_GT(verified, 400u);
  EXPECT_EQ(taken, 0u);
}

}  // namespace
}  // namespace weir::sched
