// Reads /proc/PID/stat and /proc/PID/status.
#include "process_usage.h"

#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace weir::load {

ProcessUsage process_usage(int32_t pid) {
  ProcessUsage usage;
  const std::string folder = "/proc/" + std::to_string(pid);
  std::ifstream stat(folder + "/stat");
  std::string line;
  if (pid <= 0 || !std::getline(stat, line)) return usage;
  // The name, in parentheses, may hold anything; utime and stime are the 12th and 13th fields
  // behind.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  usage.cpu_s = (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  std::ifstream status(folder + "/status");
  for (std::string word; status >> word;) {
    double kb = 0;
    if (word == "VmRSS:" && status >> kb) usage.memory_mib = kb / 1024;
    if (word == "VmHWM:" && status >> kb) usage.memory_max_mib = kb / 1024;
  }
  usage.is_known = true;
  return usage;
}

}  // namespace weir::load
