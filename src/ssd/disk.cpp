#include "ssd/disk.h"

#include <bit>

#include "base/check.h"
#include "base/log.h"
#include "ssd/pread_disk.h"
#include "ssd/uring_disk.h"

namespace weir::ssd {

Result<std::unique_ptr<Disk>> Disk::create(const DiskOptions& options) {
  CHECK(options.depth > 0 && std::has_single_bit(static_cast<uint32_t>(options.depth)));
  CHECK(options.threads > 0);
  if (options.uring) {
    Result<std::unique_ptr<Disk>> disk = make_uring_disk(options);
    if (disk) return disk;
    log::warn("ssd io_uring refused, reading by threads: " + disk.error().message);
  }
  return std::make_unique<PreadDisk>(options);
}

std::chrono::nanoseconds Disk::now() const {
  return std::chrono::steady_clock::now().time_since_epoch();
}

}  // namespace weir::ssd
