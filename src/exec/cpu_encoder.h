// CpuEncoder: the Encoder of the processor's cores: an encoder::Encoder, run by the team that runs
// the model.
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
  // Both outlive it.
  CpuEncoder(encoder::Encoder& encoder, ThreadTeam& team) : encoder_(encoder), team_(team) {}

  Result<bool> place_weights(const std::function<void(int64_t, int64_t)>& progress,
                             Clock::time_point until) override;
  std::string lost_weights() const override;
  void rest() override { encoder_.give_back_scratch(); }
  int32_t levels() const override { return encoder_.levels(); }
  Result<int32_t> begin(std::span<const EncodeTask> tasks) override;
  bool advance(int64_t work) override { return encoder_.advance(team_, work); }
  int64_t work_done() const override { return encoder_.work_done(); }

 private:
  encoder::Encoder& encoder_;
  ThreadTeam& team_;
  std::vector<encoder::Picture> pictures_;
};

}  // namespace weir::exec
