#include "commands/suite.h"

#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/log.h"
#include "suite/comparison.h"
#include "suite/lm_eval.h"
#include "suite/machine_load.h"
#include "suite/part.h"
#include "suite/run.h"

namespace weir {

namespace {

// A report has some hundred figures of a few hundred bytes.
constexpr size_t kReportBytesMax = size_t{16} << 20;

// On standard error, and the figures on standard output: one may be read beside the other. On a
// terminal a line is written over the last one.
class Progress {
 public:
  void say(const std::string& text) {
    if (!terminal_) return;
    std::fprintf(stderr, "\r\x1b[K%s: %s", part_.c_str(), text.c_str());
    std::fflush(stderr);
  }
  void begin_part(const suite::Part& part, size_t index, size_t count, double minutes_left) {
    part_ = std::string(part.name);
    clear();
    std::fprintf(stderr, "[%zu/%zu] %s: %s (about %s minutes to the end)\n", index, count,
                 part_.c_str(), std::string(part.measures).c_str(),
                 suite::number_text(minutes_left).c_str());
  }
  void clear() const {
    if (terminal_) std::fprintf(stderr, "\r\x1b[K");
  }

 private:
  const bool terminal_ = ::isatty(STDERR_FILENO) == 1;
  std::string part_;
};

Result<void> write_report(const std::string& path, const std::string& text) {
  if (path.empty()) return {};
  if (path == "-") {
    std::fputs(text.c_str(), stdout);
    return {};
  }
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return {};
  return fail(ErrorCode::kIo, path + ": the report could not be written");
}

Result<std::optional<suite::Report>> read_old(const Options& options) {
  if (options.old_report.empty()) return std::optional<suite::Report>();
  const Result<std::string> text = read_file(options.old_report, kReportBytesMax);
  if (!text) return fail(ErrorCode::kConfig, "--against: " + text.error().message);
  Result<suite::Report> report = suite::read_report(*text, "--against: " + options.old_report);
  if (!report) return tl::unexpected(report.error());
  return std::optional(std::move(*report));
}

double minutes_of(const Options& options, const suite::Part& part) {
  if (part.name == "soak" && options.hours) return 60 * *options.hours;
  return options.quick ? part.quick_minutes : part.minutes;
}

double running_seconds(const suite::Run& run) {
  return run.server() == nullptr ? 0 : run.server()->usage().cpu_s;
}

std::vector<suite::PartRun> measure(const Options& options, suite::Run& run,
                                    const std::vector<const suite::Part*>& chosen,
                                    Progress& progress) {
  double left = 0;
  for (const suite::Part* part : chosen) left += minutes_of(options, *part);
  std::vector<suite::PartRun> done;
  for (const suite::Part* part : chosen) {
    progress.begin_part(*part, done.size() + 1, chosen.size(), left);
    left -= minutes_of(options, *part);
    const suite::MachineLoad load(running_seconds(run));
    run.begin_part(part->name);
    const Result<void> measured = part->measure(run);
    if (!measured) run.fail_part(measured.error());
    done.push_back(
        {std::string(part->name), load.seconds(), load.others_share(running_seconds(run))});
    if (!measured && measured.error().code == ErrorCode::kCancelled) break;
  }
  progress.clear();
  return done;
}

}  // namespace

Result<void> run_suite(const Options& options) {
  if (!options.lm_eval.empty()) return suite::run_lm_eval(options);
  log::configure(log::Level::kWarn, options.log_format);
  WEIR_ASSIGN(const std::vector<const suite::Part*> chosen, suite::chosen_parts(options.only));
  WEIR_ASSIGN(const std::optional<suite::Report> old, read_old(options));
  // Of a run whose report goes to standard output this is all that stands there.
  const bool silent = options.json_report == "-" || options.markdown_report == "-";
  std::FILE* out = silent ? stderr : stdout;
  Progress progress;
  WEIR_ASSIGN(suite::Run run,
              suite::Run::begin(
                  options, {.on_figure =
                                [&](const suite::Figure& figure) {
                                  progress.clear();
                                  std::fputs(suite::text_line(figure).c_str(), out);
                                  std::fflush(out);
                                },
                            .on_progress = [&](const std::string& text) { progress.say(text); }}));
  suite::Report report{.setting = run.setting()};
  if (old) WEIR_TRY(suite::check_comparable(report.setting, old->setting));
  std::fprintf(out, "%s\n\n%s", suite::setting_text(report.setting).c_str(),
               suite::text_heading().c_str());
  std::fflush(out);
  report.parts = measure(options, run, chosen, progress);
  const Result<void> stopped = run.stop_server();
  if (!stopped) run.fail_part(stopped.error());
  report.figures = run.take_figures();
  report.against = options.old_report;
  if (old) report.regressions = suite::find_regressions(report, *old);
  std::fprintf(out, "\n%s", suite::summary_text(report).c_str());
  WEIR_TRY(write_report(options.json_report, suite::report_json(report)));
  WEIR_TRY(write_report(options.markdown_report, suite::report_markdown(report)));
  if (report.passed()) return {};
  return fail(ErrorCode::kInvalid, "suite: " + std::to_string(report.count(suite::Verdict::kFail)) +
                                       " failed, " + std::to_string(report.regressions.size()) +
                                       " worse than in the older report");
}

}  // namespace weir
