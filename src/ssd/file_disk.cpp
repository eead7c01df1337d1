#include "ssd/file_disk.h"

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

}  // namespace weir::ssd
