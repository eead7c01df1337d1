// ExpertBank: the experts of a model's layers, and where each of them is at present. A layer with
// experts asks its bank and does not know which kind it has: ResidentBank has all of them in
// memory, StreamedBank those that have room in the slots of an ssd::ExpertStore.
//
// A layer's run is a sequence of waves: experts that can be computed at once. Which wave an expert
// is in changes no result.
//   for (std::optional<Wave> wave = begin(); wave; wave = next(*wave))
//     activate its experts; barrier; project them down
//
// Threads: placer(), add_layer() and bind() are called by one thread, at load. Every member of the
// team calls begin() and next(), between the same barriers; where experts are is written in them by
// the leader (member 0), while no member computes experts, and read by all after a barrier.
// expect() and looked_ahead() are called by the leader.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "model/layers/expert_plan.h"
#include "model/layers/ffn.h"
#include "model/placer.h"

namespace weir::model {

class RouteHook;

class ExpertBank {
 public:
  // What a layer keeps of its experts. Of an expert that is in no wave only shapes and forms mean
  // anything.
  struct Layer {
    int32_t number = 0;  // Among those with experts.
    std::span<const FfnWeights> experts;
  };

  // Experts by their places among the active ones of the plan.
  struct Wave {
    std::span<const int32_t> activate{};
    std::span<const int32_t> down{};    // Activated in this wave or before.
    std::span<const int32_t> failed{};  // Cannot be computed; their rows' slices have been told so.
    int turn = 0;                       // 0, 1, 2, ...
    bool last = false;
    bool looks_ahead = false;  // The bank wants to know what the next layer's router says.
  };

  virtual ~ExpertBank() = default;

  // Where experts' matrices go.
  virtual Placer& placer() = 0;
  // The next layer: its experts' matrices have just been placed, first all gates, if there are any,
  // then all of up_proj, then all of down_proj. An error names what the bank cannot do.
  virtual Result<Layer> add_layer(int32_t top_k, std::vector<FfnWeights> experts) = 0;
  // Binds and adds a layer's experts. After an error, which is the binder's, the layer is empty.
  Layer bind(WeightBinder& binder, int stored_layer, const Moe& spec, int32_t hidden);

  // The first wave of the layer's run. `plan`: the member's own, kept until the run is over.
  virtual Wave begin(const Pass& pass, int32_t layer, const ExpertPlan& plan) = 0;
  // Ends a wave with a barrier. Returns the one after it, if there is one.
  virtual std::optional<Wave> next(const Pass& pass, const Wave& done) = 0;

  // It reads what is not there: so it wants to know early what rows are routed to.
  virtual bool reads() const { return false; }
  // REQUIRES: reads(). Some of the step's rows, not all, were routed to these experts of the layer
  // that runs next; they may repeat.
  virtual void expect(int32_t /*layer*/, std::span<const int32_t> /*experts*/) {}
  // REQUIRES: reads(). What the router of `layer` made of the input of the layer that runs: experts
  // [rows, top_k], for rows of generated tokens.
  virtual void looked_ahead(const Pass&, int32_t /*layer*/, const int32_t* /*choice*/) {}

  // The hook of the layers' routers; null: none. It outlives the bank's use, and is set while no
  // step runs.
  void set_route_hook(RouteHook* hook) { route_hook_ = hook; }
  RouteHook* route_hook() const { return route_hook_; }

 private:
  RouteHook* route_hook_ = nullptr;
};

}  // namespace weir::model
