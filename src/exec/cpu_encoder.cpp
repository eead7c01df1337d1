#include "exec/cpu_encoder.h"

#include <algorithm>

#include "base/check.h"
#include "base/mapping_guard.h"

namespace weir::exec {

namespace {

Result<void> check_rows(const char* whose, int64_t rows, const EncodeTask& task) {
  if (rows == task.rows) return {};
  return fail(ErrorCode::kInvalid, std::string("Expected ") + whose + " tokens to be " +
                                       std::to_string(rows) + ", found " +
                                       std::to_string(task.rows));
}

}  // namespace

CpuEncoder::CpuEncoder(encoder::Encoder* pictures, encoder::Encoder* sounds, ThreadTeam& team)
    : pictures_(pictures), sounds_(sounds), team_(team) {
  for (encoder::Encoder* encoder : {pictures, sounds})
    if (encoder != nullptr) encoders_.push_back(encoder);
  CHECK(!encoders_.empty());
}

Result<bool> CpuEncoder::place_weights(const std::function<void(int64_t, int64_t)>& progress,
                                       Clock::time_point until) {
  for (encoder::Encoder* encoder : encoders_) {
    if (!encoder->pack_until(team_, progress, until)) return false;
    WEIR_TRY(encoder->files().check());
  }
  return true;
}

std::string CpuEncoder::lost_weights() const {
  if (!MappingGuard::any_lost()) return {};
  for (const encoder::Encoder* encoder : encoders_)
    for (const FileView* file : encoder->files().in_place)
      if (file->lost()) return file->check_unchanged().error().message;
  return {};
}

void CpuEncoder::rest() {
  for (encoder::Encoder* encoder : encoders_) encoder->give_back_scratch();
}

// The first ones that are pictures, or sounds, as the first one is.
Result<int32_t> CpuEncoder::begin(std::span<const EncodeTask> tasks) {
  const bool sounds = tasks.front().sound != nullptr;
  const auto other = std::ranges::find_if(
      tasks, [sounds](const EncodeTask& task) { return (task.sound != nullptr) != sounds; });
  const std::span<const EncodeTask> alike(tasks.begin(), other);
  if (sounds) {
    WEIR_TRY(begin_sounds(alike));
  } else {
    WEIR_TRY(begin_pictures(alike));
  }
  return static_cast<int32_t>(alike.size());
}

Result<void> CpuEncoder::begin_pictures(std::span<const EncodeTask> tasks) {
  CHECK(pictures_ != nullptr);
  begun_pictures_.clear();
  for (const EncodeTask& task : tasks) {
    WEIR_TRY(check_rows("a picture's", pictures_->feature_rows(task.pixels->views), task));
    begun_pictures_.push_back({.values = task.pixels, .features = task.features});
  }
  runs_ = pictures_;
  return pictures_->begin(begun_pictures_);
}

Result<void> CpuEncoder::begin_sounds(std::span<const EncodeTask> tasks) {
  CHECK(sounds_ != nullptr);
  begun_sounds_.clear();
  for (const EncodeTask& task : tasks) {
    WEIR_TRY(check_rows("a sound's", sounds_->sound_rows(*task.sound), task));
    const auto numbers = static_cast<size_t>(int64_t{task.rows} * sounds_->width());
    begun_sounds_.push_back({.values = task.sound, .features = task.features.first(numbers)});
    std::ranges::fill(task.features.subspan(numbers), 0.0f);  // No levels are added.
  }
  runs_ = sounds_;
  return sounds_->begin(begun_sounds_);
}

}  // namespace weir::exec
