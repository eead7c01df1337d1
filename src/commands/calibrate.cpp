#include "commands/calibrate.h"

#include <cstdio>
#include <filesystem>

#include "kernels/machine_limits.h"
#include "program/machine_speed.h"
#include "program/model_choice.h"
#include "ssd/calibration.h"

namespace weir {

namespace {

namespace fs = std::filesystem;

// The largest file of the model: what is read of it is least likely in a cache.
Result<std::string> largest_file(const std::string& folder) {
  std::error_code error;
  fs::path found;
  uintmax_t bytes = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::error_code ignored;
    if (!entry.is_regular_file(ignored) || entry.file_size(ignored) <= bytes) continue;
    found = entry.path();
    bytes = entry.file_size(ignored);
  }
  if (found.empty())
    return fail(ErrorCode::kConfig, folder + ": expected files to read, found none");
  return found.string();
}

Result<void> calibrate_disk(const std::string& folder) {
  WEIR_ASSIGN(const std::string path, largest_file(folder));
  std::printf("disk: reading %s at random, about 3 s ...\n", path.c_str());
  std::fflush(stdout);
  WEIR_ASSIGN(const ssd::Calibration disk, ssd::calibrate(path));
  std::printf("  %s\n", disk.mode.c_str());
  for (const ssd::Calibration::Point& point : disk.sweep)
    std::printf("  %3.0f MiB in flight   %6.2f GB/s%s\n",
                static_cast<double>(point.window_bytes) / (1 << 20), point.bytes_per_second * 1e-9,
                point.window_bytes == disk.window_bytes ? "   <- used" : "");
  std::printf("  1 MiB alone: %.2f ms; completions %s\n", 1e3 * disk.latency_seconds,
              disk.completes_together ? "come together at the end of a burst" : "come one by one");
  WEIR_TRY(ssd::save_calibration(path, disk));
  WEIR_ASSIGN(const std::string file, ssd::calibration_file(path));
  std::printf("  kept in %s\n", file.c_str());
  return {};
}

}  // namespace

Result<void> calibrate_machine(const Options& options) {
  WEIR_ASSIGN(const ModelChoice choice, choose_model(options));
  if (!options.model.empty()) WEIR_TRY(calibrate_disk(choice.model_card.files.folder()));
  std::printf("memory and arithmetic: %d threads, half a second ...\n", choice.threads);
  std::fflush(stdout);
  WEIR_ASSIGN(const kernels::MachineLimits limits,
              kernels::measure_limits(choice.isa, choice.threads));
  std::printf("  read %.1f GB/s, int8 %.2f TOPS\n", limits.read_gb_s, limits.int8_tops);
  WEIR_TRY(save_machine_speed(limits));
  if (options.model.empty())
    std::printf("  kept; --model DIR measures the disk that holds a model, for --stream-experts\n");
  return {};
}

}  // namespace weir
