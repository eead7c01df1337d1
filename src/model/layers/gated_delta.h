// GatedDeltaLayer: linear attention with a state per head and sequence instead of keys and values.
//
// The form computed here is one token after the other, for prompts and generated tokens alike; each
// key head with its value heads goes through the rows of a slice by itself. So how a prompt was cut
// or batched changes no sum. Another form for prompts may follow from what a row is by itself: its
// position, and whether it lies in the prompt.
//
// Each key head has a piece of a sequence's state: the inputs of its convolution that the next
// tokens still need, [taps - 1][its channels], and S of each of its value heads
// (kernels::DeltaRun).
//
// Threads: as Layer. Members claim pairs of a slice and a key head: no piece of a state has two
// writers.
#pragma once

#include <array>
#include <vector>

#include "model/layers/norm_embed.h"
#include "model/layers/state_piece.h"
#include "model/operations/gated_delta.h"

namespace weir::model {

class GatedDeltaLayer final : public Layer {
 public:
  GatedDeltaLayer(const LayerSource& source, const GatedDelta& spec);

  // What the state of one sequence takes, and a token on its tape.
  static int64_t state_bytes(const GatedDelta& spec);
  static int64_t tape_bytes(const GatedDelta& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  // Weights that a row of the input meets, and, where they are of low rank, those that what the
  // first give meets.
  enum Input : uint8_t { kQ, kK, kV, kGate, kBeta, kDecay };
  static constexpr size_t kInputs = 6;
  static constexpr std::array<Input, 3> kConvolved = {kQ, kK, kV};

  // What a key head has: channels of the convolution, [q, k, v of each value head], and of values.
  int32_t head_channels() const { return 2 * spec_.key_dim + head_values(); }
  int32_t head_values() const { return spec_.group() * spec_.value_dim; }
  // Of a key head in what the input of this kind becomes.
  int32_t head_width(Input kind) const;
  // They lie together, or, where value heads are tiled, each value head's by itself.
  int32_t runs(Input kind) const;
  int64_t run_begin(Input kind, int32_t head, int32_t run) const;  // Among a row's numbers.
  float* head_row(const Pass& pass, Input kind, int64_t row, int32_t head, int32_t run = 0) const;
  kernels::TokenRows head_rows(const Pass& pass, Input kind, int64_t row, int32_t head) const;
  // Of the i-th value head.
  kernels::TokenRows value_rows(const Pass& pass, Input kind, int64_t row, int32_t head,
                                int32_t i) const;
  void bind_inputs(const LayerSource& source);
  void bind_rates(const LayerSource& source);
  void bind_convolution(const LayerSource& source);

  ColumnShares<kInputs> input_shares(const Pass& pass) const;
  ColumnShares<2> second_shares(const Pass& pass) const;
  void project(const Pass& pass) const;
  void project_latents(const Pass& pass) const;
  void exchange_tape(const Pass& pass, const StateTape& tape, int32_t head) const;
  void follow(const Pass& pass, const BatchSlice& slice, int32_t head) const;
  void convolve(const Pass& pass, int64_t row, int32_t head, float* history) const;
  void find_rates(const Pass& pass, int64_t row, int32_t head) const;
  void attend(const Pass& pass, const RowRange& rows, int32_t head, float* states) const;
  void convert(const Pass& pass, const ActivationForms::Part& part) const;

  GatedDelta spec_;
  int32_t memory_;  // Which layer of the cache.
  SublayerInput input_;
  SublayerOutput output_;
  std::array<Linear, kInputs> in_;  // By Input.
  Linear gate_b_, decay_b_;         // From latents; else without rows.
  Linear out_;
  bool converts_heads_ = false;  // As in AttentionLayer.
  struct Taps {
    const float* weights = nullptr;  // [taps][channels of all heads], or of q, k and v.
    int64_t stride = 0;
  };
  std::array<Taps, kConvolved.size()> taps_;  // Of q, k and v.
  std::vector<float> rates_;                  // For each decay, of all value heads.
  const float* dt_bias_ = nullptr;            // So are these.
  const float* norm_ = nullptr;               // [value_dim]

  std::array<Buffer<float>, kInputs> inputs_;  // [rows, n], by Input.
  Buffer<float> gate_latents_, decay_latents_;
  Buffer<float> attended_;  // [rows, out_.k]
  FormsBuffer attended_forms_;
};

}  // namespace weir::model
