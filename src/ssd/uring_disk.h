// A Disk on io_uring, the only thing that knows liburing.
#pragma once

#include <memory>

#include "ssd/disk.h"

namespace weir::ssd {

// Fails where the kernel refuses io_uring (EPERM, ENOSYS), or does not read by it. `options.uring`
// is the caller's business.
Result<std::unique_ptr<Disk>> make_uring_disk(const DiskOptions& options);

}  // namespace weir::ssd
