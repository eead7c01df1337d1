// ConvBlocks: a depthwise convolution over the last tokens of a sequence, cut into blocks of
// channels that go through the rows of a slice by themselves. Of a sequence's state each block has
// a piece: the inputs that the next tokens still need, [taps - 1][kBlock].
//
// Threads: immutable after load.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/layers/state_piece.h"

namespace weir::model {

struct ConvBlocks {
  // Whole groups of any quantised layer's activations that reads them.
  static constexpr int32_t kBlock = 128;

  int32_t channels = 0;
  int32_t taps = 0;
  const float* weights = nullptr;  // [taps][channels]
  const float* bias = nullptr;     // [channels], or null.

  int32_t blocks() const { return (channels + kBlock - 1) / kBlock; }
  int32_t first(int32_t block) const { return block * kBlock; }
  int32_t count(int32_t block) const { return std::min(kBlock, channels - first(block)); }
  int64_t piece_floats() const { return int64_t{taps - 1} * kBlock; }
  int64_t state_floats() const { return blocks() * piece_floats(); }

  // The block's channels of a row, in place. `history`: its piece.
  void step(const kernels::Ops& ops, int32_t block, float* history, float* x) const {
    const int32_t at = first(block), n = count(block);
    ops.conv_step({.weights = weights + at,
                   .weight_stride = channels,
                   .history = history,
                   .history_stride = kBlock,
                   .taps = taps},
                  n, x);
    if (bias != nullptr) ops.add_scaled(bias + at, 1, n, x);
  }
};

}  // namespace weir::model
