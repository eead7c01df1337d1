#include "model/expert_bank.h"

#include <utility>

namespace weir::model {

ExpertBank::Layer ExpertBank::bind(WeightBinder& binder, int stored_layer, const Moe& spec,
                                   int32_t hidden) {
  const int32_t width = spec.expert.width, count = spec.num_experts;
  const auto place = [&](std::string_view part, int32_t n, int32_t k) {
    return binder.experts(stored_layer, part, count, n, k, spec.expert.bias, placer());
  };
  std::vector<Linear> gate;
  if (spec.expert.gated) gate = place("gate_proj", width, hidden);
  const std::vector<Linear> up = place("up_proj", width, hidden);
  const std::vector<Linear> down = place("down_proj", hidden, width);
  if (binder.failed()) return {};
  std::vector<FfnWeights> experts;
  experts.reserve(up.size());
  for (size_t e = 0; e < up.size(); ++e)
    experts.push_back({.spec = spec.expert,
                       .gate = gate.empty() ? Linear{} : gate[e],
                       .up = up[e],
                       .down = down[e]});
  Result<Layer> layer = add_layer(spec.top_k, std::move(experts));
  if (layer) return *layer;
  binder.refuse(std::move(layer).error());
  return {};
}

}  // namespace weir::model
