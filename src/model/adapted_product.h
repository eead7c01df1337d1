// What adapters change of a pass: of linear layers, and of the embedding.
//
// A product's inner half A x is the same for all columns of the output, so layers compute it in a
// phase of its own for the weights that share an input (prepare_adapters()); multiply() of pass.h
// then adds the outer half to the columns of each claim. Where no such phase goes before (routers,
// single experts, a vocabulary's head) each claim computes the inner half for itself.
//
// A row's bits depend on the row and its adapter alone: sums ascend in k and in the rank, whatever
// rows, adapters or claims are beside (decision 18).
//
// Threads: as Layer.
#pragma once

#include <cstdint>
#include <span>

#include "model/pass.h"

namespace weir::model {

// A phase, and its barrier, where an adapter of some row changes one of the weights, all of which
// read `in`; else nothing. Weight i's product has `Activations::prepared` i. `rows`: those that the
// products are of.
void prepare_adapters(const Pass& pass, std::span<const Linear* const> weights,
                      const Activations& in, const RowRange& rows);

// Row `row` of the pass has embedded `token`.
void adapt_embedding(const Pass& pass, const Linear& table, int32_t row, int32_t token, float* out);

}  // namespace weir::model
