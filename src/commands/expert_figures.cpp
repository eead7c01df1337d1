// Taking, subtracting and printing of counts.
#include "commands/expert_figures.h"

#include <sys/resource.h>

#include <chrono>
#include <cstdio>

namespace weir {

namespace {

uint64_t nanoseconds(const timeval& time) {
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(time.tv_usec) * 1000;
}

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

}  // namespace

ExpertFigures ExpertFigures::now(const ssd::ExpertStore& store) {
  ExpertFigures f;
  auto& v = f.values_;
  const ssd::StoreStats& s = store.stats();
  const ssd::ReadStats& r = store.reads();
  const auto bytes = [&r](ssd::ReadClass c) { return r.bytes[static_cast<size_t>(c)].value(); };
  v[kReady] = s.ready.value();
  v[kInFlight] = s.in_flight.value();
  v[kAbsent] = s.absent.value();
  v[kTokens] = s.tokens.value();
  v[kDemandBytes] = bytes(ssd::ReadClass::kDemand);
  v[kGuessedBytes] = bytes(ssd::ReadClass::kSpeculative);
  v[kPromptBytes] = bytes(ssd::ReadClass::kPrefill);
  v[kStallNs] = s.stall_ns.value();
  v[kStepNs] = s.step_ns.value();
  v[kBusyNs] = r.busy_ns.value();
  for (const Counter& reads : r.reads) v[kReads] += reads.value();
  for (const Counter& runs : s.layer_runs) v[kRuns] += runs.value();
  for (const Counter& experts : s.layer_experts) v[kUnions] += experts.value();
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  v[kSystemNs] = nanoseconds(usage.ru_stime);
  v[kUserNs] = nanoseconds(usage.ru_utime);
  v[kWallNs] = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                     std::chrono::nanoseconds(1));
  for (size_t i = 0; i < ssd::kGuessSources; ++i) {
    const ssd::SourceStats& g = store.prefetcher().stats(static_cast<ssd::GuessSource>(i));
    f.guesses_[i] = {g.guesses.value(),    g.right.value(),        g.misses.value(),
                     g.foreseen.value(),   g.issued_bytes.value(), g.used_bytes.value(),
                     g.late_bytes.value(), g.wasted_bytes.value()};
  }
  return f;
}

ExpertFigures ExpertFigures::since(const ExpertFigures& before) const {
  ExpertFigures f = *this;
  for (size_t i = 0; i < kValues; ++i) f.values_[i] -= before.values_[i];
  for (size_t s = 0; s < ssd::kGuessSources; ++s)
    for (size_t i = 0; i < kGuessValues; ++i) f.guesses_[s][i] -= before.guesses_[s][i];
  return f;
}

std::string ExpertFigures::text() const {
  const double asked = value(kReady) + value(kInFlight) + value(kAbsent);
  const double tokens = value(kTokens);
  char line[240];
  std::snprintf(line, sizeof line,
                "  experts in memory %.1f %%, union %.1f, read %.3f MB/token, stall %.1f %%, "
                "disk %.2f GB/s, kernel CPU %.1f ms/GB\n",
                100 * ratio(value(kReady), asked), ratio(value(kUnions), value(kRuns)),
                1e-6 * ratio(bytes(), tokens), 100 * ratio(value(kStallNs), value(kWallNs)),
                ratio(bytes() + value(kPromptBytes), value(kBusyNs)),
                1e3 * ratio(value(kSystemNs), bytes() + value(kPromptBytes)));
  std::string out = line;
  for (size_t i = 0; i < ssd::kGuessSources; ++i) {
    if (guesses_[i][kGuesses] == 0) continue;
    std::snprintf(
        line, sizeof line,
        "  %.*s: precision %.0f %%, recall of misses %.0f %%, MB/token issued %.3f, useful %.3f "
        "(late %.3f), wasted %.3f\n",
        static_cast<int>(ssd::name_of(static_cast<ssd::GuessSource>(i)).size()),
        ssd::name_of(static_cast<ssd::GuessSource>(i)).data(),
        100 * ratio(of_source(i, kRight), of_source(i, kGuesses)),
        100 * ratio(of_source(i, kForeseen), of_source(i, kMisses)),
        1e-6 * ratio(of_source(i, kIssued), tokens), 1e-6 * ratio(of_source(i, kUseful), tokens),
        1e-6 * ratio(of_source(i, kLate), tokens), 1e-6 * ratio(of_source(i, kWasted), tokens));
    out += line;
  }
  return out;
}

void ExpertFigures::write(JsonWriter& json) const {
  const double asked = value(kReady) + value(kInFlight) + value(kAbsent);
  const double tokens = value(kTokens);
  json.field("tokens", values_[kTokens]).field("in_memory", ratio(value(kReady), asked));
  json.field("in_memory_or_on_the_way", ratio(value(kReady) + value(kInFlight), asked));
  json.field("union", ratio(value(kUnions), value(kRuns)));
  json.field("demand_bytes_per_token", ratio(value(kDemandBytes), tokens));
  json.field("read_bytes_per_token", ratio(bytes(), tokens));
  json.field("prompt_bytes", values_[kPromptBytes]);
  json.field("stall_share", ratio(value(kStallNs), value(kWallNs)));
  json.field("stall_ms_per_token", 1e-6 * ratio(value(kStallNs), tokens));
  json.field("disk_busy_share", ratio(value(kBusyNs), value(kWallNs)));
  json.field("disk_gb_s", ratio(bytes() + value(kPromptBytes), value(kBusyNs)));
  json.field("system_ms_per_token", 1e-6 * ratio(value(kSystemNs), tokens));
  json.field("cpu_ms_per_token", 1e-6 * ratio(value(kSystemNs) + value(kUserNs), tokens));
  json.field("system_ms_per_gb", 1e3 * ratio(value(kSystemNs), bytes() + value(kPromptBytes)));
  json.key("guesses").begin_object();
  for (size_t i = 0; i < ssd::kGuessSources; ++i) {
    if (guesses_[i][kGuesses] == 0) continue;
    json.key(ssd::name_of(static_cast<ssd::GuessSource>(i))).begin_object();
    json.field("precision", ratio(of_source(i, kRight), of_source(i, kGuesses)));
    json.field("recall_of_misses", ratio(of_source(i, kForeseen), of_source(i, kMisses)));
    json.field("issued_bytes_per_token", ratio(of_source(i, kIssued), tokens));
    json.field("useful_bytes_per_token", ratio(of_source(i, kUseful), tokens));
    json.field("late_bytes_per_token", ratio(of_source(i, kLate), tokens));
    json.field("wasted_bytes_per_token", ratio(of_source(i, kWasted), tokens)).end_object();
  }
  json.end_object();
}

}  // namespace weir
