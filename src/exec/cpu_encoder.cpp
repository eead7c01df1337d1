#include "exec/cpu_encoder.h"

#include "base/mapping_guard.h"

namespace weir::exec {

Result<bool> CpuEncoder::place_weights(const std::function<void(int64_t, int64_t)>& progress,
                                       Clock::time_point until) {
  if (!encoder_.pack_until(team_, progress, until)) return false;
  WEIR_TRY(encoder_.files().check());
  return true;
}

std::string CpuEncoder::lost_weights() const {
  if (!MappingGuard::any_lost()) return {};
  for (const FileView* file : encoder_.files().in_place)
    if (file->lost()) return file->check_unchanged().error().message;
  return {};
}

Result<int32_t> CpuEncoder::begin(std::span<const EncodeTask> tasks) {
  pictures_.clear();
  for (const EncodeTask& task : tasks) {
    const int64_t rows = encoder_.feature_rows(task.pixels->views);
    if (rows != task.rows)
      return fail(ErrorCode::kInvalid, "Expected a picture's tokens to be " +
                                           std::to_string(rows) + ", found " +
                                           std::to_string(task.rows));
    pictures_.push_back({.values = task.pixels, .features = task.features});
  }
  WEIR_TRY(encoder_.begin(pictures_));
  return static_cast<int32_t>(tasks.size());
}

}  // namespace weir::exec
