// replay_bench: what cache and prefetch policies of expert streaming are worth, replayed: on
// routing drawn by RoutingModel (its tables say "modelled routing"), or on a route trace.
//
//   replay_bench [--trace FILE] [--tokens N]
//
// Nothing is timed: hit rates are counted, stalls come from a simulated disk.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/file.h"
#include "ssd/replay.h"
#include "ssd/streaming_simulation.h"

namespace weir::ssd {
namespace {

struct Options {
  std::string trace;
  int32_t tokens = 800;
};

double share(const Counter& part, const Counter& whole) {
  return whole.value() == 0
             ? 0
             : 100 * static_cast<double>(part.value()) / static_cast<double>(whole.value());
}

void print_caches(const measure::RouteTrace& trace) {
  const std::vector<Visit> visits = visits_of(trace);
  const std::vector<int32_t> classes(static_cast<size_t>(trace.layers()), 0);
  std::printf(
      "\nDecode hit rate, %%; EWMA/Belady of all, and as a server's sample says (OracleWindow)\n"
      "residency    LRU   EWMA Belady  EWMA/Belady  sample   EWMA kept .90 .97\n");
  for (const double residency : {0.05, 0.1, 0.2, 0.3, 0.4}) {
    const int32_t slots = static_cast<int32_t>(residency * trace.layers() * trace.experts());
    if (slots < trace.top_k() + 1) continue;
    const auto ewma = [&](float kept) {
      return EwmaReplay(trace.layers(), trace.experts(), slots, kept).run(visits).rate();
    };
    OracleWindow window(trace.layers(), trace.experts(), trace.top_k(), classes);
    const double ours =
        EwmaReplay(trace.layers(), trace.experts(), slots).run(visits, &window).rate();
    const double belady = RankedReplay(slots, true).run(visits).rate();
    std::printf("%7.0f %%  %5.1f  %5.1f  %5.1f  %.3f        %.3f         %5.1f %5.1f\n",
                100 * residency, 100 * RankedReplay(slots, false).run(visits).rate(), 100 * ours,
                100 * belady, ours / belady, window.replay(std::span(&slots, 1)).ratio(),
                100 * ewma(0.9f), 100 * ewma(0.97f));
  }
}

void print_simulation(const measure::RouteTrace& trace, double cycles, PrefetchMode mode,
                      const char* name, const SimulatedMachine& machine) {
  const int32_t slots = static_cast<int32_t>(cycles * trace.layers() * trace.top_k());
  StreamingSimulation simulation(trace, slots, mode, machine);
  simulation.run(100);
  const SimulatedRun run = simulation.run();
  std::printf("%6.2f  %-14s  %6.1f  %6.1f  %4.1f  %6.0f", cycles, name, run.stall_ms(),
              1e3 * run.seconds / static_cast<double>(run.tokens),
              100 * static_cast<double>(run.ready) / static_cast<double>(run.requests),
              static_cast<double>(run.demand_bytes) / 1e6 / static_cast<double>(run.tokens));
  const double all = 1e6 * static_cast<double>(run.tokens + 100);
  for (const GuessSource source : {GuessSource::kPreviousToken, GuessSource::kLookahead}) {
    const SourceStats& s = simulation.prefetcher().stats(source);
    if (s.guesses.value() == 0) {
      std::printf("  |                             ");
      continue;
    }
    std::printf("  | %3.0f %3.0f  %4.0f %4.0f %4.0f %4.0f", share(s.right, s.guesses),
                share(s.foreseen, s.misses), static_cast<double>(s.issued_bytes.value()) / all,
                static_cast<double>(s.used_bytes.value()) / all,
                static_cast<double>(s.late_bytes.value()) / all,
                static_cast<double>(s.wasted_bytes.value()) / all);
  }
  std::printf("\n");
}

void print_modes(const measure::RouteTrace& trace) {
  for (const double bandwidth : {2.1e9, 7e9, 14e9}) {
    SimulatedMachine machine;
    machine.disk_bytes_per_second = bandwidth;
    std::printf(
        "\nSimulated disk of %.1f GB/s, 2.7 MB an expert, 30 ms of compute a token\n"
        "MB per token; right: %% of a source's best top_k; on misses: %% of misses among them\n"
        "cycles  mode            stall    ms/    hit  demand  | previous token                |"
        " lookahead\n"
        "                           ms  token     %%      MB  | right  on misses, issued used late "
        "wasted\n",
        bandwidth / 1e9);
    for (const double cycles : {0.5, 0.75, 1.0, 1.5, 3.0}) {
      print_simulation(trace, cycles, PrefetchMode::kOff, "off", machine);
      print_simulation(trace, cycles, PrefetchMode::kPreviousToken, "previous-token", machine);
      print_simulation(trace, cycles, PrefetchMode::kLookahead, "lookahead", machine);
      print_simulation(trace, cycles, PrefetchMode::kAuto, "auto", machine);
    }
  }
}

// Somebody else's long prompt between two stretches of an answer (goal G11), and what the prompt's
// own answer finds.
void print_prompts(const measure::RoutingModel& model) {
  const measure::RoutingParams& p = model.params();
  const std::vector<Visit> answer = visits_of(modelled_trace(model, 11, 0, 1, 384));
  const std::vector<Visit> other = visits_of(modelled_trace(model, 12, 4096, 512, 64));
  const std::span<const Visit> a(answer), b(other);
  const size_t layers = static_cast<size_t>(p.layers), prompt = 8 * layers;
  std::printf(
      "\nDecode hit rate around a prompt of 4,096 tokens, %%\n"
      "residency  before   after  without the prompt  the prompt's own answer\n");
  for (const double residency : {0.1, 0.2, 0.3, 0.4}) {
    const int32_t slots = static_cast<int32_t>(residency * p.layers * p.experts);
    EwmaReplay disturbed(p.layers, p.experts, slots), alone(p.layers, p.experts, slots);
    EwmaReplay switched(p.layers, p.experts, slots);
    switched.run(a.first(256 * layers));
    switched.run(b.first(prompt));
    disturbed.run(a.first(128 * layers));
    const double before = disturbed.run(a.subspan(128 * layers, 128 * layers)).rate();
    disturbed.run(b.first(prompt));
    const double own = switched.run(b.subspan(prompt)).rate();
    const double after = disturbed.run(a.subspan(256 * layers)).rate();
    alone.run(a.first(256 * layers));
    std::printf("%7.0f %%  %6.1f  %6.1f  %6.1f              %6.1f\n", 100 * residency, 100 * before,
                100 * after, 100 * alone.run(a.subspan(256 * layers)).rate(), 100 * own);
  }
}

// From an empty cache, how soon a request finds what it will find later (goal G15).
void print_cold_start(const measure::RouteTrace& trace) {
  const std::vector<Visit> visits = visits_of(trace);
  const auto layers = static_cast<size_t>(trace.layers());
  constexpr size_t kWindow = 8;  // Tokens.
  const size_t tokens = visits.size() / layers;
  std::printf(
      "\nFrom an empty cache, hit rate in %%\nresidency  tokens 1-8  57-64  second half  "
      "80 %% of that at token\n");
  for (const double residency : {0.1, 0.2, 0.3, 0.4}) {
    const auto slots = static_cast<int32_t>(residency * trace.layers() * trace.experts());
    EwmaReplay cache(trace.layers(), trace.experts(), slots);
    std::vector<double> rates;  // Of windows.
    HitRate later;
    for (size_t token = 0; token + kWindow <= tokens; token += kWindow) {
      const HitRate rate = cache.run(std::span(visits).subspan(token * layers, kWindow * layers));
      rates.push_back(rate.rate());
      if (token < tokens / 2) continue;
      later.hits += rate.hits;
      later.requests += rate.requests;
    }
    size_t at = 0;
    while (at < rates.size() && rates[at] < 0.8 * later.rate()) ++at;
    std::printf("%7.0f %%  %10.1f  %5.1f  %11.1f  %14zu\n", 100 * residency, 100 * rates[0],
                100 * rates[7], 100 * later.rate(), (at + 1) * kWindow);
  }
}

// What several requests at once find, and how many experts they read for a token: what a disk that
// is busy all the time allows beside one request, whatever else is done.
void print_requests(const measure::RoutingModel& model, int32_t tokens, bool one_topic) {
  const measure::RoutingParams& p = model.params();
  std::printf(
      "\nRequests at once, %s: hit rate in %%, and tokens made of an expert read, one request's "
      "being 1\nresidency  requests  union/k    EWMA  Belady    tokens of a read: EWMA  Belady\n",
      one_topic ? "all of one topic" : "each of its own topic");
  for (const double residency : {0.1, 0.2, 0.26, 0.4}) {
    const auto slots = static_cast<int32_t>(residency * p.layers * p.experts);
    double one_ewma = 0, one_belady = 0;
    for (const int32_t requests : {1, 2, 4, 8}) {
      const std::vector<Visit> visits =
          visits_of(modelled_batch(model, 31, requests, tokens, one_topic));
      const size_t half = visits.size() / 2;
      EwmaReplay cache(p.layers, p.experts, slots);
      cache.run(std::span(visits).first(half));
      const HitRate ewma = cache.run(std::span(visits).subspan(half));
      RankedReplay best(slots, true);
      const HitRate belady = best.run(std::span(visits).subspan(half));
      const auto tokens_of_read = [&](const HitRate& rate) {
        return requests / static_cast<double>(std::max<int64_t>(rate.requests - rate.hits, 1));
      };
      if (requests == 1) one_ewma = tokens_of_read(ewma), one_belady = tokens_of_read(belady);
      const double steps = static_cast<double>(visits.size() - half) / p.layers;
      std::printf("%7.0f %%  %8d  %7.2f  %6.1f  %6.1f  %21.2f  %6.2f\n", 100 * residency, requests,
                  static_cast<double>(ewma.requests) / (steps * p.layers * p.top_k),
                  100 * ewma.rate(), 100 * belady.rate(), tokens_of_read(ewma) / one_ewma,
                  tokens_of_read(belady) / one_belady);
    }
  }
}

int run(const Options& options) {
  if (options.trace.empty()) {
    const measure::RoutingParams params;
    std::printf("Modelled routing: %d layers, %d of %d experts, %d tokens\n", params.layers,
                params.top_k, params.experts, options.tokens);
    const measure::RoutingModel model(params, 1);
    print_caches(modelled_trace(model, 21, 64, 64, options.tokens));
    print_prompts(model);
    print_cold_start(modelled_trace(model, 41, 0, 1, options.tokens));
    for (const bool one_topic : {false, true}) print_requests(model, options.tokens, one_topic);
    print_modes(modelled_trace(model, 7, 0, 1, options.tokens));
    return 0;
  }
  const auto file = FileView::map(options.trace);
  if (!file) return std::fprintf(stderr, "%s\n", file.error().message.c_str()), 1;
  const auto trace = measure::RouteTrace::parse(file->text(), options.trace);
  if (!trace) return std::fprintf(stderr, "%s\n", trace.error().message.c_str()), 1;
  std::printf("Trace %s: %d layers, %d of %d experts\n", options.trace.c_str(), trace->layers(),
              trace->top_k(), trace->experts());
  print_caches(*trace);
  print_modes(*trace);
  return 0;
}

}  // namespace
}  // namespace weir::ssd

int main(int argc, char** argv) {
  weir::ssd::Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--trace") options.trace = argv[i + 1];
    if (name == "--tokens") options.tokens = std::atoi(argv[i + 1]);
  }
  if (options.tokens < 200) {
    std::fprintf(stderr, "--tokens: expected at least 200\n");
    return 1;
  }
  return weir::ssd::run(options);
}
