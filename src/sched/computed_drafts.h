// ComputedDrafts: drafts of a model's drafter (exec/drafter.h), which computes beside steps to keep
// up with the texts. That costs a part of each step, so the controller says when it does; a
// sequence that it has left begins anew.
//
// Threads: as DraftSource.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "exec/drafter.h"
#include "sched/draft_source.h"

namespace weir::sched {

class ComputedDrafts final : public DraftSource {
 public:
  // `drafter` outlives it. `running_max`: sequences that may have drafts in one step.
  ComputedDrafts(exec::Drafter& drafter, int32_t running_max);

  DraftKind kind() const override { return kind_; }
  bool computes() const override { return true; }
  int32_t begin(const Request& request, int32_t sequence) override;
  void follow(const exec::StepWork& ran, exec::KeepUp keep_up) override;
  void draft(std::span<DraftOrder> orders) override;

 private:
  // What is computed for one order.
  struct Room {
    std::array<int32_t, kDraftsMax> tokens;
    std::array<float, kDraftsMax> probabilities;
  };

  exec::Drafter& drafter_;
  const DraftKind kind_;
  std::vector<Room> rooms_;
  std::vector<exec::DraftTask> tasks_;
};

}  // namespace weir::sched
