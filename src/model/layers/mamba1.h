// Mamba1Layer: a state-space model with states per channel and sequence.
//
// Blocks of channels go through the convolution by themselves, then through the selective scan, one
// token after the other, for prompts and generated tokens alike. So how a prompt was cut or batched
// changes no sum. Of a sequence's state each block of channels has two pieces: the inputs of its
// convolution (ConvBlocks), all blocks' first, and the states of its strips
// (kernels::SelectiveScan).
//
// Threads: as Layer. Members claim pairs of a slice and a block: no piece of a state has two
// writers.
#pragma once

#include <array>

#include "model/layers/attended_heads.h"
#include "model/layers/conv_blocks.h"

namespace weir::model {

class Mamba1Layer final : public Layer {
 public:
  Mamba1Layer(const LayerSource& source, const Mamba1& spec);

  // What the state of one sequence takes.
  static int64_t state_bytes(const Mamba1& spec);
  static int64_t tape_bytes(const Mamba1& spec);

  void enter(const Pass& pass, int32_t begin, int32_t end) const override;
  void compute(const Pass& pass, const RowRange& rows,
               const kernels::NextWeights& after) const override;
  kernels::NextWeights first_weights(const Pass& pass) const override;
  void leave(const Pass& pass, int32_t begin, int32_t end) const override;
  LayerFacts facts() const override;

 private:
  ColumnShares<2> input_shares(const Pass& pass) const;
  void project(const Pass& pass) const;
  void convolve(const Pass& pass, const BatchSlice& slice, int32_t block) const;
  void find_parameters(const Pass& pass) const;
  void normalise(const Pass& pass, int32_t begin, int32_t end) const;
  void find_steps(const Pass& pass) const;
  void follow(const Pass& pass, const BatchSlice& slice, int32_t block) const;
  void scan(const Pass& pass, const RowRange& rows, int32_t block, float* state) const;
  // Of a row: s, then B, then C.
  const float* parameters(const Pass& pass, int64_t row) const {
    return pass.ws.at(parameters_) + row * parameters_in_.n;
  }

  Mamba1 spec_;
  int32_t memory_;  // Which layer of the cache.
  SublayerInput input_;
  AttendedHeads out_;
  Linear x_in_, z_in_;                   // Of the layer's input.
  Linear parameters_in_;                 // Of x. Rows: s, B, C.
  Linear step_in_;                       // Of s.
  ConvBlocks conv_;                      // Of x.
  const float* rate_ = nullptr;          // log2(e) A, in strips.
  const float* skip_ = nullptr;          // D of each channel.
  std::array<const float*, 3> norms_{};  // Weights for s, B and C, or null.

  Buffer<float> x_, z_, steps_;  // [rows, inner]
  Buffer<float> parameters_;     // [rows, parameters()]
};

}  // namespace weir::model
