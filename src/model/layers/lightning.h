// LightningLayer: linear attention with a state per head and sequence that fades at a fixed rate.
//
// Heads go through the rows of a slice by themselves, one token after the other, for prompts and
// generated tokens alike. So how a prompt was cut or batched changes no sum. Each head has a piece
// of a sequence's state: S, [head_dim][head_dim].
//
// Threads: as Layer. Members claim pairs of a slice and a head: no piece of a state has two
// writers.
#pragma once

#include "model/layers/attended_heads.h"

namespace weir::model {

class LightningLayer final : public Layer {
 public:
  LightningLayer(const LayerSource& source, const Lightning& spec);

  // What the state of one sequence takes.
  static int64_t state_bytes(const Lightning& spec);
  static int64_t tape_bytes(const Lightning& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  ColumnShares<2> input_shares(const Pass& pass) const;
  void project(const Pass& pass) const;
  void follow(const Pass& pass, const BatchSlice& slice, int32_t head) const;
  void finish(const Pass& pass, int32_t begin, int32_t end) const;

  Lightning spec_;
  int32_t memory_;  // Which layer of the cache.
  SublayerInput input_;
  AttendedHeads out_;
  Linear qkv_, gate_;            // Rows of qkv_ by head: [q, k, v].
  const float* norm_ = nullptr;  // [heads, head_dim]
  std::vector<float> decays_;    // Of each head.

  Buffer<float> projected_, gates_;  // [rows, qkv_.n], [rows, gate_.n]
};

}  // namespace weir::model
