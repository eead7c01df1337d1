// CpuEncoder: the Encoder of the processor's cores: an encoder::Encoder of pictures, one of sounds,
// or both, run by the team that runs the model.
//
// Threads: as Encoder.
#pragma once

#include <vector>

#include "base/thread_team.h"
#include "encoder/encoder.h"
#include "exec/encoder.h"

namespace weir::exec {

class CpuEncoder final : public Encoder {
 public:
  // All outlive it. One of the encoders may be null.
  CpuEncoder(encoder::Encoder* pictures, encoder::Encoder* sounds, ThreadTeam& team);

  Result<bool> place_weights(const std::function<void(int64_t, int64_t)>& progress,
                             Clock::time_point until) override;
  std::string lost_weights() const override;
  void rest() override;
  bool sees_pictures() const override { return pictures_ != nullptr; }
  bool hears_sounds() const override { return sounds_ != nullptr; }
  int32_t levels() const override { return pictures_ == nullptr ? 0 : pictures_->levels(); }
  Result<int32_t> begin(std::span<const EncodeTask> tasks) override;
  bool advance(int32_t sublayers) override { return runs_->advance(team_, sublayers); }

 private:
  Result<void> begin_pictures(std::span<const EncodeTask> tasks);
  Result<void> begin_sounds(std::span<const EncodeTask> tasks);

  encoder::Encoder* const pictures_;
  encoder::Encoder* const sounds_;
  std::vector<encoder::Encoder*> encoders_;  // Those that there are.
  ThreadTeam& team_;
  encoder::Encoder* runs_ = nullptr;  // The one that has begun something.
  std::vector<encoder::Picture> begun_pictures_;
  std::vector<encoder::Sound> begun_sounds_;
};

}  // namespace weir::exec
