// From a sublayer's description to the layer that computes it, and to what it remembers: each a
// visit with an overload for every kind of operation.
//
// Threads: one, at load.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "kv/need.h"
#include "model/expert_bank.h"
#include "model/layers/moe.h"
#include "model/layers/token_table.h"
#include "model/rope.h"

namespace weir::model {

// What an operation remembers of a sequence; a sublayer, which may read another's. The layer asks
// KvCache for them by consecutive numbers (LayerSource::memory).
std::vector<kv::MemoryNeed> needs_of(const Operation& op);
std::vector<kv::MemoryNeed> needs_of(const Sublayer& sublayer);

// Builds the layers of one model, in order.
class LayerBuilder {
 public:
  // `bank`: binds the experts of layers that have some. Rope tables are added to `ropes`, which
  // outlives the layers, one for each distinct Rope, of `context_max` positions; what layers
  // compute in is asked of `scratch`.
  LayerBuilder(WeightBinder& binder, const ModelSpec& spec, ExpertBank& bank, int32_t context_max,
               std::vector<RopeTable>& ropes, ScratchPlan& scratch)
      : binder_(binder),
        spec_(spec),
        bank_(bank),
        context_max_(context_max),
        ropes_(ropes),
        scratch_(scratch) {
    const auto held = [](const Sublayer& sublayer) { return sublayer.held; };
    if (std::ranges::any_of(spec.sublayers, held))
      held_ = scratch.ask<float>(BufferUse::kWholePass, {.per_row = spec.hidden_size});
  }

  // So many layers of the cache come before those of these layers.
  void remember_after(int memories) { memories_ = memories; }
  // What stands beside the stream that sublayers read (Sublayer::beside_token).
  void set_beside(Buffer<float> beside) { beside_ = beside; }

  // `tokens`, `streams` and `hyper`: what computes ModelSpec::token_inputs, ::streams and ::hyper,
  // or null.
  std::unique_ptr<Layer> make_layer(const Sublayer& sublayer, const TokenTable* tokens,
                                    const StreamTable* streams, const HyperStreams* hyper);

 private:
  std::unique_ptr<Layer> make(const LayerSource& source, const Attention& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const CompressedAttention& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const CrossAttention& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const GatedDelta& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const LatentAttention& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const Lightning& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const Mamba1& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const Mamba2& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const ShortConv& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const Dense& op);
  std::unique_ptr<Layer> make(const LayerSource& source, const Moe& op);
  int rope_table(const Rope& rope);

  WeightBinder& binder_;
  const ModelSpec& spec_;
  ExpertBank& bank_;
  int32_t context_max_;
  std::vector<RopeTable>& ropes_;
  ScratchPlan& scratch_;
  Buffer<float> held_, beside_;
  std::vector<int> memory_;  // By sublayer: which layer of the cache it reads.
  int memories_ = 0;
  int crosses_ = 0;           // Layers with cross attention so far.
  MoeLayer* last_moe_ = nullptr;
};

}  // namespace weir::model
