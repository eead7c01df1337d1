// /v1/embeddings: from a body to a batch, an engine request for each input, whose pooled states
// become the answer's vectors.
//
// Threads: pure functions, for the pool.
#pragma once

#include <cstdint>
#include <span>

#include "api/stream/batch_answer.h"
#include "api/vectors/embedding_request.h"

namespace weir::api::vectors {

// `in.endpoint` is not looked at.
Result<PreparedBatch> prepare_embeddings(const ServingContext& serving, MemoryBudget& budget,
                                         const PrepareInput& in);

// Gives a vector the norm of 1 that `norm` says (kNormEuclid), in place.
void normalise(std::span<float> vector, int32_t norm);

}  // namespace weir::api::vectors
