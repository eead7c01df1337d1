// Report: all that one run of the suite has found, as values; told as text, JSON and Markdown, and
// read back from JSON.
//
// Threads: values; pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "suite/figure.h"

namespace weir::suite {

// What was measured, and where. Empty and 0: not known, of a server at an address.
struct Setting {
  std::string model = {};
  std::string url = {};  // Empty: servers of the suite's own.
  std::string processor = {};
  std::string isa = {};
  std::string compute = {};
  std::string kv = {};
  int32_t threads = 0;
  bool quick = false;
  std::string version = {}, commit = {};
  std::string time = {};  // "2026-11-26 05:20 UTC"
};

struct PartRun {
  std::string name;
  double seconds = 0;
  double others = 0;  // Share of the machine's cores that other programs took meanwhile.
};

// A figure that is worse than in an older report.
struct Regression {
  std::string part, name;
  std::string what;  // "4100 tokens/s, was 5708: 28 % worse, 10 % is allowed"
};

struct Report {
  Setting setting = {};
  std::vector<PartRun> parts = {};
  std::vector<Figure> figures = {};
  std::string against = {};  // The older report's file; empty: nothing is compared.
  std::vector<Regression> regressions = {};

  int64_t count(Verdict verdict) const;
  bool passed() const { return count(Verdict::kFail) == 0 && regressions.empty(); }
};

// "SmolLM2-135M, amx on Intel(R) ..., 2 threads, compute fast, kv f16, weir 0.1.0 (5abe0cd)"
std::string setting_text(const Setting& setting);
// A line for each figure as it comes, and one above them.
std::string text_heading();
std::string text_line(const Figure& figure);
// What is said at the end: counts, what failed, regressions.
std::string summary_text(const Report& report);

std::string report_json(const Report& report);
std::string report_markdown(const Report& report);

// `name`: of the file, for errors, which say what was expected.
Result<Report> read_report(std::string_view json, const std::string& name);

}  // namespace weir::suite
