#include "suite/machine_load.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <string>
#include <thread>

namespace weir::suite {

namespace {

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// User, nice, system, irq, softirq of /proc/stat's first line; idle and waiting left out.
double machine_s() {
  std::ifstream file("/proc/stat");
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0;
  file >> name >> user >> nice >> system >> idle >> waiting >> irq >> softirq;
  return (user + nice + system + irq + softirq) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

double usage_s(int who) {
  rusage usage{};
  ::getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// With children that have ended.
double own_s() { return usage_s(RUSAGE_SELF) + usage_s(RUSAGE_CHILDREN); }

}  // namespace

MachineLoad::MachineLoad(double running_s)
    : begin_s_(now_s()), all_s_(machine_s()), own_s_(own_s() + running_s) {}

double MachineLoad::seconds() const { return now_s() - begin_s_; }

double MachineLoad::others_share(double running_s) const {
  const double cores = std::max(1u, std::thread::hardware_concurrency());
  const double others = (machine_s() - all_s_) - (own_s() + running_s - own_s_);
  return std::clamp(others / std::max(seconds() * cores, 1e-6), 0.0, 1.0);
}

}  // namespace weir::suite
