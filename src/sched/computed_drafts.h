// ComputedDrafts: drafts of a model's drafter (exec/drafter.h), which computes beside every step to
// keep up with the texts, if its drafts are wanted.
//
// Keeping up costs a part of each step. So it goes on for a while after drafts were last asked for,
// and then only for so little of the time that it does not matter; a sequence that it has left
// begins anew where drafts of it are asked for.
//
// Threads: as DraftSource.
#pragma once

#include <array>
#include <chrono>
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
  void follow(const exec::StepWork& ran) override;
  void draft(std::span<DraftOrder> orders) override;

 private:
  using Clock = std::chrono::steady_clock;

  // What is computed for one order.
  struct Room {
    std::array<int32_t, kDraftsMax> tokens;
    std::array<float, kDraftsMax> probabilities;
  };

  exec::Drafter& drafter_;
  const DraftKind kind_;
  int32_t rounds_unasked_ = 0;  // Steps since drafts were last asked for.
  // Seconds that steps have taken of late, and those of keeping up unasked.
  double time_ = 0, unasked_time_ = 0;
  Clock::time_point followed_{};  // When it was last through.
  std::vector<Room> rooms_;
  std::vector<exec::DraftTask> tasks_;
};

}  // namespace weir::sched
