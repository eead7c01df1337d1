// Reads /proc/PID/stat, status, limits and fd.
#include "base/process_usage.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

namespace weir {

namespace {

double now_s(clockid_t clock) {
  timespec time{};
  ::clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// False if there is no such process.
bool read_stat(const std::string& folder, ProcessUsage& usage) {
  std::ifstream file(folder + "/stat");
  std::string line;
  if (!std::getline(file, line)) return false;
  // The name, in parentheses, may hold anything. Of the fields after it utime and stime are the
  // 12th and 13th, starttime (since the machine's) the 20th.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string skipped;
  double user = 0, system = 0, start = 0;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  fields >> user >> system;
  for (int i = 0; i < 6; ++i) fields >> skipped;
  fields >> start;
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  usage.cpu_s = (user + system) / ticks;
  usage.start_s = now_s(CLOCK_REALTIME) - now_s(CLOCK_BOOTTIME) + start / ticks;
  return true;
}

void read_status(const std::string& folder, ProcessUsage& usage) {
  std::ifstream file(folder + "/status");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t number = 0;
    if (!(words >> name >> number)) continue;
    if (name == "VmSize:") usage.virtual_bytes = number << 10;
    if (name == "VmHWM:") usage.resident_bytes_max = number << 10;
    if (name == "VmRSS:") usage.resident_bytes = number << 10;
    if (name == "Threads:") usage.threads = static_cast<int32_t>(number);
  }
}

int64_t files_max(const std::string& folder) {
  std::ifstream file(folder + "/limits");
  constexpr std::string_view kName = "Max open files";
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(kName)) continue;
    int64_t number = 0;
    std::istringstream words(line.substr(kName.size()));
    return words >> number ? number : std::numeric_limits<int64_t>::max();  // "unlimited".
  }
  return 0;
}

// Ten thousand connections are not to be listed where the folder's size says it (Linux 6.2).
int32_t open_files(const std::string& folder, bool ours) {
  struct stat info {};
  if (::stat((folder + "/fd").c_str(), &info) == 0 && info.st_size > 0)
    return static_cast<int32_t>(info.st_size);
  int32_t count = 0;
  std::error_code error;
  for (std::filesystem::directory_iterator it(folder + "/fd", error), end; !error && it != end;
       it.increment(error))
    ++count;
  return ours ? std::max(count - 1, 0) : count;  // Of ours, one is that of this look.
}

}  // namespace

ProcessUsage process_usage(int32_t pid) {
  ProcessUsage usage;
  const std::string folder = "/proc/" + (pid == 0 ? "self" : std::to_string(pid));
  if (pid < 0 || !read_stat(folder, usage)) return usage;
  read_status(folder, usage);
  usage.open_files_max = files_max(folder);
  usage.open_files = open_files(folder, pid == 0 || pid == ::getpid());
  usage.is_known = true;
  return usage;
}

}  // namespace weir
