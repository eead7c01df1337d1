// ResidentBank: the ExpertBank of a model that has all of its experts in memory, where they stay. A
// layer's run is one wave, and costs the barrier that ends it.
//
// Threads: as ExpertBank; immutable after load.
#pragma once

#include <vector>

#include "model/expert_bank.h"

namespace weir::model {

class ResidentBank final : public ExpertBank {
 public:
  explicit ResidentBank(Placer& placer) : placer_(placer) {}

  Placer& placer() override { return placer_; }
  Result<Layer> add_layer(int32_t top_k, std::vector<FfnWeights> experts) override;

  Wave begin(const Pass&, int32_t /*layer*/, const ExpertPlan& plan) override {
    const auto all = std::span(places_).first(static_cast<size_t>(plan.active_count));
    return {.activate = all, .down = all, .last = true};
  }
  std::optional<Wave> next(const Pass& pass, const Wave&) override {
    pass.team.barrier(pass.member);
    return {};
  }

 private:
  Placer& placer_;
  std::vector<std::vector<FfnWeights>> layers_;
  std::vector<int32_t> places_;  // 0, 1, 2, ...: as many as a layer has experts.
};

}  // namespace weir::model
