// /v1/rerank, /v2/rerank and /v1/score: how well documents fit a query, by a model that judges
// (RerankConfig). Each document is one engine request: the prompt asks about it, and its score is
// the probability of the token for yes against that of the token for no.
//
// Threads: pure functions, for the pool.
#pragma once

#include "api/stream/batch_answer.h"

namespace weir::api::vectors {

// `in.endpoint` is not looked at.
Result<PreparedBatch> prepare_rerank(const ServingContext& serving, MemoryBudget& budget,
                                     const PrepareInput& in);
Result<PreparedBatch> prepare_cohere_rerank(const ServingContext& serving, MemoryBudget& budget,
                                            const PrepareInput& in);
Result<PreparedBatch> prepare_score(const ServingContext& serving, MemoryBudget& budget,
                                    const PrepareInput& in);

}  // namespace weir::api::vectors
