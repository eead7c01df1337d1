#include "sched/computed_drafts.h"

#include <algorithm>

#include "base/check.h"

namespace weir::sched {

namespace {

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

void ComputedDrafts::follow(const exec::StepWork& ran, exec::KeepUp keep_up) {
  drafter_.follow(ran, keep_up);
}

void ComputedDrafts::draft(std::span<DraftOrder> orders) {
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
