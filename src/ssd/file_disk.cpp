#include "ssd/file_disk.h"

#include <ctime>
#include <utility>

namespace weir::ssd {

FileDisk::FileDisk(const DiskOptions& options, std::string means)
    : options_(options), means_(std::move(means)), files_(options.keep_cached) {
  name_mode();
}

Result<int32_t> FileDisk::open_file(const std::string& path) {
  Result<int32_t> file = files_.open(path, options_.direct);
  name_mode();
  return file;
}

bool FileDisk::leave_direct(int32_t file) {
  const bool left = files_.leave_direct(file);
  name_mode();
  return left;
}

uint64_t FileDisk::CpuScope::thread_cpu_ns() {
  timespec now{};
  (void)::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace weir::ssd
