// The report as text and as Markdown.
#include "suite/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace weir::suite {

namespace {

// Widths of the columns of text. Names and values are plain ASCII, by which they line up.
constexpr size_t kPartWidth = 9, kNameWidth = 52, kValueWidth = 20, kLimitWidth = 16;

// At least `width` wide, and one space from what follows.
std::string column(std::string text, size_t width) {
  text.append(width > text.size() ? width - text.size() : 1, ' ');
  return text;
}

std::string row(const std::string& part, const std::string& name, const std::string& value,
                const std::string& limit, const std::string& verdict) {
  return column(part, kPartWidth) + column(name, kNameWidth) + column(value, kValueWidth) +
         column(limit, kLimitWidth) + verdict + "\n";
}

std::string percent(double share) {
  return std::to_string(static_cast<int>(std::lround(100 * share))) + " %";
}

// In a cell of a table of Markdown.
std::string cell(std::string text) {
  for (size_t bar = 0; (bar = text.find('|', bar)) != std::string::npos; bar += 2)
    text.insert(bar, "\\");
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

int64_t Report::count(Verdict verdict) const {
  return std::ranges::count(figures, verdict, &Figure::verdict);
}

std::string setting_text(const Setting& s) {
  std::string text = s.model;
  if (!s.url.empty()) return text + " at " + s.url + (s.quick ? ", quick" : "");
  text += ", " + s.isa + " on " + s.processor + ", " + std::to_string(s.threads) + " threads";
  text += ", compute " + s.compute + ", kv " + s.kv + ", weir " + s.version + " (" + s.commit + ")";
  return text + (s.quick ? ", quick" : "");
}

std::string text_heading() { return row("part", "figure", "measured", "limit", "verdict"); }

std::string text_line(const Figure& figure) {
  return row(figure.part, figure.name, value_text(figure), limit_text(figure),
             verdict_text(figure));
}

std::string summary_text(const Report& report) {
  double seconds = 0, others = 0;
  for (const PartRun& part : report.parts) {
    seconds += part.seconds;
    others += part.seconds * part.others;
  }
  std::string text = std::to_string(report.count(Verdict::kPass)) + " passed, " +
                     std::to_string(report.count(Verdict::kFail)) + " failed, " +
                     std::to_string(report.count(Verdict::kNone)) + " without a limit, " +
                     std::to_string(report.count(Verdict::kSkipped)) + " skipped, in " +
                     number_text(seconds / 60) + " minutes; other programs took " +
                     percent(seconds > 0 ? others / seconds : 0) + " of the cores\n";
  for (const Figure& figure : report.figures)
    if (figure.verdict() == Verdict::kFail) text += "failed: " + text_line(figure);
  if (!report.against.empty())
    text += "against " + report.against + ": " +
            (report.regressions.empty() ? "nothing is worse"
                                        : std::to_string(report.regressions.size()) + " worse") +
            "\n";
  for (const Regression& worse : report.regressions)
    text += "worse: " + worse.part + ", " + worse.name + ": " + worse.what + "\n";
  return text;
}

std::string report_markdown(const Report& report) {
  std::string out = setting_text(report.setting) + "; " + report.setting.time + ".\n\n";
  out += "| part | figure | measured | limit | verdict |\n| --- | --- | --- | --- | --- |\n";
  for (const Figure& f : report.figures)
    out += "| " + cell(f.part) + " | " + cell(f.name) + " | " + cell(value_text(f)) + " | " +
           cell(limit_text(f)) + " | " + cell(verdict_text(f)) + " |\n";
  out += "\n| part | seconds | other programs had of the cores |\n| --- | --- | --- |\n";
  for (const PartRun& part : report.parts)
    out += "| " + cell(part.name) + " | " + number_text(part.seconds) + " | " +
           percent(part.others) + " |\n";
  out += "\n";
  if (!report.against.empty()) {
    out += "Against " + report.against + ":" +
           (report.regressions.empty() ? " nothing is worse.\n" : "\n\n");
    for (const Regression& worse : report.regressions)
      out += "- " + worse.part + ", " + worse.name + ": " + worse.what + "\n";
  }
  return out;
}

}  // namespace weir::suite
