#include "model/layers/expert_plan.h"

#include <algorithm>
#include <span>

namespace weir::model {

ExpertPlanBuffers::ExpertPlanBuffers(ScratchPlan& scratch, int32_t experts, int32_t top_k,
                                     bool weighs_input)
    : experts_(experts), top_k_(top_k), weighs_input_(weighs_input) {
  const auto ask = [&](int64_t per_row, int64_t fixed) {
    return scratch.ask<int32_t>(BufferUse::kComputing,
                                {.per_row = per_row, .fixed = fixed, .per_member = true});
  };
  plan_ = scratch.ask<ExpertPlan>(BufferUse::kComputing, {.fixed = 1, .per_member = true});
  begin_ = ask(0, experts + 1);
  row_ = ask(top_k, 0);
  slot_ = ask(top_k, 0);
  prompt_begin_ = ask(0, experts);
  active_ = ask(0, experts);
  weight_ = scratch.ask<float>(BufferUse::kComputing,
                               {.per_row = weighs_input ? top_k : 0, .per_member = true});
}

const ExpertPlan& ExpertPlanBuffers::make(const Pass& pass, const int32_t* choice,
                                          const float* weight) const {
  const trace::Scope scope(trace::Kind::kKernel, "expert_groups");
  const auto at = [&](Buffer<int32_t> buffer) { return pass.ws.at(buffer, pass.member); };
  ExpertPlan& p = *pass.ws.at(plan_, pass.member);
  p = {.choice = choice,
       .begin = at(begin_),
       .row = at(row_),
       .slot = at(slot_),
       .prompt_begin = at(prompt_begin_),
       .active = at(active_),
       .weight = weighs_input_ ? pass.ws.at(weight_, pass.member) : nullptr};
  const int32_t slots = pass.rows() * top_k_;
  std::fill(p.begin, p.begin + experts_ + 1, 0);
  for (int32_t i = 0; i < slots; ++i)
    if (choice[i] != kNoExpert) ++p.begin[choice[i] + 1];
  for (int32_t e = 0; e < experts_; ++e) {
    if (p.begin[e + 1] > 0) p.active[p.active_count++] = e;
    p.begin[e + 1] += p.begin[e];
  }
  // begin[e] walks over the expert's slots, and ends where the next expert begins ...
  for (int32_t i = 0; i < slots; ++i) {
    p.slot[i] = choice[i] == kNoExpert ? -1 : p.begin[choice[i]]++;
    if (p.slot[i] < 0) continue;
    p.row[p.slot[i]] = i / top_k_;
    if (weighs_input_) p.weight[p.slot[i]] = weight[i];
  }
  // ... so that shifting by one restores it.
  std::copy_backward(p.begin, p.begin + experts_, p.begin + experts_ + 1);
  p.begin[0] = 0;
  for (int32_t e = 0; e < experts_; ++e) {
    const std::span rows(p.row + p.begin[e], static_cast<size_t>(p.rows_of(e)));
    const auto before = std::ranges::lower_bound(rows, pass.prompt_begin) - rows.begin();
    p.prompt_begin[e] = p.begin[e] + static_cast<int32_t>(before);
  }
  return p;
}

}  // namespace weir::model
