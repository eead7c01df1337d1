#include "cpu_time.h"

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <fstream>
#include <string>

namespace weir::bench {

namespace {

double microseconds(const timeval& time) {
  return 1e6 * static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec);
}

CpuTime usage(int who) {
  rusage used{};
  ::getrusage(who, &used);
  return {microseconds(used.ru_utime), microseconds(used.ru_stime)};
}

}  // namespace

CpuTime thread_cpu() { return usage(RUSAGE_THREAD); }
CpuTime process_cpu() { return usage(RUSAGE_SELF); }
CpuTime children_cpu() { return usage(RUSAGE_CHILDREN); }

double now_s() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double machine_busy_us() {
  std::ifstream file("/proc/stat");
  std::string name;
  // user nice system idle iowait irq softirq steal, in ticks of all cores.
  double ticks[8] = {};
  file >> name;
  for (double& tick : ticks) file >> tick;
  const double busy = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6] + ticks[7];
  return 1e6 * busy / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

int32_t cores() { return static_cast<int32_t>(::sysconf(_SC_NPROCESSORS_ONLN)); }

}  // namespace weir::bench
