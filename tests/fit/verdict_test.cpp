#include "fit/verdict.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace weir::fit {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kGiB = int64_t{1} << 30;

// 8 GiB of weights, 4 MiB of keys and values for 32 tokens.
Way dense() {
  return {.options = {},
          .model = {.packed_weights = 8 * kGiB,
                    .scratch = 100 * kMiB,
                    .kv_groups = {{.page_bytes = 4 * kMiB}},
                    .context_max = 131072,
                    .vocab_size = 128256,
                    .hidden_size = 4096},
          .flags = {}};
}

// 1 GiB beside 16 GiB of experts, of which a token needs 0.5.
Way mixture() {
  Way way = dense();
  way.model.packed_weights = kGiB;
  way.model.kv_groups[0].page_bytes = 3 * kMiB;
  way.model.experts = 16 * kGiB;
  way.model.expert_cycle = kGiB / 2;
  way.options.stream_experts = true;
  way.flags = "--stream-experts";
  return way;
}

Fit at(const Way& way, int64_t bytes) { return judge(way, {bytes, "--mem-limit"}); }

TEST(Verdict, FitsWhereFourOrdinarySequencesFindRoom) {
  const Way way = dense();
  // What else is planned depends on the limit: the boundary is found, and then it is sharp.
  int64_t limit = 8 * kGiB;
  while (at(way, limit).verdict != Verdict::kFits) limit += kMiB;
  const int64_t texts = kSequencesAtOnce * kContextOrdinary / 32 * 4 * kMiB;
  EXPECT_GE(limit, way.model.packed_weights + texts);
  EXPECT_LT(limit, way.model.packed_weights + texts + 3 * kGiB / 2);
  EXPECT_NE(at(way, limit - kMiB).verdict, Verdict::kFits);
  const Fit fit = at(way, limit);
  EXPECT_LE(fit.needed, fit.limit);
  EXPECT_EQ(fit.flags, "");
  EXPECT_EQ(fit.context_max, 131072);
  // One sequence may have the room of four, less what a longer answer takes beside its pages.
  EXPECT_NEAR(fit.context, 4 * kContextOrdinary, 4 * 32);
}

TEST(Verdict, ShortNamesTheLongestContextAndWhenItMustBeAskedFor) {
  const Way way = dense();
  bool asked = false, told = false;
  for (int64_t limit = 8 * kGiB; at(way, limit).verdict != Verdict::kFits; limit += 16 * kMiB) {
    const Fit fit = at(way, limit);
    Options options = way.options;
    if (fit.verdict == Verdict::kNo) {
      EXPECT_FALSE(told) << "more memory never makes it worse";
      options.ctx_size = kContextUseful;
      EXPECT_FALSE(plan_memory(options, {limit, ""}, way.model)) << limit / kMiB;
      continue;
    }
    ASSERT_EQ(fit.verdict, Verdict::kShort);
    told = true;
    EXPECT_GE(fit.context, kContextUseful);
    if (!fit.flags.empty()) {
      asked = true;
      EXPECT_LT(fit.context, kContextLeast);
      EXPECT_EQ(fit.flags, "--ctx-size " + std::to_string(fit.context));
      EXPECT_FALSE(plan_memory(options, {limit, ""}, way.model)) << "not without being asked";
      options.ctx_size = fit.context;
    }
    const auto plan = plan_memory(options, {limit, ""}, way.model);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->context_max, fit.context) << "what loading gives";
  }
  EXPECT_TRUE(asked);
  EXPECT_TRUE(told);
}

TEST(Verdict, NoSaysByHowMuch) {
  const Way way = dense();
  const Fit fit = at(way, 6 * kGiB);
  EXPECT_EQ(fit.verdict, Verdict::kNo);
  EXPECT_NEAR(static_cast<double>(fit.lacks) / kGiB, 3, 1);
  EXPECT_EQ(fit.lacks, fit.needed - 6 * kGiB);
  EXPECT_NE(describe(fit).find("more than the 6.0 GiB that --mem-limit allows"), std::string::npos)
      << describe(fit);
}

TEST(Verdict, AContextThatWasAskedForIsTheOneThatCounts) {
  Way way = dense();
  way.options.ctx_size = 65536;
  EXPECT_EQ(at(way, 16 * kGiB).verdict, Verdict::kNo) << "8 GiB of keys and values beside 8";
  EXPECT_EQ(at(way, 18 * kGiB).verdict, Verdict::kFits);
  EXPECT_EQ(at(way, 18 * kGiB).context, 65536);
  way.options.ctx_size = 512;
  EXPECT_EQ(at(way, 10 * kGiB).verdict, Verdict::kFits) << "of so short ones";
  EXPECT_EQ(at(way, 10 * kGiB).flags, "");
}

TEST(Verdict, ModelsOfShortTextsFitWithTheirOwnContext) {
  Way way = dense();
  way.model.context_max = 512;
  const Fit fit = at(way, 10 * kGiB);
  EXPECT_EQ(fit.verdict, Verdict::kFits);
  EXPECT_EQ(fit.context, 512);
}

TEST(Verdict, StreamsWhereExpertsHaveEightTimesWhatATokenNeeds) {
  const Way way = mixture();
  const Fit fit = at(way, 12 * kGiB);
  ASSERT_EQ(fit.verdict, Verdict::kStreams);
  EXPECT_EQ(fit.flags, "--stream-experts");
  EXPECT_GE(fit.expert_bytes, kExpertCyclesLeast * way.model.expert_cycle);
  const auto plan = plan_memory(way.options, {12 * kGiB, ""}, way.model);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->expert_bytes, fit.expert_bytes) << "what loading gives";
  EXPECT_EQ(plan->context_max, fit.context);
  EXPECT_EQ(at(way, 2 * kGiB).verdict, Verdict::kNo);
  EXPECT_TRUE(at(way, 4 * kGiB).crawls);
  EXPECT_EQ(at(way, 4 * kGiB).verdict, Verdict::kNo);
  EXPECT_FALSE(at(way, kGiB).crawls);
}

// The plan would give half of what is left to a long context.
TEST(Verdict, AShorterContextMayMakeRoomForExperts) {
  const Way way = mixture();
  bool shortened = false;
  for (int64_t limit = 4 * kGiB; limit < 12 * kGiB; limit += 64 * kMiB) {
    const Fit fit = at(way, limit);
    if (fit.verdict != Verdict::kStreams) continue;
    Options options = way.options;
    if (fit.flags != "--stream-experts") {
      shortened = true;
      EXPECT_EQ(fit.flags, "--stream-experts --ctx-size 4096");
      options.ctx_size = 4096;
    }
    const auto plan = plan_memory(options, {limit, ""}, way.model);
    ASSERT_TRUE(plan);
    EXPECT_GE(plan->expert_bytes, kExpertCyclesLeast * way.model.expert_cycle);
  }
  EXPECT_TRUE(shortened);
}

TEST(Verdict, ExpertsThatAllFindRoomNeedNoMoreThanThat) {
  Way way = mixture();
  way.model.experts = 100 * kMiB;
  way.model.expert_cycle = 90 * kMiB;
  EXPECT_EQ(at(way, 4 * kGiB).verdict, Verdict::kStreams);
  EXPECT_EQ(at(way, 4 * kGiB).expert_bytes, 100 * kMiB);
}

TEST(Verdict, OtherNumbersAreSaidToBe) {
  Way way = dense();
  way.less = true;
  way.flags = "--quantize 4";
  const Fit fit = at(way, 64 * kGiB);
  EXPECT_EQ(fit.verdict, Verdict::kWithLess);
  EXPECT_NE(describe(fit).find("with less: --quantize 4"), std::string::npos) << describe(fit);
}

TEST(Verdict, TheFirstWayThatRunsCountsElseTheNearest) {
  Fit no_far = at(dense(), kGiB), no_near = at(dense(), 7 * kGiB), fits = at(dense(), 64 * kGiB);
  EXPECT_EQ(best_of(std::array{no_far, no_near}).lacks, no_near.lacks);
  EXPECT_EQ(best_of(std::array{no_far, fits, at(mixture(), 12 * kGiB)}).verdict, Verdict::kFits);
  EXPECT_EQ(best_of(std::array{no_far, at(mixture(), 12 * kGiB), fits}).verdict, Verdict::kStreams);
}

TEST(Verdict, WhatIsNotReadIsUnknown) {
  const Fit fit = unknown("config.json: architectures: found \"X\"");
  EXPECT_EQ(word_of(fit.verdict), "unknown");
  EXPECT_EQ(describe(fit), "unknown: config.json: architectures: found \"X\"");
}

TEST(Verdict, MoreMemoryIsNeverWorse) {
  const auto rank = [](Verdict verdict) {
    return verdict == Verdict::kFits ? 2 : verdict == Verdict::kNo ? 0 : 1;
  };
  for (const Way& way : {dense(), mixture()}) {
    int before = 0;
    for (int64_t limit = 256 * kMiB; limit < 24 * kGiB; limit += 128 * kMiB) {
      const int now = rank(at(way, limit).verdict);
      EXPECT_GE(now, before) << limit / kMiB;
      before = now;
    }
  }
}

}  // namespace
}  // namespace weir::fit
