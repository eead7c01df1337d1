// Mamba2Layer: a state-space model with a state per head and sequence.
//
// Blocks of channels go through the convolution by themselves, then heads through their states,
// by runs of tokens that give the bits of one after the other. So how a prompt was cut or batched
// changes no sum. Of a sequence's state each block of channels has a piece, the inputs of its
// convolution (ConvBlocks), and then each head: S, [state_dim][head_dim].
//
// Threads: as Layer. Members claim pairs of a slice and a piece: no piece of a state has two
// writers.
#pragma once

#include <vector>

#include "model/layers/attended_heads.h"
#include "model/layers/conv_blocks.h"

namespace weir::model {

class Mamba2Layer final : public Layer {
 public:
  Mamba2Layer(const LayerSource& source, const Mamba2& spec);

  // What the state of one sequence takes.
  static int64_t state_bytes(const Mamba2& spec);
  static int64_t tape_bytes(const Mamba2& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  ColumnShares<1> input_shares(const Pass& pass) const;
  void project(const Pass& pass) const;
  void scale_inputs(const Pass& pass, int32_t begin, int32_t end) const;
  void convolve(const Pass& pass, const BatchSlice& slice, int32_t block) const;
  void follow(const Pass& pass, const BatchSlice& slice, int32_t head) const;
  void finish(const Pass& pass, int32_t begin, int32_t end) const;

  Mamba2 spec_;
  int32_t memory_;  // Which layer of the cache.
  SublayerInput input_;
  AttendedHeads out_;
  Linear in_;                         // Rows: z, x, B, C, steps.
  bool scales_inputs_ = false;        // By Mamba2::factors.
  ConvBlocks conv_;                   // Of x, B and C.
  std::vector<float> rates_;          // A of each head.
  const float* skip_ = nullptr;       // D of each head.
  const float* step_bias_ = nullptr;  // Of each head.
  const float* norm_ = nullptr;       // [inner], or null.

  Buffer<float> projected_;  // [rows, in_.n]
};

}  // namespace weir::model
