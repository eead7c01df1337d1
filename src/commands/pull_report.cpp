#include "commands/pull_report.h"

#include <cstdio>

#include "base/byte_size.h"
#include "base/concat.h"
#include "base/json.h"
#include "base/log.h"
#include "hub/selection.h"

namespace weir {

namespace {

using std::chrono::steady_clock;

// Objects a second: enough for a bar that is drawn elsewhere.
constexpr auto kJsonTime = std::chrono::milliseconds(500);

void print_line(const std::string& json) {
  std::printf("%s\n", json.c_str());
  std::fflush(stdout);
}

}  // namespace

int64_t percent_of(const hub::Progress& progress) {
  return progress.bytes == 0 ? 100 : 100 * progress.bytes_done / progress.bytes;
}

PullWatch PullReport::watch() {
  return {
      .on_begin = [this](const hub::HubModel& model, int64_t missing) { begin(model, missing); },
      .on_progress = [this](const hub::Progress& now) { progress(now); },
      .on_wait = [this](const std::string& why) { wait(why); },
      .stop = {}};
}

void PullReport::begin(const hub::HubModel& model, int64_t missing) {
  const int64_t bytes = hub::total_bytes(model.files);
  anything_ = missing > 0;
  const std::string commit = model.tree.commit.substr(0, 12);
  if (form_ == Form::kJson) {
    std::string line;
    JsonWriter json(line);
    json.begin_object().field("event", "begin").field("model", model.name.text());
    json.field("commit", model.tree.commit).field("files", uint64_t{model.files.size()});
    json.field("bytes", bytes).field("missing", missing).end_object();
    return print_line(line);
  }
  const std::string text =
      concat({model.name.text(), ", commit ", commit, ": ", std::to_string(model.files.size()),
              " files, ", human_bytes(bytes), ", ", human_bytes(missing), " to fetch"});
  if (form_ == Form::kLog) return log::info("pull " + text);
  std::printf("%s\n", text.c_str());
  std::fflush(stdout);
}

void PullReport::progress(const hub::Progress& now) {
  const bool last = now.files_done == now.files;
  if (form_ == Form::kBar) {
    if (anything_) bar_.show(now.bytes_done, now.bytes, now.bytes_here, now.waiting);
    return;
  }
  if (form_ == Form::kLog) {
    const int64_t percent = percent_of(now) / 10 * 10;
    if (percent == logged_percent_ || !anything_) return;
    logged_percent_ = percent;
    return log::info(concat({"pull ", std::to_string(percent_of(now)), " % ",
                             human_bytes(now.bytes_done), " of ", human_bytes(now.bytes)}));
  }
  if (!last && steady_clock::now() - printed_ < kJsonTime) return;
  printed_ = steady_clock::now();
  std::string line;
  JsonWriter json(line);
  json.begin_object().field("event", "progress").field("bytes", now.bytes);
  json.field("bytes_done", now.bytes_done).field("bytes_here", now.bytes_here);
  json.field("files", uint64_t{now.files}).field("files_done", uint64_t{now.files_done});
  json.field("file", now.file).field("waiting", now.waiting).end_object();
  print_line(line);
}

void PullReport::wait(const std::string& why) {
  if (form_ == Form::kLog) return log::warn("pull waits: " + why);
  if (form_ == Form::kJson) {
    std::string line;
    JsonWriter json(line);
    json.begin_object().field("event", "wait").field("why", why).end_object();
    return print_line(line);
  }
  bar_.end_line();
  std::fprintf(stderr, "weir: %s\n", why.c_str());
}

}  // namespace weir
