// /v1/embeddings: from a body to a batch, an engine request for each input, whose pooled states
// become the answer's vectors.
//
// Threads: pure functions, for the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "api/stream/batch_answer.h"
#include "api/vectors/embedding_request.h"

namespace weir::api::vectors {

// How a protocol writes an answer of vectors: what stands before them, each, and the rest.
class VectorsShape {
 public:
  virtual ~VectorsShape() = default;
  virtual void append_head(std::string& out) const = 0;
  virtual void append_item(std::string& out, size_t item, std::span<const float> vector) const = 0;
  virtual void append_tail(std::string& out, int64_t prompt_tokens) const = 0;
};

// What every protocol's request for vectors ends in.
Result<PreparedBatch> prepare_vectors(const ServingContext& serving, MemoryBudget& budget,
                                      const PrepareInput& in, const EmbeddingRequest& request,
                                      std::unique_ptr<VectorsShape> shape);

// `in.endpoint` is not looked at.
Result<PreparedBatch> prepare_embeddings(const ServingContext& serving, MemoryBudget& budget,
                                         const PrepareInput& in);

// Gives a vector the norm of 1 that `norm` says (kNormEuclid), in place.
void normalise(std::span<float> vector, int32_t norm);

}  // namespace weir::api::vectors
