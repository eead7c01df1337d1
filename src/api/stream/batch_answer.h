// BatchAnswer: one open answer that several engine requests make together, and that is written when
// all of them are finished: embeddings, scores of documents.
//
// An answer may have more requests than the engine's queue holds: prompts wait here, and become
// requests as the queue has places for them (QueueShare). Of a finished request only the result is
// kept. A long answer is made and sent in pieces, as the client takes them, so that its memory is
// that of the results and not that of their JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/exchange/exchange.h"
#include "api/memory/memory_cost.h"
#include "api/memory/memory_lease.h"
#include "api/memory/prompt_list.h"
#include "api/prompt/prepare.h"
#include "api/stream/stream.h"

namespace weir::api {

// What the requests of a batch compute, and how its answer says it.
//
// Threads: one at a time; request() and keep() on the loop, the rest in the pool, once every result
// is kept.
class BatchTask {
 public:
  virtual ~BatchTask() = default;

  // The engine's request for one prompt.
  virtual std::unique_ptr<sched::Request> request(std::vector<int32_t> prompt) const = 0;
  // Takes the result of the prompt `index` from its finished request.
  virtual void keep(size_t index, const sched::Request& finished) = 0;

  // Looks at the results before anything is written; how many items the answer lists.
  virtual Result<size_t> finish() = 0;
  // The answer's JSON: what stands before the items, each of them, and the rest.
  virtual void append_head(std::string& out) const = 0;
  virtual void append_item(std::string& out, size_t item) const = 0;
  virtual void append_tail(std::string& out, int64_t prompt_tokens) const = 0;
};

struct PreparedBatch {
  MemoryLease whole;         // For the results and the answer's text, until it is sent.
  MemoryLease computing;     // For the prompts, and `lent_bytes`, until all is computed.
  PromptList prompts;        // Not empty.
  size_t request_bytes = 0;  // Of a request beside its prompt.
  size_t lent_bytes = 0;     // The most that requests may take which the engine has.
  int32_t priority = 0;
  ChosenAdapter adapter;
  std::unique_ptr<BatchTask> task;
  Ignored ignored;  // What the answer does not do of what was asked.
};

// Threads: the loop's; a pool thread makes the JSON once every request is finished, and then alone
// looks at the task and the piece.
//
// Invariants:
// (1) A request is lent to the engine while it is in open_, and is in StreamHost::retired from then
//     on if it was not finished.
// (2) done() is true once nothing is lent, nothing runs in the pool, and the client is answered;
//     nothing is leased then.
class BatchAnswer : public std::enable_shared_from_this<BatchAnswer> {
 public:
  // Its requests have the ids from `first_id` on.
  BatchAnswer(StreamHost& host, ExchangePtr exchange, PreparedBatch prepared, uint64_t first_id);

  // Lends the first requests to the engine. An error means that it takes none: the caller answers.
  Result<void> submit();
  // Looks at what has finished, and submits more.
  void poll();
  // Ends the answer if it has waited or taken too long.
  void expire(sched::Clock::time_point now);
  // The time since it arrived, if the engine has begun none of its requests; else 0.
  double waiting_seconds(sched::Clock::time_point now) const;
  // Adds the requests that the engine has.
  void list_open(std::vector<OpenRequest>& list, sched::Clock::time_point now) const;
  // Nothing happens to an answer that the client has begun to read.
  void fail(const Error& error, net::HttpResponder::Headers headers = {});
  void abandon();

  uint64_t caller() const { return exchange_->caller(); }
  int64_t prompt_tokens() const { return prompt_tokens_; }
  bool done() const { return ended_ && !making_; }
  // Nothing is left but to hand the client what is computed.
  bool ending() const { return started_ && !making_; }

 private:
  // What the engine has.
  struct Open {
    size_t bytes = 0;
    std::unique_ptr<sched::Request> request;
    size_t index = 0;  // Of its prompt.
  };

  void take_finished();
  bool take_place();
  Result<void> submit_more();
  void give_back(size_t places);
  void end_requests();
  AnswerFigures figures_so_far() const;
  void make_piece();
  void write_piece();
  void send();
  void send_piece();
  void wait_for_client();
  void end();
  void release();

  StreamHost& host_;
  const ExchangePtr exchange_;
  const uint64_t first_id_;
  const size_t prompts_;
  const int64_t prompt_tokens_;  // Of all.
  PreparedBatch prepared_;
  std::vector<Open> open_;
  size_t open_bytes_ = 0;
  size_t next_ = 0;  // The first prompt that the engine has not had.
  AnswerFigures figures_;
  int64_t computed_tokens_ = 0;  // Of prompts whose requests have finished.

  // The pool's while it makes a piece.
  std::optional<Result<size_t>> items_;  // How many there are, once they were looked at.
  size_t next_item_ = 0;
  std::string piece_;
  bool last_ = false;  // piece_ is the end of the answer.

  size_t piece_begin_ = 0;  // Of what is not sent of it.
  bool started_ = false;    // The headers are sent, and pieces follow.
  bool paused_ = false;     // Waits for the client to take what is queued.
  bool making_ = false;     // The pool makes a piece.
  bool ended_ = false;      // Answered or abandoned.
};

}  // namespace weir::api
