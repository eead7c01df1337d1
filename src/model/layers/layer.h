// Layer: one sublayer, x += post(f(pre(x))): attention or feed-forward, with its weights.
//
// enter() and leave() are row-wise, so that the forward pass runs leave() of one layer and enter()
// of the next in one phase; compute() is everything between, several phases of its own.
//
// Threads: immutable after load; every member calls the same functions in the same order.
#pragma once

#include <cstdint>

#include "model/pass.h"
#include "model/weight_map.h"

namespace weir::model {

class Layer {
 public:
  virtual ~Layer() = default;

  // Rows [begin, end): the layer's input from the residual stream: norm, quantised forms, routing.
  virtual void enter(const Pass& pass, int32_t begin, int32_t end) const = 0;
  // All rows. Begins behind a barrier and ends with one. `behind`: what this member most likely
  // multiplies by first when the layer is done.
  virtual void compute(const Pass& pass, const kernels::NextWeights& behind) const = 0;
  // What this member most likely multiplies by first in compute(); nothing where that is not known
  // before enter().
  virtual kernels::NextWeights first_weights(const Pass& pass) const = 0;
  // Rows [begin, end): adds to the residual stream what compute() has not added already.
  virtual void leave(const Pass& pass, int32_t begin, int32_t end) const = 0;
  // leave() has nothing to do.
  virtual bool leaves_nothing() const = 0;

  virtual void raise(WorkspaceSizes& sizes) const = 0;
  // Of one token.
  virtual int64_t weight_bytes() const = 0;
  virtual int64_t macs() const = 0;
};

}  // namespace weir::model
