// GatedDeltaLayer: linear attention with a state per head and sequence instead of keys and values.
//
// The form computed here is one token after the other, for prompts and generated tokens alike; each
// key head with its value heads goes through the rows of a slice by itself. So how a prompt was cut
// or batched changes no sum. Another form for prompts may follow from what a row is by itself: its
// position, and whether it lies in the prompt.
//
// Each key head has a piece of a sequence's state: the inputs of its convolution that the next
// tokens still need, [taps - 1][its channels], and S of each of its value heads,
// [key_dim][value_dim].
//
// Threads: as Layer. Members claim pairs of a slice and a key head: no piece of a state has two
// writers.
#pragma once

#include "model/layers/norm_embed.h"

namespace weir::model {

class GatedDeltaLayer final : public Layer {
 public:
  GatedDeltaLayer(const LayerSource& source, const GatedDelta& spec);

  // What the state of one sequence takes.
  static int64_t state_bytes(const GatedDelta& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  // What a key head has: channels of the convolution, [q, k, v of each value head], and of values.
  int32_t head_channels() const { return 2 * spec_.key_dim + head_values(); }
  int32_t head_values() const { return spec_.group() * spec_.value_dim; }
  ColumnShares<2> input_shares(const Pass& pass) const;
  void project(const Pass& pass) const;
  void follow(const Pass& pass, const BatchSlice& slice, int32_t head) const;
  void convolve(const Pass& pass, int32_t head, float* history, float* x) const;
  void attend(const Pass& pass, int64_t row, int32_t head, const float* x, float* states) const;
  void convert(const Pass& pass, const ActivationForms::Part& part) const;

  GatedDelta spec_;
  int32_t memory_;  // Which layer of the cache.
  SublayerInput input_;
  SublayerOutput output_;
  // Rows by key head: [q, k, v, z]; [b, a], a number for each value head.
  Linear qkvz_, ba_, out_;
  bool converts_heads_ = false;  // As in AttentionLayer.
  const float* conv_ = nullptr;  // [taps][channels: q of all heads, k of all, v of all]
  const float* a_log_ = nullptr;
  const float* dt_bias_ = nullptr;
  const float* norm_ = nullptr;  // [value_dim]

  Buffer<float> projected_, rates_;  // [rows, qkvz_.n], [rows, ba_.n]
  Buffer<float> attended_;           // [rows, out_.k]
  FormsBuffer attended_forms_;
};

}  // namespace weir::model
