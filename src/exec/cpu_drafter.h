// CpuDrafter: the Drafter of a CpuExecutor: a model::Drafter, whose passes are the team's between
// two steps.
//
// Threads: as Executor.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_team.h"
#include "exec/drafter.h"
#include "kv/kv_cache.h"
#include "model/drafts/drafter.h"

namespace weir::exec {

class CpuDrafter final : public Drafter {
 public:
  // All outlive it. `rows_max`: of a step.
  CpuDrafter(model::Drafter& drafter, const kv::KvCache& cache, ThreadTeam& team, int32_t rows_max);

  std::string_view kind() const override;
  int32_t drafts_max() const override { return drafter_.drafts_max(); }
  void follow(const StepWork& ran, KeepUp keep_up) override;
  void draft(std::span<DraftTask> tasks) override;

 private:
  void add_slice(const StepWork& ran, int32_t slice, bool guesses);

  model::Drafter& drafter_;
  ThreadTeam& team_;
  // Of a round. Tokens have room for those of a step, and one more of each slice.
  std::vector<model::DraftSlice> slices_;
  std::vector<int32_t> tokens_;
  std::vector<model::DraftTask> tasks_;
};

}  // namespace weir::exec
