#include "base/metrics.h"

#include <gtest/gtest.h>

namespace weir {
namespace {

TEST(Histogram, CountsEachObservationInItsBucket) {
  Histogram histogram;
  histogram.observe(0.00005);
  histogram.observe(0.0001);  // On the bound: belongs below it.
  histogram.observe(0.5);
  histogram.observe(1e9);
  EXPECT_EQ(histogram.cumulative(0), 2u);
  EXPECT_EQ(histogram.count(), 4u);
  EXPECT_EQ(histogram.cumulative(Histogram::kBuckets - 1), 3u);
  for (int i = 1; i < Histogram::kBuckets; ++i)
    EXPECT_GT(histogram.upper_bound(i), histogram.upper_bound(i - 1));
}

TEST(Histogram, CountsCountsToo) {
  Histogram histogram(Histogram::Scale::kCounts);
  for (const double count : {0.0, 1.0, 2.0, 500.0, 1e6, 2e6}) histogram.observe(count);
  EXPECT_EQ(histogram.upper_bound(0), 1);
  EXPECT_EQ(histogram.upper_bound(Histogram::kBuckets - 1), 1e6);
  EXPECT_EQ(histogram.cumulative(0), 2u);
  EXPECT_EQ(histogram.cumulative(1), 3u);
  EXPECT_EQ(histogram.cumulative(Histogram::kBuckets - 1), 5u);
  EXPECT_EQ(histogram.sum(), 3'000'503);
}

TEST(Render, EscapesTheValuesOfLabels) {
  EXPECT_EQ(metric_label("model", "a\"b\\c\nd"), R"(model="a\"b\\c\nd")");
}

TEST(Render, WritesPrometheusText) {
  Counter counter;
  counter.add(3);
  std::string out;
  render(out, "weir_tokens_total", "Tokens.", counter, "model=\"m\"");
  EXPECT_EQ(out,
            "# HELP weir_tokens_total Tokens.\n# TYPE weir_tokens_total counter\n"
            "weir_tokens_total{model=\"m\"} 3\n");
  Histogram histogram;
  histogram.observe(0.001);
  out.clear();
  render(out, "weir_step_seconds", "Steps.", histogram);
  EXPECT_NE(out.find("weir_step_seconds_bucket{le=\"0.0001\"} 0\n"), std::string::npos);
  EXPECT_NE(out.find("weir_step_seconds_bucket{le=\"+Inf\"} 1\n"), std::string::npos);
  EXPECT_NE(out.find("weir_step_seconds_count 1\n"), std::string::npos);
}

}  // namespace
}  // namespace weir
