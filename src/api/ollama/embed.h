// /api/embed and the older /api/embeddings: vectors for texts.
//
// Threads: pure functions, for the pool.
#pragma once

#include <vector>

#include "api/reference/endpoint_table.h"
#include "api/stream/batch_answer.h"

namespace weir::api::ollama {

Result<PreparedBatch> prepare_embed(const ServingContext& serving, MemoryBudget& budget,
                                    const PrepareInput& in);
// One text, and its vector as the model has it.
Result<PreparedBatch> prepare_embeddings(const ServingContext& serving, MemoryBudget& budget,
                                         const PrepareInput& in);

// Their fields, for the reference.
std::vector<FieldDoc> embed_fields();
std::vector<FieldDoc> embeddings_fields();

}  // namespace weir::api::ollama
