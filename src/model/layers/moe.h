// MoeLayer: a router picks a few experts for each token; tokens are grouped by expert, so that each
// expert's weights are read once a step, and the results are added in the order of the router's
// ranking, so that a token's sum does not depend on what else is in the batch.
//
// Where the experts are is the bank's business (expert_bank.h): it hands them out in waves, each of
// which is activated and projected down; where all experts are in memory, that is one wave.
//
// Threads: as Layer.
#pragma once

#include <optional>
#include <span>

#include "model/expert_bank.h"
#include "model/route_hook.h"

namespace weir::model {

class MoeLayer final : public Layer {
 public:
  // The experts' matrices are bound by `bank`, which outlives the layer.
  MoeLayer(const LayerSource& source, const Moe& spec, ExpertBank& bank);

  // The next layer with experts, whose router may be asked early.
  void set_next(const MoeLayer* next) { next_ = next; }

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& all,
               const kernels::NextWeights& after) const override;
  // The leader tells, where LayerFacts::reads, that these rows, all of them generated tokens, have
  // entered; others will later.
  void expect(const Pass& pass, const RowRange& rows) const;
  kernels::NextWeights first_weights(const Pass&) const override { return {}; }
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  // Where a router's answers go, from the first row of a batch on.
  struct Routes {
    float* input = nullptr;     // [rows, hidden]: what a router reads that has a norm of its own.
    float* scores = nullptr;    // [rows, router_floats()]
    int32_t* choice = nullptr;  // [rows, top_k]: experts, best first, then kNoExpert.
    float* weight = nullptr;    // [rows, top_k]
    bool early = false;         // Of the layer before's input.
  };
  void route(const Pass& pass, int32_t begin, int32_t end) const;
  void choose_rows(const Pass& pass, int32_t begin, int32_t end, const Routes& to) const;
  const int32_t* given_experts(const Pass& pass, int32_t row) const;
  int32_t put_zero_experts_last(int32_t* choice, float* weight) const;
  void look_ahead(const Pass& pass) const;
  Routing answers(const Routes& routes) const;
  void tell(const Pass& pass, const Routes& routes) const;
  // Some of the active experts, by their places in the plan, and the shared one.
  struct Group {
    std::span<const int32_t> places{};
    bool shared = false;

    bool empty() const { return places.empty() && !shared; }
    // -1 is the shared expert's, as an index and as a place.
    int32_t place(int64_t index) const {
      return index < 0 ? -1 : places[static_cast<size_t>(index)];
    }
  };
  void ask_scratch(ScratchPlan& scratch);
  static int32_t rows_of(const Pass& pass, const ExpertPlan& plan, const Group& group);
  void compute_wave(const Pass& pass, const ExpertBank::Wave& wave,
                    const kernels::NextWeights& after) const;
  void clear_failed(const Pass& pass, const ExpertBank::Wave& wave) const;
  void activate(const Pass& pass, const Group& group) const;
  void project_down(const Pass& pass, const Group& group, const kernels::NextWeights& after) const;
  // The network of an active expert, or the shared one's for -1.
  const FfnWeights& network(const ExpertPlan& plan, int32_t place) const {
    return place < 0 ? *shared_ : bound_.experts[static_cast<size_t>(plan.active[place])];
  }

  Moe spec_;
  int32_t hidden_;
  SublayerInput input_;
  SublayerOutput output_;
  Linear router_;
  const float* selection_bias_ = nullptr;  // [experts]
  // [tokens, top_k]: which experts a token has, where the router has such a table.
  const int32_t* token_experts_ = nullptr;
  const float* router_norm_ = nullptr;   // [hidden]: of its own norm.
  const float* expert_scale_ = nullptr;  // [experts]
  ExpertBank& bank_;
  ExpertBank::Layer bound_;
  const MoeLayer* next_ = nullptr;
  std::optional<FfnWeights> shared_;
  Linear shared_gate_;
  int32_t column_multiple_ = 0;  // Of all experts.

  struct RouteBuffers {
    Buffer<float> input, scores;
    Buffer<int32_t> choice;
    Buffer<float> weight;

    RouteBuffers() = default;
    RouteBuffers(ScratchPlan& scratch, BufferUse use, int32_t inputs, int32_t floats,
                 int32_t top_k);
    Routes at(const Pass& pass) const;
  };
  RouteBuffers routes_, seen_;  // Of this layer's router, and of the next one's, asked early.
  ExpertPlanBuffers plan_;
  InnerBuffers inner_, shared_inner_;
  Buffer<float> expert_out_;     // [slots, hidden]
  Buffer<float> shared_out_;     // [rows, hidden]
  Buffer<float> shared_weight_;  // [rows]
  Buffer<float> sum_;            // Per member: [hidden].
};

}  // namespace weir::model
