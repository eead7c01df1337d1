#include "base/trace.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "base/json.h"

namespace weir::trace {
namespace {

void record_nested(int count) {
  for (int i = 0; i < count; ++i) {
    const Scope step(Kind::kWhole, "step", 8);
    { const Scope kernel(Kind::kKernel, "attention"); }
    { const Scope wait(Kind::kWait, "barrier"); }
  }
}

TEST(Trace, AThreadThatIsNotAttachedRecordsNothing) {
  Recorder recorder(16);
  record_nested(3);
  recorder.attach("main");
  Recorder::detach();
  record_nested(3);
  ASSERT_EQ(recorder.lanes().size(), 1u);
  EXPECT_TRUE(recorder.lanes()[0]->spans().empty());
}

TEST(Trace, ALaneKeepsTheLatestSpansInTheOrderOfTheirEnds) {
  Recorder recorder(4);
  recorder.attach("main");
  record_nested(3);
  Recorder::detach();
  const std::vector<Span> spans = recorder.lanes()[0]->spans();
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_STREQ(spans[0].name, "step");
  EXPECT_STREQ(spans[1].name, "attention");
  EXPECT_STREQ(spans[2].name, "barrier");
  EXPECT_STREQ(spans[3].name, "step");
  EXPECT_EQ(spans[3].rows, 8);
  for (size_t i = 1; i < spans.size(); ++i) EXPECT_LE(spans[i - 1].end, spans[i].end);
  EXPECT_LE(spans[3].begin, spans[1].begin);
}

TEST(Trace, TicksAreTurnedIntoSeconds) {
  Recorder recorder(4);
  const auto begin = std::chrono::steady_clock::now();
  const int64_t from = ticks();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  const double measured = recorder.seconds(ticks() - from);
  const std::chrono::duration<double> lived = std::chrono::steady_clock::now() - begin;
  // Wide: the thread may lose its core between two looks at a clock.
  EXPECT_GE(measured, 0.025);
  EXPECT_LE(measured, lived.count() * 2);
}

// What a viewer relies on: every thread has a name, begins ascend, spans nest and never end before
// they begin.
TEST(Trace, TheFileIsOneThatAViewerAccepts) {
  Recorder recorder(64);
  recorder.attach("a \"quoted\" thread");
  record_nested(5);
  std::thread other([&] {
    recorder.attach("other");
    record_nested(40);  // More than are kept: the first spans' enclosing ones are lost.
  });
  other.join();
  Recorder::detach();
  const Result<JsonDoc> doc = JsonDoc::parse(recorder.json());
  ASSERT_TRUE(doc.has_value()) << doc.error().message;

  std::map<int64_t, std::string> names;
  std::map<int64_t, double> latest;
  std::map<int64_t, std::vector<double>> open;  // Ends of the spans that enclose the next.
  std::map<int64_t, int> count;
  JsonArray events;
  ASSERT_EQ(doc->root()["traceEvents"].get(events), simdjson::SUCCESS);
  for (const JsonValue event : events) {
    const std::string_view phase = event["ph"];
    const int64_t thread = event["tid"];
    EXPECT_EQ(int64_t(event["pid"]), 1);
    if (phase == "M") {
      if (std::string_view(event["name"]) == "thread_name")
        names[thread] = std::string_view(event["args"]["name"]);
      continue;
    }
    ASSERT_EQ(phase, "X");
    const double begin = event["ts"], duration = event["dur"];
    EXPECT_GE(duration, 0);
    EXPECT_GE(begin, latest[thread]);
    latest[thread] = begin;
    std::vector<double>& ends = open[thread];
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    if (!ends.empty()) {
      EXPECT_LE(begin + duration, ends.back() + 1e-3);  // Rounding of doubles.
    }
    ends.push_back(begin + duration);
    ++count[thread];
    EXPECT_FALSE(std::string_view(event["cat"]).empty());
  }
  EXPECT_EQ(names[1], "a \"quoted\" thread");
  EXPECT_EQ(names[2], "other");
  EXPECT_EQ(count[1], 15);
  EXPECT_EQ(count[2], 64);
}

TEST(Trace, AFileThatCannotBeWrittenIsNamed) {
  const Recorder recorder(4);
  const Result<void> written = recorder.write("/nonexistent/trace.json");
  ASSERT_FALSE(written.has_value());
  EXPECT_NE(written.error().message.find("/nonexistent/trace.json"), std::string::npos);
}

}  // namespace
}  // namespace weir::trace
