// The page of /metrics beside the list of the reference (expert-streaming, 11.8), name by name.
#include "ssd/expert_metrics.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "ssd/small_store.h"

namespace weir::ssd {
namespace {

// By name and labels.
std::map<std::string, double> samples_of(ExpertPage& page) {
  std::string text;
  page.render(text);
  std::map<std::string, double> samples;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) continue;
    const size_t space = line.rfind(' ');
    EXPECT_TRUE(samples.emplace(line.substr(0, space), std::stod(line.substr(space + 1))).second)
        << line;
  }
  return samples;
}

std::unique_ptr<Disk> any_disk() { return std::move(*Disk::create({.uring = false})); }

class ExpertMetrics : public testing::Test {
 protected:
  // Two tokens alike, one other, then two sequences with three experts a layer between them.
  void run() {
    for (const auto& row : std::vector<std::vector<int32_t>>{{0, 1}, {0, 1}, {2, 3}})
      EXPECT_EQ(small_.step({row}), "");
    EXPECT_EQ(small_.step({{0, 1}, {1, 4}}), "");
    // What is recorded last is not seen yet, and the first quarter is not counted.
    for (int i = 0; i < 20; ++i) EXPECT_EQ(small_.step({{i % 8, (i + 1) % 8}}), "");
  }

  SmallStore small_{any_disk(), 12};
  ExpertPage page_{small_.store(), 1e9};
};

TEST_F(ExpertMetrics, HasEveryNameOfTheReference) {
  run();
  const std::map<std::string, double> samples = samples_of(page_);
  for (const char* name :
       {"weir_moe_expert_requests_total{result=\"ready\"}",
        "weir_moe_expert_requests_total{result=\"inflight\"}",
        "weir_moe_expert_requests_total{result=\"absent\"}", "weir_moe_hit_ratio",
        "weir_moe_late_hit_ratio", "weir_moe_oracle_ratio",
        "weir_moe_disk_read_bytes_total{class=\"demand\"}",
        "weir_moe_disk_read_bytes_total{class=\"speculative\"}",
        "weir_moe_disk_read_bytes_total{class=\"prefill\"}",
        // No class `warmup`: nothing is read before somebody asks or guesses.
        "weir_moe_bytes_per_token", "weir_moe_stall_ms_per_token",
        // p50 and p95 of the former: quantiles of this histogram, for one sequence.
        "weir_moe_step_stall_ms_count", "weir_moe_stall_share", "weir_moe_disk_busy_ratio",
        "weir_moe_disk_gbps", "weir_moe_disk_eff_ratio",
        "weir_moe_read_latency_ms_count{class=\"demand\"}", "weir_moe_inflight_bytes",
        // spec_*_total: in bytes, by source of the guess.
        "weir_moe_spec_issued_bytes_total{source=\"lookahead\"}",
        "weir_moe_spec_used_bytes_total{source=\"lookahead\"}",
        "weir_moe_spec_late_bytes_total{source=\"lookahead\"}",
        "weir_moe_spec_wasted_bytes_total{source=\"lookahead\"}",
        "weir_moe_spec_dropped_bytes_total{source=\"lookahead\"}",
        // pred_recall{rank}: by source, of the best top_k together.
        "weir_moe_pred_recall{source=\"previous-token\"}",
        "weir_moe_pred_miss_recall{source=\"previous-token\"}", "weir_moe_evictions_total",
        "weir_moe_rereads_total", "weir_moe_slots{state=\"usable\"}", "weir_moe_budget_bytes",
        "weir_moe_union_factor{batch=\"1\"}", "weir_moe_io_errors_total{errno=\"EIO\"}",
        "weir_moe_crc_failures_total", "weir_moe_io_cpu_ms_per_gb"})
    EXPECT_TRUE(samples.contains(name)) << name;
  EXPECT_TRUE(std::ranges::any_of(
      samples, [](const auto& s) { return s.first.starts_with("weir_moe_io_mode{mode="); }));
}

TEST_F(ExpertMetrics, TheUnionIsCountedInExpertsOfOneToken) {
  run();
  const std::map<std::string, double> samples = samples_of(page_);
  EXPECT_EQ(samples.at("weir_moe_union_factor{batch=\"1\"}"), 1);
  EXPECT_EQ(samples.at("weir_moe_union_factor{batch=\"2\"}"), 1.5);
  EXPECT_FALSE(samples.contains("weir_moe_union_factor{batch=\"4\"}"));
}

// In turns through eight experts, of which four find a slot: what stays is never what comes next.
TEST_F(ExpertMetrics, TheOracleFindsMore) {
  EXPECT_FALSE(samples_of(page_).contains("weir_moe_oracle_ratio")) << "nothing was asked for";
  run();
  const OracleWindow::Rates rates = small_.store().oracle();
  EXPECT_GT(rates.demands, 50);
  EXPECT_GT(rates.oracle, rates.found);
  ExpertPage page(small_.store(), 0);
  const std::map<std::string, double> samples = samples_of(page);
  EXPECT_DOUBLE_EQ(samples.at("weir_moe_oracle_ratio"), rates.ratio());
  EXPECT_FALSE(samples.contains("weir_moe_disk_eff_ratio")) << "the disk was not measured";
}

TEST_F(ExpertMetrics, ProcessorTimeIsByBytesRead) {
  run();
  const std::map<std::string, double> samples = samples_of(page_);
  const double gb = 1e-9 * samples.at("weir_moe_disk_read_bytes_total{class=\"demand\"}");
  const double ms = samples.at("weir_moe_io_cpu_ms_per_gb") * gb;
  EXPECT_GT(ms, 0);
  EXPECT_NEAR(ms, 1e-6 * static_cast<double>(small_.store().io_cpu_time().count()), 1e-6);
}

TEST_F(ExpertMetrics, TheLineOfAMinuteIsOneReadableLine) {
  ExpertMinute minute;
  (void)minute.line(small_.store());
  run();
  const std::string line = minute.line(small_.store());
  EXPECT_TRUE(line.starts_with("tokens=25 in_memory=")) << line;
  EXPECT_NE(line.find(" of_oracle=0."), std::string::npos) << line;
  EXPECT_LT(line.size(), 200u) << line;
  EXPECT_EQ(minute.line(small_.store()), "") << "nothing has happened since";
}

}  // namespace
}  // namespace weir::ssd
