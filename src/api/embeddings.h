// /v1/embeddings: from a body to engine requests, one for each input, and from their pooled states
// to the answer.
//
// An answer may have more inputs than the engine's queue holds: they are lent to the engine a few
// hundred at a time, so that one client's documents do not turn everybody else away.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "api/embedding_request.h"
#include "api/exchange.h"
#include "api/memory_lease.h"
#include "api/prepare.h"
#include "api/stream.h"

namespace weir::api {

struct PreparedEmbeddings {
  bool base64 = false;
  int32_t dimensions = 0;
  int32_t norm = kNormEuclid;
  MemoryLease whole;                   // For the answer's text.
  std::vector<OwnedRequest> requests;  // By input.
};

// Threads: any. `in.endpoint` is not looked at.
Result<PreparedEmbeddings> prepare_embeddings(const ApiConfig& config, MemoryBudget& budget,
                                              const PrepareInput& in);

// The vector that a client gets: the first `dimensions` of a pooled state, normalised. In place.
void finish_embedding(std::vector<float>& pooled, int32_t dimensions, int32_t norm);

// EmbeddingAnswer: one open answer.
//
// Threads: the loop's; a pool thread writes the JSON once every vector is there, and then alone
// looks at the requests.
//
// Invariants:
// (1) requests_[i] is lent to the engine while i is in open_, and in StreamHost::retired from then
//     on if it was not finished.
// (2) done() is true once nothing is lent, nothing runs in the pool, and the client is answered.
class EmbeddingAnswer : public std::enable_shared_from_this<EmbeddingAnswer> {
 public:
  EmbeddingAnswer(StreamHost& host, ExchangePtr exchange, PreparedEmbeddings prepared,
                  std::string model);

  // Lends the first requests to the engine. An error means that it takes none: the caller answers.
  Result<void> submit();
  // Looks at what has finished, and submits more.
  void poll();
  void fail(const Error& error);
  void abandon();

  int64_t prompt_tokens() const { return figures_.prompt_tokens; }
  bool done() const { return ended_ && !writing_; }

 private:
  void take_finished();
  Result<void> submit_more();
  void end_requests();
  void write();
  std::string answer_json();

  StreamHost& host_;
  const ExchangePtr exchange_;
  PreparedEmbeddings prepared_;
  const std::string model_;
  std::vector<size_t> open_;  // Indices of requests that the engine has.
  size_t next_ = 0;           // The first one that it has not had.
  AnswerFigures figures_;
  bool ended_ = false;    // Answered or abandoned.
  bool writing_ = false;  // The pool has it.
};

}  // namespace weir::api
