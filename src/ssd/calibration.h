// Calibration: what a disk gives, and how much must be in flight for it. Measured once per disk by
// `weir calibrate`, kept in the user's cache folder, and used whenever that disk is read again.
//
// Threads: functions are of their arguments only; not two measurements of one disk at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "ssd/read_queue.h"

namespace weir::ssd {

struct Calibration {
  struct Point {
    uint64_t window_bytes = 0;
    double bytes_per_second = 0;
  };
  std::string mode;                 // Of the Disk that measured it; another mode, another figure.
  double bytes_per_second = 0;      // At the window below.
  uint64_t window_bytes = 0;        // Smallest in flight that gives 95 % of the best.
  double latency_seconds = 0;       // Median of a 1 MiB read alone.
  bool completes_together = false;  // A burst's completions come at its end: window of two reads.
  std::vector<Point> sweep;
};

struct CalibrationOptions {
  uint32_t read_bytes = uint32_t{1} << 20;  // A multiple of kBlockBytes; about an expert's part.
  double seconds_per_window = 0.3;
  uint64_t window_bytes_min = uint64_t{1} << 20;
  uint64_t window_bytes_max = uint64_t{64} << 20;
  uint64_t seed = 1;  // Of the offsets.
};

// Reads random blocks of the file for about 3 s. The larger the file, the less of it is in a
// drive's own memory; a file below 64 MiB is refused.
Result<Calibration> calibrate(const std::string& path, const CalibrationOptions& options = {});

// The limits of a queue on such a disk.
QueueLimits limits_for(const Calibration& calibration);

std::string to_json(const Calibration& calibration);
Result<Calibration> calibration_from_json(std::string_view text);

// $XDG_CACHE_HOME or ~/.cache, then weir/disk-DEVICE.json, DEVICE being the number of the file
// system that holds `path`.
Result<std::string> calibration_file(const std::string& path);
Result<void> save_calibration(const std::string& path, const Calibration& calibration);
// nullopt: never measured, or the stored text is not one of ours.
std::optional<Calibration> load_calibration(const std::string& path);

}  // namespace weir::ssd
