#include "model/layers/make_layer.h"

#include <algorithm>

#include "model/layers/attention.h"
#include "model/layers/ffn.h"
#include "model/layers/gated_delta.h"
#include "model/layers/latent_attention.h"
#include "model/layers/lightning.h"
#include "model/layers/mamba1.h"
#include "model/layers/mamba2.h"
#include "model/layers/short_conv.h"

namespace weir::model {

namespace {

kv::MemoryNeed need(const Attention& a) {
  return kv::PagedNeed{
      .heads = a.num_kv_heads, .k_dim = a.head_dim, .v_dim = a.v_dim(), .window = a.window};
}
kv::MemoryNeed need(const GatedDelta& d) { return kv::StateNeed{GatedDeltaLayer::state_bytes(d)}; }
kv::MemoryNeed need(const LatentAttention& a) {
  if (a.indexer.heads > 0)  // layers/latent_indexer.h
    return kv::PagedNeed{.heads = 1, .k_dim = a.indexer.dim, .v_dim = a.latent_dim()};
  return kv::PagedNeed{
      .heads = 1, .k_dim = a.latent_dim(), .v_dim = a.kv_rank, .values_in_keys = true};
}
kv::MemoryNeed need(const Lightning& l) { return kv::StateNeed{LightningLayer::state_bytes(l)}; }
kv::MemoryNeed need(const Mamba1& m) { return kv::StateNeed{Mamba1Layer::state_bytes(m)}; }
kv::MemoryNeed need(const Mamba2& m) { return kv::StateNeed{Mamba2Layer::state_bytes(m)}; }
kv::MemoryNeed need(const ShortConv& c) { return kv::StateNeed{ShortConvLayer::state_bytes(c)}; }
kv::MemoryNeed need(const Dense&) { return {}; }
kv::MemoryNeed need(const Moe&) { return {}; }

}  // namespace

kv::MemoryNeed need_of(const Operation& op) {
  return std::visit([](const auto& kind) { return need(kind); }, op);
}

kv::MemoryNeed need_of(const Sublayer& sublayer) {
  return sublayer.memory_of >= 0 ? kv::MemoryNeed{} : need_of(sublayer.op);
}

kv::MemoryNeed convolution_need_of(const Sublayer& sublayer) {
  const auto* attention = std::get_if<Attention>(&sublayer.op);
  if (attention == nullptr || attention->conv_taps == 0 || sublayer.memory_of >= 0) return {};
  return kv::StateNeed{AttentionLayer::state_bytes(*attention)};
}

std::unique_ptr<Layer> LayerBuilder::make_layer(const Sublayer& sublayer, const TokenTable* tokens,
                                                const StreamTable* streams,
                                                const HyperStreams* hyper) {
  const bool own = need_of(sublayer) != kv::MemoryNeed{};
  memory_.push_back(sublayer.memory_of >= 0 ? memory_[static_cast<size_t>(sublayer.memory_of)]
                    : own                   ? memories_++
                                            : -1);
  const bool convolves = convolution_need_of(sublayer) != kv::MemoryNeed{};
  const int state = convolves ? memories_++ : -1;
  scratch_.next_sublayer();
  LayerSource source = {.binder = binder_,
                        .scratch = scratch_,
                        .sublayer = sublayer,
                        .hidden = spec_.hidden_size,
                        .memory = memory_.back(),
                        .state = state,
                        .held = held_};
  source.streams = streams;
  source.hyper = hyper;
  if (tokens != nullptr) {
    source.token_inputs = tokens->inputs();
    source.token_input_width = tokens->width();
  }
  return std::visit([&](const auto& op) { return make(source, op); }, sublayer.op);
}

int LayerBuilder::rope_table(const Rope& rope) {
  auto table = std::ranges::find(ropes_, rope, &RopeTable::rope);
  if (table == ropes_.end()) table = ropes_.emplace(ropes_.end(), rope, context_max_);
  return static_cast<int>(table - ropes_.begin());
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const Attention& op) {
  return std::make_unique<AttentionLayer>(source, op, rope_table(op.rope));
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const GatedDelta& op) {
  return std::make_unique<GatedDeltaLayer>(source, op);
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const LatentAttention& op) {
  return std::make_unique<LatentAttentionLayer>(source, op, rope_table(op.rope));
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const Lightning& op) {
  return std::make_unique<LightningLayer>(source, op);
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const Mamba1& op) {
  return std::make_unique<Mamba1Layer>(source, op);
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const Mamba2& op) {
  return std::make_unique<Mamba2Layer>(source, op);
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const ShortConv& op) {
  return std::make_unique<ShortConvLayer>(source, op);
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const Dense& op) {
  return std::make_unique<FfnLayer>(source, op);
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const Moe& op) {
  auto moe = std::make_unique<MoeLayer>(source, op, bank_);
  if (last_moe_ != nullptr) last_moe_->set_next(moe.get());
  last_moe_ = moe.get();
  return moe;
}

}  // namespace weir::model
