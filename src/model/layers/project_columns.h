// One phase's products of several weights with one input: each member claims columns of them.
//
// Threads: as Layer.
#pragma once

#include <array>

#include "model/pass.h"

namespace weir::model {

// Columns of some weights by all rows of their common input; outputs [rows, n] of each.
template <size_t kCount>
void project_columns(const Pass& pass, const std::array<const Linear*, kCount>& weights,
                     const std::array<float*, kCount>& outputs, const Activations& in,
                     const ColumnShares<kCount>& shares, const kernels::NextWeights& after) {
  claim_columns(pass, shares, after,
                [&](const ColumnRange& columns, const kernels::NextWeights& next) {
                  const Linear& weight = *weights[columns.weight];
                  const kernels::GemmRange range = {.rows = pass.rows(),
                                                    .begin = columns.begin,
                                                    .end = columns.end,
                                                    .y = outputs[columns.weight],
                                                    .y_stride = weight.n,
                                                    .next = next};
                  multiply(pass, weight, in, range);
                  add_bias(pass.ops, weight, range);
                });
}

}  // namespace weir::model
