// BatchAnswer: one open answer that several engine requests make together, and that is written when
// all of them are finished: embeddings, scores of documents.
//
// An answer may have more requests than the engine's queue holds: they are lent to the engine a few
// hundred at a time, so that one client's documents do not turn everybody else away.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "api/exchange.h"
#include "api/memory_lease.h"
#include "api/prepare.h"
#include "api/stream.h"

namespace weir::api {

struct PreparedBatch {
  MemoryLease whole;                   // For the answer's text.
  std::vector<OwnedRequest> requests;  // Not empty.
  Ignored ignored;                     // What the answer does not do of what was asked.
  // The answer's JSON, from the finished requests. Runs in the pool.
  std::function<Result<std::string>(std::span<OwnedRequest> requests, int64_t prompt_tokens)> write;
};

// Threads: the loop's; a pool thread writes the JSON once every request is finished, and then alone
// looks at the requests.
//
// Invariants:
// (1) requests[i] is lent to the engine while i is in open_, and in StreamHost::retired from then
//     on if it was not finished.
// (2) done() is true once nothing is lent, nothing runs in the pool, and the client is answered.
class BatchAnswer : public std::enable_shared_from_this<BatchAnswer> {
 public:
  BatchAnswer(StreamHost& host, ExchangePtr exchange, PreparedBatch prepared);

  // Lends the first requests to the engine. An error means that it takes none: the caller answers.
  Result<void> submit();
  // Looks at what has finished, and submits more.
  void poll();
  // Ends the answer if it has waited or taken too long.
  void expire(sched::Clock::time_point now);
  // Since it arrived, if the engine has begun none of its requests; else 0.
  double waiting_seconds(sched::Clock::time_point now) const;
  // Those that the engine has.
  void list_open(std::vector<OpenRequest>& list, sched::Clock::time_point now) const;
  void fail(const Error& error, net::HttpResponder::Headers headers = {});
  void abandon();

  int64_t prompt_tokens() const { return figures_.prompt_tokens; }
  bool done() const { return ended_ && !writing_; }

 private:
  const sched::Request& request(size_t index) const { return *prepared_.requests[index].request; }
  void take_finished();
  Result<void> submit_more();
  void end_requests();
  AnswerFigures figures_so_far() const;
  void write();
  void send(const Result<std::string>& json);

  StreamHost& host_;
  const ExchangePtr exchange_;
  PreparedBatch prepared_;
  std::vector<size_t> open_;  // Indices of requests that the engine has.
  size_t next_ = 0;           // The first one that it has not had.
  AnswerFigures figures_;
  bool ended_ = false;    // Answered or abandoned.
  bool writing_ = false;  // The pool has it.
};

}  // namespace weir::api
