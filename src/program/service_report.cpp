#include "program/service_report.h"

#include <algorithm>

#include "base/log.h"

namespace weir {

namespace {

using std::chrono::duration_cast;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

// While it loads: so often, so much more time. A loop that has six turns without one is stuck.
constexpr milliseconds kExtendEvery{10'000};
constexpr microseconds kExtension{60'000'000};
// A look at the engine in each quarter of the watchdog's time. The last but one may have come just
// before it stood still, so that it has three quarters to move on: more than any phase of a step.
constexpr int kLooks = 4;

std::string line(std::string_view name, int64_t value) {
  return std::string(name) + "=" + std::to_string(value);
}

}  // namespace

void ServiceReport::loading(net::Loop& loop) {
  if (!manager_.is_told()) return;
  stage("");
  loop.every(kExtendEvery.count(), [this] {
    if (!ready_) manager_.say(line("EXTEND_TIMEOUT_USEC", kExtension.count()));
  });
}

void ServiceReport::stage(const std::string& stage) {
  if (ready_) return;
  manager_.say("STATUS=Loading the model" + (stage.empty() ? "" : " (" + stage + ")") + "\n" +
               line("EXTEND_TIMEOUT_USEC", kExtension.count()));
}

void ServiceReport::ready(const std::string& status, net::Loop& loop, sched::Stage& stage) {
  ready_ = true;
  manager_.say("READY=1\nSTATUS=" + status);
  if (manager_.watchdog() == microseconds::zero() || !manager_.is_told()) return;
  const int64_t period_ms = duration_cast<milliseconds>(manager_.watchdog() / kLooks).count();
  loop.every(static_cast<uint64_t>(std::max<int64_t>(period_ms, 1)),
             [this, &stage] { watch(stage); });
}

void ServiceReport::watch(sched::Stage& stage) {
  const uint32_t now = stage.progress().count();
  const bool moved = now != seen_;
  seen_ = now;
  stage.bell().ring();  // One that sleeps, having nothing to do, moves on by that.
  if (moved)
    manager_.say("WATCHDOG=1");
  else if (!is_stuck_)
    log::error("engine does not move: the service manager is no longer told that it is alive");
  is_stuck_ = !moved;
}

// While it loads it says nothing: by "ready" it would say that it is.
void ServiceReport::reloading() {
  if (!ready_) return;
  const auto now = duration_cast<microseconds>(steady_clock::now().time_since_epoch());
  manager_.say("RELOADING=1\n" + line("MONOTONIC_USEC", now.count()));
}

void ServiceReport::reloaded() {
  if (ready_) manager_.say("READY=1");
}

void ServiceReport::stopping(size_t open, std::chrono::seconds time) {
  manager_.say("STOPPING=1\nSTATUS=Ending; open answers: " + std::to_string(open) + "\n" +
               line("EXTEND_TIMEOUT_USEC", duration_cast<microseconds>(time).count()));
}

}  // namespace weir
