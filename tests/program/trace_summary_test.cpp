#include "commands/trace_summary.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>

#include "commands/bench_trace.h"

namespace weir {
namespace {

using trace::Kind;
using trace::Recorder;

// Two members, steps of 1,000 ticks of which 100 lie between two passes. Member 0 computes for 700
// and plans for 50; member 1 computes for 600 and waits for 300.
void record_steps(Recorder& recorder, int32_t rows, int count) {
  recorder.attach("engine");
  trace::Lane& engine = *trace::this_lane;
  recorder.attach("team 1");
  trace::Lane& other = *trace::this_lane;
  recorder.attach("network loop");
  trace::Lane& network = *trace::this_lane;
  Recorder::detach();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t t = i * 1000;
    engine.record({"plan", t + 100, t + 150, 0, Kind::kEngine});
    engine.record({"attention", t + 200, t + 900, 0, Kind::kKernel});
    engine.record({"forward", t + 50, t + 950, rows, Kind::kWhole});
    engine.record({"step", t, t + 1000, rows, Kind::kWhole});
    other.record({"attention", t + 50, t + 650, 0, Kind::kKernel});
    other.record({"barrier", t + 650, t + 950, 0, Kind::kWait});
    other.record({"forward", t + 50, t + 950, rows, Kind::kWhole});
    // A quarter of it after the pass has ended.
    network.record({"write", t + 910, t + 920, 0, Kind::kNetwork});
    network.record({"events", t + 890, t + 970, 0, Kind::kNetwork});
  }
}

TEST(TraceSummary, SharesTheMembersTimeOut) {
  Recorder recorder(256);
  record_steps(recorder, 4, 20);
  const Result<TraceSummary> found = TraceSummary::of(recorder, 4);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_EQ(found->members, 2);
  EXPECT_GE(found->steps, 18);
  EXPECT_NEAR(found->outside_kernels, 1 - (700 + 600) / 2000.0, 1e-9);
  EXPECT_NEAR(found->outside_kernels_median, 0.35, 1e-9);
  EXPECT_NEAR(found->idle_between, 0.1, 1e-9);
  EXPECT_NEAR(found->network_inside, 0.75, 1e-9);
  EXPECT_NEAR(found->engine_inside, 1, 1e-9);
  ASSERT_FALSE(found->ops.empty());
  EXPECT_EQ(found->ops[0].name, "attention");
  EXPECT_NEAR(found->ops[0].share, 0.65, 1e-9);
  double all = 0;
  for (const TraceSummary::Op& op : found->ops) all += op.share;
  EXPECT_NEAR(all, 0.95, 1e-9);  // Member 1 records nothing between its passes.
  EXPECT_NE(found->table().find("outside kernels 35.0 %"), std::string::npos) << found->table();
}

TEST(TraceSummary, AStepWhoseSpansWereOverwrittenDoesNotCount) {
  Recorder recorder(64);  // Of 20 steps the engine keeps 16, member 1 all.
  record_steps(recorder, 4, 20);
  const Result<TraceSummary> found = TraceSummary::of(recorder, 4);
  ASSERT_TRUE(found.has_value()) << found.error().message;
  EXPECT_LE(found->steps, 15);
  EXPECT_NEAR(found->outside_kernels, 0.35, 1e-9);
}

TEST(TraceSummary, ARunTooShortIsNoSteadyState) {
  Recorder recorder(64);
  record_steps(recorder, 4, 5);
  EXPECT_FALSE(TraceSummary::of(recorder, 4).has_value());
  EXPECT_FALSE(TraceSummary::of(recorder, 8).has_value());
}

// The compiled-in model, the whole server, two threads.
TEST(BenchTrace, WritesWhatNetworkLoopEngineAndTeamDid) {
  const std::string path = testing::TempDir() + "weir_trace_test.json";
  Options options;
  options.command = Command::kBench;
  options.threads = 2;
  options.trace = path;
  options.bench_decode = 64;
  options.json = true;
  const Result<void> traced = trace_serving(options, {1});
  ASSERT_TRUE(traced.has_value()) << traced.error().message;

  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  const Result<JsonDoc> doc = JsonDoc::parse(text);
  ASSERT_TRUE(doc.has_value()) << doc.error().message;
  std::set<std::string> threads, names;
  JsonArray events;
  ASSERT_EQ(doc->root()["traceEvents"].get(events), simdjson::SUCCESS);
  for (const JsonValue event : events) {
    const std::string name{std::string_view(event["name"])};
    if (name == "thread_name") threads.emplace(std::string_view(event["args"]["name"]));
    names.insert(name);
  }
  EXPECT_EQ(threads, (std::set<std::string>{"engine", "network loop", "team 1"}));
  for (const char* name :
       {"step",   "forward",      "embed",     "norm",    "qkv_proj",   "attention", "o_proj",
        "router", "gate_up_proj", "down_proj", "lm_head", "sample",     "barrier",   "publish",
        "inbox",  "plan",         "wake",      "events",  "detokenise", "write"})
    EXPECT_TRUE(names.contains(name)) << name;
  std::remove(path.c_str());
}

}  // namespace
}  // namespace weir
