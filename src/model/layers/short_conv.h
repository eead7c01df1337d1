// ShortConvLayer: a gated convolution over the last tokens, with their inputs as its state.
//
// Blocks of channels go through the rows of a slice by themselves, one token after the other. So
// how a prompt was cut or batched changes no sum. A block has a piece of a sequence's state
// (ConvBlocks).
//
// Threads: as Layer. Members claim pairs of a slice and a block: no piece of a state has two
// writers.
#pragma once

#include "model/layers/conv_blocks.h"
#include "model/layers/norm_embed.h"

namespace weir::model {

class ShortConvLayer final : public Layer {
 public:
  ShortConvLayer(const LayerSource& source, const ShortConv& spec);

  // What the state of one sequence takes.
  static int64_t state_bytes(const ShortConv& spec);
  static int64_t tape_bytes(const ShortConv& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  ColumnShares<3> input_shares(const Pass& pass) const;
  void project(const Pass& pass) const;
  void follow(const Pass& pass, const BatchSlice& slice, int32_t block) const;

  ShortConv spec_;
  int32_t memory_;  // Which layer of the cache.
  SublayerInput input_;
  SublayerOutput output_;
  Linear before_, after_, x_, out_;  // The gates before and after the convolution.
  ConvBlocks conv_;

  Buffer<float> gates_before_, gates_after_, mixed_;  // [rows, channels]
  FormsBuffer mixed_forms_;
};

}  // namespace weir::model
