#include "model/layers/make_layer.h"

#include <algorithm>

#include "model/layers/attention.h"
#include "model/layers/compressed_attention.h"
#include "model/layers/cross_attention.h"
#include "model/layers/ffn.h"
#include "model/layers/gated_delta.h"
#include "model/layers/latent_attention.h"
#include "model/layers/lightning.h"
#include "model/layers/mamba1.h"
#include "model/layers/mamba2.h"
#include "model/layers/short_conv.h"

namespace weir::model {

namespace {

using Needs = std::vector<kv::MemoryNeed>;

template <class Layer, class Spec>
kv::StateNeed state_need(const Spec& spec) {
  return {.bytes = Layer::state_bytes(spec), .tape_bytes = Layer::tape_bytes(spec)};
}

Needs needs(const Attention& a) {
  Needs all = {kv::PagedNeed{.heads = a.num_kv_heads,
                             .k_dim = a.head_dim,
                             .v_dim = a.v_dim(),
                             .window = a.window,
                             .takes_codes = true}};
  if (a.conv_taps > 0) all.emplace_back(state_need<AttentionLayer>(a));
  return all;
}
Needs needs(const CompressedAttention& a) { return CompressedAttentionLayer::needs(a); }
Needs needs(const CrossAttention& a) {
  return {kv::CrossNeed{
      .heads = a.num_heads, .k_dim = a.head_dim, .v_dim = a.head_dim, .rows = a.rows}};
}
Needs needs(const GatedDelta& d) { return {state_need<GatedDeltaLayer>(d)}; }
Needs needs(const LatentAttention& a) {
  if (a.indexer.heads > 0)  // layers/latent_indexer.h
    return {kv::PagedNeed{.heads = 1, .k_dim = a.indexer.dim, .v_dim = a.latent_dim()}};
  return {kv::PagedNeed{
      .heads = 1, .k_dim = a.latent_dim(), .v_dim = a.kv_rank, .values_in_keys = true}};
}
Needs needs(const Lightning& l) { return {state_need<LightningLayer>(l)}; }
Needs needs(const Mamba1& m) { return {state_need<Mamba1Layer>(m)}; }
Needs needs(const Mamba2& m) { return {state_need<Mamba2Layer>(m)}; }
Needs needs(const ShortConv& c) { return {state_need<ShortConvLayer>(c)}; }
Needs needs(const Dense&) { return {}; }
Needs needs(const Moe&) { return {}; }

}  // namespace

std::vector<kv::MemoryNeed> needs_of(const Operation& op) {
  return std::visit([](const auto& kind) { return needs(kind); }, op);
}

std::vector<kv::MemoryNeed> needs_of(const Sublayer& sublayer) {
  return sublayer.memory_of >= 0 ? Needs{} : needs_of(sublayer.op);
}

std::unique_ptr<Layer> LayerBuilder::make_layer(const Sublayer& sublayer, const TokenTable* tokens,
                                                const StreamTable* streams,
                                                const HyperStreams* hyper) {
  const auto own = static_cast<int>(needs_of(sublayer).size());
  memory_.push_back(sublayer.memory_of >= 0 ? memory_[static_cast<size_t>(sublayer.memory_of)]
                    : own > 0               ? memories_
                                            : -1);
  memories_ += own;
  scratch_.next_sublayer();
  LayerSource source = {.binder = binder_,
                        .scratch = scratch_,
                        .sublayer = sublayer,
                        .hidden = spec_.hidden_size,
                        .memory = memory_.back(),
                        .held = held_};
  source.streams = streams;
  source.hyper = hyper;
  source.beside = beside_;
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

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source,
                                          const CompressedAttention& op) {
  const int rope_index = rope_table(op.rope);
  return std::make_unique<CompressedAttentionLayer>(source, op, ropes_, rope_index, context_max_);
}

std::unique_ptr<Layer> LayerBuilder::make(const LayerSource& source, const CrossAttention& op) {
  return std::make_unique<CrossAttentionLayer>(source, op, crosses_++);
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
