#include "suite/report.h"

#include <gtest/gtest.h>

#include <cmath>

namespace weir::suite {
namespace {

Report sample() {
  Report report;
  report.setting = {.model = "tiny",
                    .processor = "A processor",
                    .isa = "avx2",
                    .compute = "fast",
                    .kv = "f16",
                    .threads = 2,
                    .quick = true,
                    .version = "0.1.0",
                    .commit = "abc1234",
                    .time = "2026-11-26 05:20 UTC"};
  report.parts = {{"speed", 12.5, 0.25}, {"bits", 3, 0}};
  report.figures = {{.part = "speed",
                     .name = "prefill of 512",
                     .value = 5708.4,
                     .unit = "tokens/s",
                     .better = Better::kMore,
                     .tolerance = 0.1},
                    {.part = "bits", .name = "differ", .value = 0, .limit = at_most(0)},
                    {.part = "bits", .name = "lost", .value = 3, .limit = at_most(0)},
                    {.part = "bits", .name = "hash", .text = "0123abcd", .better = Better::kSame},
                    {.part = "matrix", .name = "a|b", .skipped = "no experts"},
                    {.part = "soak", .name = "the part", .failure = "not measured: gone"}};
  return report;
}

TEST(Figures, SayWhetherTheyKeepTheirLimit) {
  Figure figure = {.name = "x", .value = 5};
  EXPECT_EQ(figure.verdict(), Verdict::kNone);
  figure.limit = at_most(5);
  EXPECT_EQ(figure.verdict(), Verdict::kPass);
  figure.limit = at_most(4.9);
  EXPECT_EQ(figure.verdict(), Verdict::kFail);
  figure.limit = at_least(5.1);
  EXPECT_EQ(figure.verdict(), Verdict::kFail);
  figure.limit = at_least(5);
  EXPECT_EQ(figure.verdict(), Verdict::kPass);
  figure.skipped = "no";
  EXPECT_EQ(figure.verdict(), Verdict::kSkipped);
  figure.skipped.clear();
  figure.failure = "gone";
  EXPECT_EQ(figure.verdict(), Verdict::kFail);
}

TEST(Figures, SayTheFirstFaultWhereTheyFail) {
  Figure figure = {.name = "x", .value = 1, .limit = at_most(0), .note = "no JSON"};
  EXPECT_EQ(verdict_text(figure), "FAIL: no JSON");
  figure.value = 0;
  EXPECT_EQ(verdict_text(figure), "pass");
}

TEST(Figures, ANumberThatIsNoneKeepsNoLimit) {
  EXPECT_EQ((Figure{.value = NAN, .limit = at_most(5)}).verdict(), Verdict::kFail);
  EXPECT_EQ((Figure{.value = NAN, .limit = at_least(5)}).verdict(), Verdict::kFail);
}

TEST(Figures, ShowThreeDigits) {
  EXPECT_EQ(number_text(5708.4), "5708");
  EXPECT_EQ(number_text(0.31416), "0.314");
  EXPECT_EQ(number_text(99.94), "99.9");
  EXPECT_EQ(number_text(0), "0");
  EXPECT_EQ(number_text(-123.6), "-124");
}

TEST(Reports, AreALineAFigure) {
  const Report report = sample();
  EXPECT_EQ(text_line(report.figures[0]),
            "speed    prefill of 512                          "
            "            5708 tokens/s                       -\n");
  EXPECT_NE(text_line(report.figures[1]).find("at most 0       pass\n"), std::string::npos);
  EXPECT_NE(text_line(report.figures[2]).find(" FAIL\n"), std::string::npos);
  EXPECT_NE(text_line(report.figures[4]).find("skipped: no experts\n"), std::string::npos);
  EXPECT_NE(text_line(report.figures[5]).find("FAIL: not measured: gone\n"), std::string::npos);
}

TEST(Reports, AreSummedUp) {
  Report report = sample();
  EXPECT_FALSE(report.passed());
  const std::string text = summary_text(report);
  EXPECT_TRUE(
      text.starts_with("1 passed, 2 failed, 2 without a limit, 1 skipped, in 0.258 "
                       "minutes; other programs took 20 % of the cores\n"))
      << text;
  EXPECT_NE(text.find("failed: bits     lost"), std::string::npos) << text;
  EXPECT_EQ(text.find("against"), std::string::npos) << text;
  report.against = "old.json";
  EXPECT_NE(summary_text(report).find("against old.json: nothing is worse\n"), std::string::npos);
  report.regressions = {{"speed", "prefill of 512", "half of it"}};
  EXPECT_NE(summary_text(report).find("worse: speed, prefill of 512: half of it\n"),
            std::string::npos);
}

TEST(Reports, PassWhereNothingFailsAndNothingIsWorse) {
  Report report;
  report.figures = {{.part = "a", .name = "b", .value = 1, .limit = at_most(1)},
                    {.part = "a", .name = "c", .skipped = "no"}};
  EXPECT_TRUE(report.passed());
  report.regressions = {{"a", "b", "worse"}};
  EXPECT_FALSE(report.passed());
}

TEST(Reports, AreTablesInMarkdown) {
  Report report = sample();
  report.against = "old.json";
  report.regressions = {{"speed", "prefill of 512", "half of it"}};
  const std::string page = report_markdown(report);
  EXPECT_NE(page.find("| speed | prefill of 512 | 5708 tokens/s |  | - |\n"), std::string::npos)
      << page;
  EXPECT_NE(page.find("| matrix | a\\|b |  |  | skipped: no experts |\n"), std::string::npos)
      << page;
  EXPECT_NE(page.find("| speed | 12.5 | 25 % |\n"), std::string::npos) << page;
  EXPECT_NE(page.find("- speed, prefill of 512: half of it\n"), std::string::npos) << page;
}

TEST(Reports, ComeBackFromJson) {
  const Report report = sample();
  const std::string json = report_json(report);
  const Result<Report> back = read_report(json, "old.json");
  ASSERT_TRUE(back) << back.error().message << "\n" << json;
  EXPECT_EQ(setting_text(back->setting), setting_text(report.setting));
  EXPECT_EQ(back->setting.time, report.setting.time);
  ASSERT_EQ(back->figures.size(), report.figures.size());
  for (size_t i = 0; i < report.figures.size(); ++i) {
    EXPECT_EQ(text_line(back->figures[i]), text_line(report.figures[i]));
    EXPECT_EQ(back->figures[i].better, report.figures[i].better);
    EXPECT_EQ(back->figures[i].tolerance, report.figures[i].tolerance);
  }
}

TEST(Reports, AreRefusedWithWhatWasExpected) {
  const std::string good = report_json(sample());
  const auto without = [&](const std::string& from, const std::string& to) {
    std::string json = good;
    json.replace(json.find(from), from.size(), to);
    return json;
  };
  for (const std::string& json :
       {std::string(), std::string("[]"), std::string("{}"), good.substr(0, good.size() / 2),
        without("weir-suite", "another"), without("\"format_version\":1", "\"format_version\":2"),
        without("\"threads\":2", "\"threads\":\"2\""), without("\"figures\":[", "\"figures\":[1,"),
        without("\"value\":5708.4", "\"value\":\"x\""),
        without("\"better\":\"more\"", "\"better\":\"sideways\"")}) {
    const Result<Report> report = read_report(json, "old.json");
    ASSERT_FALSE(report) << json;
    EXPECT_TRUE(report.error().message.starts_with("old.json: expected a report of weir suite"))
        << report.error().message;
  }
}

}  // namespace
}  // namespace weir::suite
