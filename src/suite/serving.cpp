// serving: clients in a closed loop, then requests that come whatever the server does, up to twice
// what it can; with the parts of weir-load.
#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/json.h"
#include "load/runner.h"
#include "suite/parts.h"

namespace weir::suite {

namespace {

// The most clients. By Little's law a queue of 1.5 times as many makes answers wait 1.5 times as
// long, which the promise below allows: an operator who promises a time bounds what is admitted.
constexpr int32_t kClientsMax = 32;
constexpr int32_t kQueue = 48;
// The promise: the first token within so many times the median of the closed loop, the whole answer
// likewise.
constexpr double kPromisedFirst = 3, kPromisedWhole = 2;
// Goodput at twice the capacity, of that at the capacity.
constexpr double kGoodputKept = 90;
// Refusals cost nothing: they are there at once. After a burst it is soon as before, which is
// within so many times the slow first tokens of half the capacity.
constexpr double kRefusalMsMax = 50, kRecoverySecondsMax = 2, kUsual = 1.5;
// A closed loop lasts for so many answers of a client: the first is not counted.
constexpr double kAnswersLong = 3;
// As many as the server lets pile up, and more than it admits.
constexpr int32_t kConnectionsMax = 4000;
// Rates of a server under load are less steady than those of `weir bench`.
constexpr double kTolerance = 0.15;

struct Level {
  double rate = 0;                    // Answers a second.
  double first_ms = 0, whole_ms = 0;  // Medians.
};

double seconds_of(const Run& run) { return run.quick() ? 8 : 30; }

load::LoadOptions work_of(const Run& run, const Endpoint& at) {
  load::LoadOptions options = at.load_options();
  options.model = run.model_id();
  options.chat = false;
  options.prompt_words = {60, 200};
  options.output_tokens = {32, 64};
  options.temperature = 0.8;
  return options;
}

void add_times(Run& run, const std::string& level, const load::Figures& figures) {
  const load::Tally& all = figures.all();
  const load::GapHistogram gaps = figures.all_gaps();
  struct Quantile {
    const char* name;
    double share;
  };
  for (const Quantile q : {Quantile{"p50", 0.5}, Quantile{"p95", 0.95}, Quantile{"p99", 0.99}}) {
    const auto add = [&](const char* what, double ms) {
      run.add({.name = level + ": " + what + " " + q.name, .value = ms, .unit = "ms"});
    };
    add("first token", load::percentile(all.ttft, q.share));
    add("gap", gaps.percentile_ms(q.share));
    add("whole answer", load::percentile(all.e2e, q.share));
  }
}

void add_failures(Run& run, const std::string& level, const load::Figures& figures) {
  run.add({.name = level + ": failed",
           .value = static_cast<double>(figures.all().failed),
           .limit = at_most(0)});
}

Result<Level> closed_loop(Run& run, const Endpoint& at, int32_t clients, double seconds) {
  const std::string name = std::to_string(clients) + (clients == 1 ? " client" : " clients");
  run.say(name);
  load::LoadOptions options = work_of(run, at);
  options.clients = clients;
  options.duration_s = seconds;
  options.drop_first = true;  // Until clients are out of step.
  load::Runner runner(options, at.target());
  WEIR_TRY(runner.run());
  const load::Figures& figures = runner.figures();
  if (figures.interrupted) return fail(ErrorCode::kCancelled, "interrupted");
  const load::Tally& all = figures.all();
  if (all.ok == 0)
    return fail(ErrorCode::kIo, name + ": no client had a second answer in " +
                                    number_text(seconds) + " s (the first is not counted)");
  const double wall = std::max(figures.wall_s, 1e-3);
  run.add({.name = name + ": output",
           .value = static_cast<double>(all.output_tokens) / wall,
           .unit = "tokens/s",
           .better = Better::kMore,
           .tolerance = kTolerance});
  add_times(run, name, figures);
  add_failures(run, name, figures);
  return Level{.rate = static_cast<double>(all.ok) / wall,
               .first_ms = load::percentile(all.ttft, 0.5),
               .whole_ms = load::percentile(all.e2e, 0.5)};
}

// A request of an open loop, as Figures::log() has it; seconds of the monotonic clock.
struct Sent {
  double due_s = 0, end_s = 0, first_ms = 0;
  bool ok = false, good = false;
};

std::vector<Sent> sent_in(const std::string& log) {
  std::vector<Sent> all;
  for (size_t begin = 0, end = 0; begin < log.size(); begin = end + 1) {
    end = std::min(log.find('\n', begin), log.size());
    const Result<JsonDoc> doc = JsonDoc::parse(log.substr(begin, end - begin));
    Sent sent;
    std::string_view kind;
    if (!doc || doc->root()["due_s"].get(sent.due_s) != simdjson::SUCCESS ||
        doc->root()["end_s"].get(sent.end_s) != simdjson::SUCCESS ||
        doc->root()["ttft_ms"].get(sent.first_ms) != simdjson::SUCCESS ||
        doc->root()["good"].get(sent.good) != simdjson::SUCCESS ||
        doc->root()["kind"].get(kind) != simdjson::SUCCESS)
      continue;
    sent.ok = kind == "ok";
    all.push_back(sent);
  }
  return all;
}

// Answers a second that kept the promise, by when they ended; from `settle` on, when as many are
// under way as the rate keeps there.
double goodput_of(const std::vector<Sent>& all, double settle, double seconds) {
  if (all.empty()) return 0;
  const double begin = std::ranges::min(all, {}, &Sent::due_s).due_s + settle;
  const auto counted = std::ranges::count_if(all, [&](const Sent& sent) {
    return sent.good && sent.end_s >= begin && sent.end_s < begin + seconds;
  });
  return static_cast<double>(counted) / seconds;
}

load::LoadOptions open_work(const Run& run, const Endpoint& at, const Level& capacity, double share,
                            double seconds) {
  load::LoadOptions options = work_of(run, at);
  options.rate = std::max(share * capacity.rate, 0.01);
  options.duration_s = seconds;
  options.connections_max = kConnectionsMax;
  options.seed = 7;
  options.slo_ttft_ms = kPromisedFirst * capacity.first_ms;
  options.slo_e2e_ms = kPromisedWhole * capacity.whole_ms;
  options.log_path = "-";  // The lines are kept; nothing writes them.
  return options;
}

struct Overload {
  double goodput = 0;
  int64_t refused = 0;
  double first_p99_ms = 0, refusal_p99_ms = 0;
};

Result<Overload> open_loop(Run& run, const Endpoint& at, const Level& capacity, double share,
                           double seconds) {
  const std::string name = number_text(share) + " of capacity";
  run.say(name);
  const double settle = capacity.whole_ms / 1000;
  const load::LoadOptions options = open_work(run, at, capacity, share, seconds + settle);
  load::Runner runner(options, at.target());
  WEIR_TRY(runner.run());
  const load::Figures& figures = runner.figures();
  if (figures.interrupted) return fail(ErrorCode::kCancelled, "interrupted");
  const load::Tally& all = figures.all();
  const Overload found = {.goodput = goodput_of(sent_in(figures.log()), settle, seconds),
                          .refused = all.refused,
                          .first_p99_ms = load::percentile(all.ttft, 0.99),
                          .refusal_p99_ms = load::percentile(all.refusal, 0.99)};
  run.add({.name = name + ": goodput", .value = found.goodput, .unit = "answers/s"});
  run.add({.name = name + ": refused", .value = static_cast<double>(found.refused)});
  add_times(run, name, figures);
  add_failures(run, name, figures);
  return found;
}

void add_overload(Run& run, const Overload& at_capacity, const Overload& at_twice) {
  const std::string goodput = "goodput at 2 of that at 1", refusals = "refusals at 2: p99";
  if (at_twice.refused == 0) {
    // It was never full, say because others left the machine meanwhile.
    for (const std::string& name : {goodput, refusals})
      run.skip(name, "twice the capacity refused nobody: no overload");
    return;
  }
  run.add({.name = goodput,
           .value = 100 * at_twice.goodput / std::max(at_capacity.goodput, 1e-9),
           .unit = "%",
           .limit = at_least(kGoodputKept)});
  run.add({.name = refusals,
           .value = at_twice.refusal_p99_ms,
           .unit = "ms",
           .limit = at_most(kRefusalMsMax)});
}

// Half of the capacity all along, in the middle a burst that makes it twice: how long after it is
// the last request that was answered later than `usual_ms`, or not at all?
Result<void> measure_recovery(Run& run, const Endpoint& at, const Level& capacity,
                              double usual_ms) {
  const std::string name = "after a burst: until first tokens come as before";
  if (run.quick()) return run.skip(name, "not with --quick"), Result<void>();
  run.say(name);
  constexpr double kCalm = 5, kBurst = 10, kAfter = 10;
  const load::LoadOptions calm = open_work(run, at, capacity, 0.5, kCalm + kBurst + kAfter);
  load::LoadOptions more = open_work(run, at, capacity, 1.5, kBurst);
  more.seed = calm.seed + 1;
  const auto burst_end = static_cast<double>(load::now_ns()) * 1e-9 + kCalm + kBurst;
  std::thread burst([&] {
    std::this_thread::sleep_for(std::chrono::duration<double>(kCalm));
    load::Runner runner(more, at.target());
    // What becomes of the burst itself is not asked: the calm requests show it.
    static_cast<void>(runner.run());
  });
  load::Runner runner(calm, at.target());
  const Result<void> ran = runner.run();
  burst.join();
  WEIR_TRY(ran);
  if (runner.figures().interrupted) return fail(ErrorCode::kCancelled, "interrupted");
  double last = 0;
  for (const Sent& sent : sent_in(runner.figures().log()))
    if (!sent.ok || sent.first_ms > usual_ms) last = std::max(last, sent.due_s - burst_end);
  run.add({.name = name, .value = last, .unit = "s", .limit = at_most(kRecoverySecondsMax)});
  return {};
}

Result<void> measure_open_loops(Run& run, const Endpoint& at, const Level& capacity) {
  const std::vector<double> shares =
      run.quick() ? std::vector<double>{0.5, 1, 2} : std::vector<double>{0.5, 0.8, 1, 1.2, 2};
  Overload at_half, at_capacity, at_twice;
  for (const double share : shares) {
    WEIR_ASSIGN(const Overload found, open_loop(run, at, capacity, share, seconds_of(run)));
    if (share == 0.5) at_half = found;
    if (share == 1) at_capacity = found;
    if (share == 2) at_twice = found;
  }
  add_overload(run, at_capacity, at_twice);
  return measure_recovery(run, at, capacity, kUsual * at_half.first_p99_ms);
}

Result<void> measure(Run& run, const Endpoint& at) {
  Level capacity;
  int32_t before = 0;
  for (const int32_t clients : {1, 8, kClientsMax}) {
    // At the worst answers take as many times longer as there are more clients.
    const double whole_s = before == 0 ? 0 : capacity.whole_ms / 1000 * clients / before;
    WEIR_ASSIGN(capacity,
                closed_loop(run, at, clients, std::max(seconds_of(run), kAnswersLong * whole_s)));
    before = clients;
  }
  return measure_open_loops(run, at, capacity);
}

}  // namespace

Result<void> measure_serving(Run& run) {
  if (!run.inside()) {
    WEIR_ASSIGN(const Endpoint* at, run.endpoint());
    return measure(run, *at);
  }
  WEIR_TRY(run.stop_server());
  WEIR_ASSIGN(Server server, Server::start(run.options(), {"--queue=" + std::to_string(kQueue)}));
  run.add({.name = "start until it answers", .value = 1000 * server.start_seconds(), .unit = "ms"});
  WEIR_TRY(measure(run, server.endpoint()));
  return server.stop();
}

}  // namespace weir::suite
