#include "commands/pull.h"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <optional>
#include <string>

#include "base/byte_size.h"
#include "base/concat.h"
#include "base/json.h"
#include "commands/pull_report.h"
#include "fit/assessment.h"
#include "fit/fit_json.h"
#include "fit/lookup.h"
#include "program/memory_limit.h"
#include "program/model_source.h"

namespace weir {

namespace {

std::atomic<bool> g_stopped = false;
static_assert(std::atomic<bool>::is_always_lock_free);  // A signal handler writes it.

// The first SIGINT or SIGTERM ends the pull in order, a second one at once.
void stop_on_signals() {
  for (const int signal : {SIGINT, SIGTERM})
    std::signal(signal, [](int number) {
      g_stopped = true;
      std::signal(number, SIG_DFL);
    });
}

void print_files(const hub::HubModel& model) {
  size_t width = 0;
  for (const hub::TreeFile& file : model.files) width = std::max(width, file.path.size());
  for (const hub::TreeFile& file : model.files)
    std::printf("  %-*s  %10s\n", static_cast<int>(width), file.path.c_str(),
                human_bytes(file.size).c_str());
}

void print_files_json(const hub::HubModel& model) {
  std::string line;
  JsonWriter json(line);
  json.begin_object().field("event", "files").key("files").begin_array();
  for (const hub::TreeFile& file : model.files)
    json.begin_object()
        .field("path", file.path)
        .field("size", file.size)
        .field("hash", file.blob)
        .end_object();
  json.end_array().end_object();
  std::printf("%s\n", line.c_str());
}

void print_end(const Options& options, const hub::ModelName& name, const hub::Snapshot& snapshot) {
  if (!options.json) {
    std::printf("%s\n", snapshot.model_path.c_str());
    if (options.include.empty()) std::printf("\n  weir --model %s\n\n", name.text().c_str());
    return;
  }
  std::string line;
  JsonWriter json(line);
  json.begin_object().field("event", "done").field("model", name.text());
  json.field("commit", snapshot.commit).field("path", snapshot.model_path).end_object();
  std::printf("%s\n", line.c_str());
}

// What becomes of it here, said by its headers: nothing has been fetched.
Result<void> print_fit(const Options& options) {
  WEIR_ASSIGN(const fit::Found found, fit::look_up(options));
  WEIR_ASSIGN(const fit::Assessment assessment, fit::assess(options, memory_limit(options), found));
  if (!options.json) {
    std::printf("%s\n", fit::describe(assessment.fit).c_str());
    if (assessment.speed) std::printf("expected: %s\n", fit::describe(*assessment.speed).c_str());
    return {};
  }
  std::string line;
  JsonWriter json(line);
  json.begin_object().field("event", "fit").key("fit");
  fit::write_json(json, assessment.fit);
  if (assessment.speed) {
    json.key("speed");
    fit::write_json(json, *assessment.speed);
  }
  json.end_object();
  std::printf("%s\n", line.c_str());
  return {};
}

Result<std::string> path_of(const Options& options) {
  WEIR_ASSIGN(const ModelSource source, find_source(options));
  if (!source.name || !source.path.empty()) return source.path;
  PullReport report(PullReport::Form::kBar);
  // What is printed as JSON is printed alone.
  const PullWatch watch = options.json ? PullWatch{} : report.watch();
  WEIR_ASSIGN(const hub::Snapshot snapshot, pull_model(options, *source.name, watch));
  return snapshot.model_path;
}

}  // namespace

Result<void> run_pull(const Options& options) {
  if (options.model.empty())
    return fail(ErrorCode::kConfig,
                "expected a model of the hub: weir pull ORG/NAME[@REVISION][:FILE]; found none");
  WEIR_ASSIGN(const hub::ModelName name, hub::ModelName::parse(options.model));
  stop_on_signals();
  PullReport report(options.json ? PullReport::Form::kJson : PullReport::Form::kBar);
  PullWatch watch = report.watch();
  watch.stop = [] { return g_stopped.load(); };
  watch.on_begin = [&, begin = watch.on_begin](const hub::HubModel& model, int64_t missing) {
    begin(model, missing);
    if (options.dry_run) (options.json ? print_files_json : print_files)(model);
  };
  const Result<hub::Snapshot> snapshot = pull_model(options, name, watch);
  if (!snapshot && snapshot.error().code == ErrorCode::kCancelled)
    return fail(ErrorCode::kCancelled,
                "stopped; 'weir pull " + options.model + "' goes on where it was");
  if (!snapshot) return tl::unexpected(snapshot.error());
  if (options.dry_run) return options.include.empty() ? print_fit(options) : Result<void>();
  print_end(options, name, *snapshot);
  return {};
}

Result<Options> with_model_here(Options options) {
  WEIR_ASSIGN(options.model, path_of(options));
  if (options.against.empty()) return options;
  Options other = options;
  other.model = options.against;
  other.config_override.clear();  // They are the measured model's.
  WEIR_ASSIGN(options.against, path_of(other));
  return options;
}

}  // namespace weir
