#include "sched/computed_drafts.h"

#include <algorithm>

#include "base/check.h"
#include "base/seconds.h"

namespace weir::sched {

namespace {

// Steps for which it keeps up after drafts were last asked for: as many as the longest wait until a
// sequence without drafts is tried again.
constexpr int32_t kAskedRounds = 256;
// The part of all time that keeping up may take beyond that: a quarter of what speculation may
// cost.
constexpr double kUnaskedShare = 0.0025;
// What is left of a second after each step, of steps that count.
constexpr double kKept = 0.998;

DraftKind kind_of(const exec::Drafter& drafter) {
  const auto name = std::ranges::find(kDraftKindNames, drafter.kind());
  CHECK(name != kDraftKindNames.end());
  return static_cast<DraftKind>(name - kDraftKindNames.begin());
}

}  // namespace

ComputedDrafts::ComputedDrafts(exec::Drafter& drafter, int32_t running_max)
    : drafter_(drafter), kind_(kind_of(drafter)), rooms_(static_cast<size_t>(running_max)) {
  tasks_.reserve(rooms_.size());
}

int32_t ComputedDrafts::begin(const Request&, int32_t) {
  return std::min(drafter_.drafts_max(), kDraftsMax);
}

void ComputedDrafts::follow(const exec::StepWork& ran) {
  const Clock::time_point begin = Clock::now();
  const bool asked = rounds_unasked_ < kAskedRounds;
  drafter_.follow(ran, asked || unasked_time_ < kUnaskedShare * time_, asked);
  const Clock::time_point end = Clock::now();
  unasked_time_ = kKept * unasked_time_ + (asked ? 0 : seconds_of(end - begin));
  // An idle while is no step.
  constexpr double kStepMost = 1;
  time_ = kKept * time_ + std::min(seconds_of(end - followed_), kStepMost);
  followed_ = end;
  if (asked) ++rounds_unasked_;
}

void ComputedDrafts::draft(std::span<DraftOrder> orders) {
  rounds_unasked_ = 0;
  tasks_.clear();
  for (DraftOrder& order : orders) {
    Room& room = rooms_[tasks_.size()];
    const size_t count = std::min(order.drafts.size(), static_cast<size_t>(drafter_.drafts_max()));
    tasks_.push_back({.sequence = order.sequence,
                      .memory = order.memory,
                      .position = order.position,
                      .forced = order.pending.last(static_cast<size_t>(order.forced)),
                      .tokens = std::span(room.tokens).first(count),
                      .probabilities = std::span(room.probabilities).first(count)});
  }
  drafter_.draft(tasks_);
  for (size_t i = 0; i < orders.size(); ++i) {
    DraftOrder& order = orders[i];
    order.count = tasks_[i].count;
    for (size_t d = 0; d < static_cast<size_t>(order.count); ++d)
      order.drafts[d] = {.token = rooms_[i].tokens[d],
                         .sureness = Draft::class_of(rooms_[i].probabilities[d])};
  }
}

}  // namespace weir::sched
