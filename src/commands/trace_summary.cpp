// TraceSummary: the window, self times of nested spans, overlap with the compute window.
#include "commands/trace_summary.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <span>
#include <string_view>

namespace weir {

namespace {

using trace::Kind;
using trace::Span;

// Fewer steps than this are no steady state.
constexpr size_t kStepsMin = 8;

struct Interval {
  int64_t begin = 0, end = 0;
  int64_t length() const { return end - begin; }
};

bool is(const Span& span, std::string_view name) { return span.name == name; }

// The longest run of steps of `rows` rows.
std::span<const Span> longest_run(std::span<const Span> steps, int32_t rows) {
  std::span<const Span> longest;
  for (size_t begin = 0; begin < steps.size();) {
    size_t end = begin;
    while (end < steps.size() && steps[end].rows == rows) ++end;
    if (end - begin > longest.size()) longest = steps.subspan(begin, end - begin);
    begin = end + 1;
  }
  return longest;
}

Interval clip(const Span& span, const Interval& window) {
  const Interval inside = {std::max(span.begin, window.begin), std::min(span.end, window.end)};
  return inside.end > inside.begin ? inside : Interval{};
}

// The ops of one lane: each span's time inside the window less that of the spans nested in it.
using Times = std::map<std::pair<std::string_view, Kind>, int64_t>;
void add_self_times(std::span<const Span> spans, const Interval& window, Times& times) {
  std::vector<const Span*> open;
  for (const Span& span : spans) {
    const int64_t length = clip(span, window).length();
    while (!open.empty() && open.back()->end <= span.begin) open.pop_back();
    if (!open.empty()) times[{open.back()->name, open.back()->kind}] -= length;
    times[{span.name, span.kind}] += length;
    open.push_back(&span);
  }
}

// Time of `inner` that lies inside the passes, which ascend and do not overlap.
int64_t overlap(const Interval& inner, std::span<const Interval> passes) {
  auto at = std::ranges::upper_bound(passes, inner.begin, {}, &Interval::end);
  int64_t sum = 0;
  for (; at != passes.end() && at->begin < inner.end; ++at)
    sum += std::min(at->end, inner.end) - std::max(at->begin, inner.begin);
  return sum;
}

double ratio(int64_t part, double whole) {
  return whole > 0 ? static_cast<double>(part) / whole : 0;
}

// One lane in the order of its spans, and what it is.
struct Track {
  std::vector<Span> spans;
  bool leads = false;         // The engine's.
  bool computes = false;      // A member's.
  int64_t complete_from = 0;  // What ended before this may have been overwritten.
};

std::vector<Track> tracks_of(const trace::Recorder& recorder) {
  std::vector<Track> tracks;
  for (const auto& lane : recorder.lanes()) {
    Track& track = tracks.emplace_back();
    track.spans = lane->spans();
    if (!track.spans.empty()) track.complete_from = track.spans.front().end;
    sort_by_begin(track.spans);
    for (const Span& span : track.spans) {
      track.leads |= is(span, "step");
      track.computes |= is(span, "forward");
    }
  }
  return tracks;
}

// How much of some spans lies inside the leader's passes.
struct Hidden {
  int64_t all = 0, inside = 0;

  void add(const Interval& span, std::span<const Interval> passes) {
    all += span.length();
    inside += overlap(span, passes);
  }
  double share() const {
    return all > 0 ? static_cast<double>(inside) / static_cast<double>(all) : 1;
  }
};

// Of all members' spans that begin and end inside, the time in kernels.
int64_t kernel_ticks(const std::vector<Track>& tracks, const Interval& step) {
  Times times;
  for (const Track& track : tracks) {
    if (!track.computes) continue;
    const auto first = std::ranges::lower_bound(track.spans, step.begin, {}, &Span::begin);
    const auto last = std::ranges::lower_bound(track.spans, step.end, {}, &Span::begin);
    add_self_times(std::span(first, last), step, times);
  }
  int64_t sum = 0;
  for (const auto& [op, ticks] : times)
    if (op.second == Kind::kKernel) sum += ticks;
  return sum;
}

struct Window {
  Interval interval;
  std::vector<int64_t> steps;    // Lengths, from begin to begin.
  std::vector<double> kernels;   // Share of each step.
  std::vector<Interval> passes;  // The leader's.
};

Result<Window> window_of(const std::vector<Track>& tracks, int32_t rows) {
  const auto leader = std::ranges::find(tracks, true, &Track::leads);
  int64_t complete_from = 0;
  for (const Track& track : tracks)
    if (track.computes) complete_from = std::max(complete_from, track.complete_from);
  std::vector<Span> steps;
  if (leader != tracks.end())
    std::ranges::copy_if(leader->spans, std::back_inserter(steps), [&](const Span& span) {
      return is(span, "step") && span.begin >= complete_from;
    });
  const std::span<const Span> run = longest_run(steps, rows);
  if (run.size() < kStepsMin)
    return fail(ErrorCode::kInvalid, "trace: expected at least " + std::to_string(kStepsMin) +
                                         " steps in a row of " + std::to_string(rows) +
                                         " sequences; found " + std::to_string(run.size()));
  Window window;
  window.interval = {run.front().begin, run.back().begin};
  const auto members = std::ranges::count(tracks, true, &Track::computes);
  for (size_t i = 1; i < run.size(); ++i) {
    const Interval step = {run[i - 1].begin, run[i].begin};
    window.steps.push_back(step.length());
    window.kernels.push_back(
        ratio(kernel_ticks(tracks, step), static_cast<double>(step.length() * members)));
  }
  for (const Span& span : leader->spans)
    if (is(span, "forward") && clip(span, window.interval).length() > 0)
      window.passes.push_back(clip(span, window.interval));
  return window;
}

}  // namespace

Result<TraceSummary> TraceSummary::of(const trace::Recorder& recorder, int32_t rows) {
  const std::vector<Track> tracks = tracks_of(recorder);
  WEIR_ASSIGN(Window window, window_of(tracks, rows));
  Times times;
  Hidden network, engine;
  int64_t passes = 0;
  TraceSummary s;
  for (const Track& track : tracks) {
    s.members += track.computes;
    if (track.computes) add_self_times(track.spans, window.interval, times);
    int64_t counted_to = 0;  // Nested spans of the network loop count once.
    for (const Span& span : track.spans) {
      const Interval inside = clip(span, window.interval);
      if (track.computes && is(span, "forward")) passes += inside.length();
      if (span.kind == Kind::kEngine) engine.add(inside, window.passes);
      if (span.kind != Kind::kNetwork || inside.end <= counted_to) continue;
      network.add(inside, window.passes);
      counted_to = inside.end;
    }
  }
  const auto step_count = static_cast<double>(window.steps.size());
  const double all = static_cast<double>(window.interval.length()) * s.members;
  s.rows = rows;
  s.steps = static_cast<int32_t>(window.steps.size());
  std::ranges::nth_element(window.steps, window.steps.begin() + s.steps / 2);
  std::ranges::nth_element(window.kernels, window.kernels.begin() + s.steps / 2);
  s.outside_kernels_median = 1 - window.kernels[static_cast<size_t>(s.steps / 2)];
  s.step_seconds = recorder.seconds(window.steps[static_cast<size_t>(s.steps / 2)]);
  s.idle_between = 1 - ratio(passes, all);
  s.network_seconds = recorder.seconds(network.all) / step_count;
  s.network_inside = network.share();
  s.engine_inside = engine.share();
  s.outside_kernels = 1;
  for (const auto& [op, ticks] : times) {
    const double share = ratio(ticks, all);
    if (op.second == Kind::kKernel) s.outside_kernels -= share;
    if (ticks > 0)
      s.ops.push_back(
          {std::string(op.first), op.second, share, recorder.seconds(ticks) / step_count});
  }
  std::ranges::sort(s.ops, std::ranges::greater{}, &Op::share);
  return s;
}

std::string TraceSummary::table() const {
  std::string out;
  char line[160];
  const auto print = [&]<class... Args>(const char* format, Args... args) {
    std::snprintf(line, sizeof line, format, args...);
    out += line;
  };
  print("batch %d: %d steps of %.3f ms (median), %d members\n", rows, steps, step_seconds * 1e3,
        members);
  print("  outside kernels %.1f %% (median step %.1f %%), idle from step to step %.1f %%\n",
        outside_kernels * 100, outside_kernels_median * 100, idle_between * 100);
  print("  inside the compute window: engine %.0f %%, network loop %.0f %% (%.0f us a step)\n",
        engine_inside * 100, network_inside * 100, network_seconds * 1e6);
  for (const Op& op : ops)
    print("  %-16s %-8s %6.2f %%  %8.1f us a step\n", op.name.c_str(),
          std::string(trace::kind_name(op.kind)).c_str(), op.share * 100, op.per_step * 1e6);
  return out;
}

void TraceSummary::write(JsonWriter& json) const {
  json.begin_object().field("batch", rows).field("members", members).field("steps", steps);
  json.field("step_ms", step_seconds * 1e3).field("outside_kernels", outside_kernels);
  json.field("outside_kernels_median", outside_kernels_median);
  json.field("idle_between_steps", idle_between).field("engine_inside", engine_inside);
  json.field("network_inside", network_inside);
  json.field("network_us_per_step", network_seconds * 1e6).key("ops").begin_array();
  for (const Op& op : ops) {
    json.begin_object().field("name", op.name).field("kind", trace::kind_name(op.kind));
    json.field("share", op.share).field("us_per_step", op.per_step * 1e6).end_object();
  }
  json.end_array().end_object();
}

}  // namespace weir
