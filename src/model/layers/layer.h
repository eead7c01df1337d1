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
  // Before compute(), what is done for all rows at once. Begins after a barrier and ends with one.
  virtual void begin(const Pass&) const {}
  // Begins after a barrier and ends with one. `rows`: all, or, where takes_groups(), one group of
  // them after another. `after`: what this member most likely multiplies by first when it is done.
  virtual void compute(const Pass& pass, const RowRange& rows,
                       const kernels::NextWeights& after) const = 0;
  virtual bool takes_groups() const { return false; }
  // By the leader: these rows have entered, others will later; all of them generated tokens.
  virtual void expect(const Pass&, const RowRange&) const {}
  // It makes something of that.
  virtual bool wants_groups() const { return false; }
  // What this member most likely multiplies by first in compute(); nothing where that is not known
  // before enter().
  virtual kernels::NextWeights first_weights(const Pass& pass) const = 0;
  // Rows [begin, end): adds to the residual stream what compute() has not added already.
  virtual void leave(const Pass& pass, int32_t begin, int32_t end) const = 0;
  // leave() has nothing to do.
  virtual bool leaves_nothing() const = 0;

  // Of one token.
  virtual int64_t weight_bytes() const = 0;
  virtual int64_t macs() const = 0;
};

}  // namespace weir::model
