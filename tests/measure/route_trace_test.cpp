// Route traces: what is written is read again, and whatever else is read is refused by line.
#include "measure/route_trace.h"

#include <gtest/gtest.h>

#include <random>

#include "ssd/replay.h"

namespace weir::measure {
namespace {

RouteTrace small_trace() {
  RoutingParams params;
  params.layers = 3;
  params.experts = 16;
  params.top_k = 2;
  return ssd::modelled_trace(RoutingModel(params, 1), 2, 5, 3, 4);
}

std::string problem_of(std::string_view text) {
  const Result<RouteTrace> trace = RouteTrace::parse(text, "t");
  return trace ? "" : trace.error().message;
}

TEST(RouteTrace, WhatIsWrittenIsReadAgain) {
  const RouteTrace trace = small_trace();
  const std::string text = to_text(trace);
  const Result<RouteTrace> again = RouteTrace::parse(text, "t");
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->rows().size(), trace.rows().size());
  EXPECT_EQ(trace.rows().size(), 5u * 3 + 4 * 3 * 2);
  EXPECT_EQ(to_text(*again), text);
}

TEST(RouteTrace, RefusesWhatItCannotMeanAndNamesTheLine) {
  const std::string head = "weir-route-trace 1 2 8 2\n";
  EXPECT_EQ(problem_of(head), "");
  EXPECT_EQ(problem_of(head + "d 0 0 0 3 4\n\nd 0 1 0 7 0\r\n"), "");
  const std::string expected = "expected `weir-route-trace 1 LAYERS EXPERTS TOP_K`";
  for (const char* bad :
       {"", "weir-route-trace 2 2 8 2", "weir-route-trace 1 2 8", "weir-route-trace 1 2 8 9",
        "weir-route-trace 1 0 8 2", "weir-route-trace 1 2 99999 2", "weir-route-trace 1 2 8 2 1",
        "d 0 0 0 1"})
    EXPECT_EQ(problem_of(bad), "t:1: " + expected) << bad;
  EXPECT_EQ(problem_of(head + "x 0 0 0 1 2"), "t:2: expected d, p or a");
  EXPECT_EQ(problem_of(head + "d 0 0"), "t:2: expected step, layer and sequence");
  EXPECT_EQ(problem_of(head + "d 99999999999 0 0 1 2"), "t:2: expected step, layer and sequence");
  EXPECT_EQ(problem_of(head + "d 0 2 0 1 2"), "t:2: expected a layer below 2, found 2");
  EXPECT_EQ(problem_of(head + "d 0 -1 0 1 2"), "t:2: expected a layer below 2, found -1");
  EXPECT_EQ(problem_of(head + "d 0 0 0 1"), "t:2: expected 2 experts, found 1");
  EXPECT_EQ(problem_of(head + "d 0 0 0 1 2 3"), "t:2: expected 2 experts, found 3");
  EXPECT_EQ(problem_of(head + "d 0 0 0 1 8"), "t:2: expected an expert below 8, found 8");
  EXPECT_EQ(problem_of(head + "d 0 0 0 1 1"), "t:2: found expert 1 twice");
  EXPECT_EQ(problem_of(head + "d 0 0 0 1 x"), "t:2: expected an expert");
  EXPECT_EQ(problem_of(head + "d 0 1 0 1 2\nd 0 0 0 1 2"),
            "t:3: expected a step and layer not before those of the last line");
  EXPECT_EQ(problem_of(head + "a 0 0 0 1 2 3 4 5 6 7 0 1"), "t:2: expected 8 experts, found 9");
}

TEST(RouteTrace, SurvivesBytesChangedAtRandom) {
  const std::string text = to_text(small_trace());
  std::mt19937 random(5);
  int32_t refused = 0;
  for (int32_t round = 0; round < 3000; ++round) {
    std::string broken = text;
    for (uint32_t i = random() % 4; i < 4; ++i)
      broken[random() % broken.size()] = static_cast<char>("0123456789 \n-dpaX\xff"[random() % 18]);
    if (random() % 4 == 0) broken.resize(random() % broken.size());
    const Result<RouteTrace> trace = RouteTrace::parse(broken, "t");
    refused += trace ? 0 : 1;
    if (!trace) {
      EXPECT_TRUE(trace.error().message.starts_with("t:"));
    } else {
      EXPECT_TRUE(RouteTrace::parse(to_text(*trace), "t").has_value());
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(RouteTrace, AChunkOfAPromptBecomesATokenAStep) {
  RouteTrace chunks(2, 4, 1);
  const auto add = [&](RouteKind kind, int32_t step, int32_t layer, int32_t expert) {
    chunks.add(kind, step, layer, 7, std::vector<int32_t>{expert});
  };
  for (int32_t layer = 0; layer < 2; ++layer)
    for (int32_t token = 0; token < 3; ++token)
      add(RouteKind::kPrompt, 5, layer, (token + layer) % 4);
  add(RouteKind::kDecode, 6, 0, 3);
  add(RouteKind::kLookahead, 6, 1, 2);
  add(RouteKind::kDecode, 6, 1, 0);
  EXPECT_EQ(to_text(as_generated(chunks)),
            "weir-route-trace 1 2 4 1\n"
            "d 0 0 7 0\nd 0 1 7 1\nd 1 0 7 1\nd 1 1 7 2\nd 2 0 7 2\nd 2 1 7 3\n"
            "d 3 0 7 3\nd 3 1 7 0\n");
}

}  // namespace
}  // namespace weir::measure
