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

class MoeLayer;

// What is said of a layer once, when it is built.
struct LayerFacts {
  int64_t weight_bytes = 0;     // That one token reads.
  int64_t macs = 0;             // Of one token.
  bool leaves_nothing = false;  // leave() has nothing to do.
  bool takes_groups = false;    // compute() may get its rows in groups, one after another.
  // The layer itself, where it reads experts from disk, and so wants to know early what rows are
  // routed to; else null.
  const MoeLayer* reads = nullptr;

  void add(const Linear& weight) {
    weight_bytes += weight.weight_bytes();
    macs += weight.macs();
  }
};

class Layer {
 public:
  virtual ~Layer() = default;

  // Rows [begin, end): the layer's input from the residual stream: norm, quantised forms, routing.
  virtual void enter(const Pass& pass, int32_t begin, int32_t end) const = 0;
  // Begins after a barrier and ends with one. `rows`: all, or, where it takes groups, one group of
  // them after another, of which the first begins with row 0. `after`: what this member most likely
  // multiplies by first when it is done.
  virtual void compute(const Pass& pass, const RowRange& rows,
                       const kernels::NextWeights& after) const = 0;
  // What this member most likely multiplies by first in compute(); nothing where that is not known
  // before enter().
  virtual kernels::NextWeights first_weights(const Pass& pass) const = 0;
  // Rows [begin, end): adds to the residual stream what compute() has not added already.
  virtual void leave(const Pass& pass, int32_t begin, int32_t end) const = 0;

  // In place of all that: phases that end with a barrier, in which all rows leave the keys and
  // values of the residual stream as it is, without the sublayer's norm, and nothing else is
  // computed of them. REQUIRES: members do not enter rows each for themselves.
  virtual void remember(const Pass& /*pass*/) const {}

  virtual LayerFacts facts() const = 0;
};

}  // namespace weir::model
