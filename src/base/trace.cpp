#include "base/trace.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <thread>

#include "base/json.h"

namespace weir::trace {

namespace {

// One process in the file; its threads are numbered from 1.
constexpr int32_t kProcess = 1;

void write_name(JsonWriter& json, std::string_view what, int32_t thread, std::string_view name) {
  json.begin_object().field("ph", "M").field("name", what).field("pid", kProcess);
  json.field("tid", thread).key("args").begin_object().field("name", name);
  json.end_object().end_object();
}

}  // namespace

std::string_view kind_name(Kind kind) {
  switch (kind) {
    case Kind::kKernel:
      return "kernel";
    case Kind::kWait:
      return "wait";
    case Kind::kEngine:
      return "engine";
    case Kind::kNetwork:
      return "network";
    case Kind::kWhole:
      return "whole";
  }
  return "";
}

void sort_by_begin(std::vector<Span>& spans) {
  std::ranges::sort(spans, [](const Span& a, const Span& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
}

// Every page is touched now rather than while recording.
Lane::Lane(std::string thread, size_t spans_max)
    : thread_(std::move(thread)), mask_(spans_max - 1), spans_(spans_max) {
  CHECK(std::has_single_bit(spans_max));
}

std::vector<Span> Lane::spans() const {
  const size_t kept = std::min(count_, spans_.size());
  std::vector<Span> found;
  found.reserve(kept);
  for (size_t i = count_ - kept; i < count_; ++i) found.push_back(spans_[i & mask_]);
  return found;
}

Recorder::Recorder(size_t spans_max)
    : spans_max_(spans_max), begin_ticks_(ticks()), begin_(Clock::now()) {}

void Recorder::attach(std::string thread) {
  auto lane = std::make_unique<Lane>(std::move(thread), spans_max_);
  const std::lock_guard lock(mutex_);
  this_lane = lanes_.emplace_back(std::move(lane)).get();
}

// The rate of the counter is that of the recorder's whole life: the longer, the more exact.
double Recorder::seconds(int64_t ticks_between) const {
  const double lived = std::chrono::duration<double>(Clock::now() - begin_).count();
  return static_cast<double>(ticks_between) * lived / static_cast<double>(ticks() - begin_ticks_);
}

std::string Recorder::json() const {
  const double us_per_tick =
      1e6 * seconds(int64_t{1} << 40) / static_cast<double>(int64_t{1} << 40);
  std::string out;
  JsonWriter json(out);
  json.begin_object().field("displayTimeUnit", "ms").key("traceEvents").begin_array();
  write_name(json, "process_name", 0, "weir");
  for (size_t i = 0; i < lanes_.size(); ++i) {
    const auto thread = static_cast<int32_t>(i + 1);
    write_name(json, "thread_name", thread, lanes_[i]->thread());
    std::vector<Span> spans = lanes_[i]->spans();
    sort_by_begin(spans);
    for (const Span& span : spans) {
      json.begin_object().field("ph", "X").field("name", span.name);
      json.field("cat", kind_name(span.kind)).field("pid", kProcess).field("tid", thread);
      json.field("ts", us_per_tick * static_cast<double>(span.begin - begin_ticks_));
      json.field("dur", us_per_tick * static_cast<double>(span.end - span.begin));
      if (span.rows != 0) json.key("args").begin_object().field("rows", span.rows).end_object();
      json.end_object();
    }
  }
  json.end_array().end_object();
  return out;
}

Result<void> Recorder::write(const std::string& path) const {
  const std::string text = json();
  std::FILE* file = std::fopen(path.c_str(), "w");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) written = std::fclose(file) == 0 && written;
  if (written) return {};
  return fail(ErrorCode::kIo, path + ": expected to write the trace; " + std::strerror(errno));
}

}  // namespace weir::trace
