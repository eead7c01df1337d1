// /v1/embeddings: from a body to engine requests, one for each input, and from their pooled states
// to the answer.
//
// Threads: pure functions, for the pool.
#pragma once

#include <vector>

#include "api/batch_answer.h"
#include "api/embedding_request.h"

namespace weir::api {

// `in.endpoint` is not looked at.
Result<PreparedBatch> prepare_embeddings(const ApiConfig& config, MemoryBudget& budget,
                                         const PrepareInput& in);

// The vector that a client gets: the first `dimensions` of a pooled state, normalised. In place.
void finish_embedding(std::vector<float>& pooled, int32_t dimensions, int32_t norm);

}  // namespace weir::api
