// MoeLayer: a router picks a few experts for each token; tokens are grouped by expert, so that each
// expert's weights are read once a step, and the results are added in the order of the router's
// ranking, so that a token's sum does not depend on what else is in the batch.
//
// Threads: as Layer.
#pragma once

#include "model/layers/ffn.h"

namespace weir::model {

class MoeLayer final : public Layer {
 public:
  MoeLayer(WeightBinder& binder, const ModelSpec& spec, int index);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const kernels::NextWeights& behind) const override;
  kernels::NextWeights first_weights(const Pass&) const override { return {}; }
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  bool leaves_nothing() const override { return false; }
  void raise(WorkspaceSizes& sizes) const override;
  int64_t weight_bytes() const override;
  int64_t macs() const override;

 private:
  void route(const Pass& pass, int32_t begin, int32_t end) const;
  void choose(float* scores, int32_t* choice, float* weight) const;
  void plan(const Pass& pass) const;
  void activate(const Pass& pass) const;
  void project_down(const Pass& pass, const kernels::NextWeights& behind) const;
  // The network of an active expert, or the shared one's for -1.
  const FfnWeights& network(const ExpertPlan& plan, int64_t place) const;

  MoeFfn spec_;
  int32_t hidden_;
  SublayerInput input_;
  SublayerOutput output_;
  Linear router_;
  std::vector<FfnWeights> experts_;
  std::optional<FfnWeights> shared_;
  Linear shared_gate_;
  int32_t column_multiple_ = 0;  // Of all experts.
};

}  // namespace weir::model
