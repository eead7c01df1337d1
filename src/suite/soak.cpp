// soak: a server under mixed load for long, with clients that leave in the middle of their answers.
// What it takes must not grow. It has little room for keys and values, which is soon full: the system
// makes huge pages of memory of which little is in use, so what they have taken and what is resident
// for them differ by more than a leak would.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "load/runner.h"
#include "suite/parts.h"
#include "suite/small_kv.h"
#include "suite/trend.h"

namespace weir::suite {

namespace {

using std::chrono::steady_clock;

constexpr int32_t kClients = 8;
constexpr double kAbortShare = 0.1, kLongShare = 0.05;
// MiB a minute (product goal), once it is warm: after so much of the time.
constexpr double kSlopeMax = 1, kWarmShare = 1.0 / 3;
constexpr double kMinutesJudged = 30;  // SmolLM2's keys are full after 12.
constexpr auto kLookPeriod = std::chrono::seconds(1);

double minutes_of(const Run& run) {
  if (run.options().hours) return 60 * *run.options().hours;
  return run.quick() ? 1 : 10;
}

// Looks at the server's memory once a second, on a thread of its own, while the load is made.
class Watch {
 public:
  explicit Watch(const Server& server)
      : server_(server), begin_(steady_clock::now()), thread_([this] { look(); }) {}
  ~Watch() { end(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  std::vector<Sample> end() {
    ended_.store(true, std::memory_order_relaxed);
    if (thread_.joinable()) thread_.join();
    return std::move(samples_);
  }

 private:
  void look() {
    while (!ended_.load(std::memory_order_relaxed)) {
      const double mib = static_cast<double>(server_.usage().resident_bytes) / (1 << 20);
      const std::chrono::duration<double, std::ratio<60>> at = steady_clock::now() - begin_;
      samples_.push_back({at.count(), mib});
      std::this_thread::sleep_for(kLookPeriod);
    }
  }

  const Server& server_;
  const steady_clock::time_point begin_;
  std::vector<Sample> samples_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;  // Last: it uses the others.
};

load::LoadOptions work_of(const Run& run, const Endpoint& at) {
  load::LoadOptions options = at.load_options();
  options.model = run.model_id();
  options.chat = false;
  options.clients = kClients;
  options.duration_s = 60 * minutes_of(run);
  options.abort_share = kAbortShare;
  options.temperature = 0.8;
  const int32_t context = run.model().context > 0 ? run.model().context : 4096;
  const int32_t words_long = std::clamp(context / 3, 16, 2200);
  options.prompt_words = {8, std::min(200, words_long)};
  options.mix.push_back({.name = "long",
                         .share = kLongShare,
                         .prompt_words = {words_long, words_long},
                         .output_tokens = {16, 64}});
  return options;
}

Result<void> bear(Run& run, const Endpoint& at, const Server* server) {
  const double minutes = minutes_of(run);
  run.say("load for " + number_text(minutes) + " minutes");
  load::Runner runner(work_of(run, at), at.target());
  std::optional<Watch> watch;
  if (server != nullptr) watch.emplace(*server);
  WEIR_TRY(runner.run());
  const load::Figures& figures = runner.figures();
  if (figures.interrupted) return fail(ErrorCode::kCancelled, "interrupted");
  run.add({.name = "answers", .value = static_cast<double>(figures.all().ok)});
  run.add({.name = "broken off by clients", .value = static_cast<double>(figures.all().aborted)});
  run.add({.name = "failed other than by 429 and 503",
           .value = static_cast<double>(figures.all().failed),
           .limit = at_most(0),
           .note = figures.failures()});
  const std::string name = "growth of memory";
  if (!watch) {
    run.skip(name, "it needs the server's process, not only an address");
    return {};
  }
  // In less time what is still becoming warm looks like growth.
  const bool long_enough = minutes >= kMinutesJudged;
  run.add({.name = name,
           .value = slope(watch->end(), kWarmShare * minutes),
           .unit = "MiB/min",
           .limit = long_enough ? std::optional(at_most(kSlopeMax)) : std::nullopt});
  return {};
}

}  // namespace

Result<void> measure_soak(Run& run) {
  if (!run.inside()) {
    WEIR_ASSIGN(const Endpoint* at, run.endpoint());
    return bear(run, *at, nullptr);
  }
  WEIR_TRY(run.stop_server());
  WEIR_ASSIGN(const SmallKv small, small_kv(run));
  WEIR_ASSIGN(Server server, Server::start(run.options(), small.words));
  WEIR_TRY(bear(run, server.endpoint(), &server));
  return server.stop();
}

}  // namespace weir::suite
