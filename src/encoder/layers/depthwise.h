// DepthwiseConv: a convolution of each number by itself, over rows that lie in a grid.
//
// Threads: immutable after load.
#pragma once

#include "encoder/layers/layer.h"

namespace weir::encoder {

class DepthwiseConv {
 public:
  // Of rows of source.width numbers, to `width`, a multiple of that.
  DepthwiseConv(const LayerSource& source, const Depthwise& conv, int32_t width)
      : in_(source.width),
        out_(width),
        kernel_(conv.kernel),
        weights_(source.binder.depthwise(conv, width)) {}

  // What it gives at a place of a view of Pass::rows.
  void compute(const Pass& pass, const View& view, View::Place place, float* out) const;

 private:
  int32_t in_, out_;
  int32_t kernel_;
  TowerBinder::DepthwiseWeights weights_;
};

}  // namespace weir::encoder
