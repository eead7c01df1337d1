// BatchAnswer: one open answer that several engine requests make together: embeddings, scores of
// documents, transcripts of long recordings. It is written when all of them are finished, or in
// events as they are.
//
// An answer may have more requests than the engine's queue holds: what they need waits here, and
// becomes requests as the queue has places for them (QueueShare). Of a finished request only the
// result is kept. A long answer is made and sent in pieces, as the client takes them, so that its
// memory is that of the results and not that of their JSON.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
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
// Threads: one at a time; work(), in the pool; finish(), and what appends a whole answer, there too,
// once every result is kept; the rest on the loop, which only asks prompt_tokens() during work().
class BatchTask {
 public:
  virtual ~BatchTask() = default;

  // What the next request takes of memory; none: there is none, at least until another is kept.
  virtual std::optional<size_t> next_bytes() const = 0;
  // Makes it. REQUIRES: there is one.
  virtual std::unique_ptr<sched::Request> next() = 0;
  // The engine has it; the number by which keep() will know it.
  virtual size_t take_next() = 0;
  // Takes the result from its finished request; there may be further requests then.
  virtual void keep(size_t number, sched::Request& finished) = 0;

  // What is slow to make of a result that was kept: work() does some of it. Requests may follow.
  virtual bool has_work() const { return false; }
  virtual void work() {}

  // How many tokens a request counts as that the engine has begun, and how many the answer has.
  virtual int64_t prompt_tokens(const sched::Request& request) const {
    return std::ssize(request.prompt);
  }
  virtual int64_t output_tokens() const { return 0; }
  // Prompts and outputs of requests that were made again, which the answer does not count.
  virtual int64_t given_up_tokens() const { return 0; }

  virtual std::string_view content_type() const { return "application/json"; }

  // An answer that is sent whole. Looks at the results before anything is written; how many items
  // the answer lists.
  virtual Result<size_t> finish() { return 0; }
  // Its text: what stands before the items, each of them with what parts it from the one before,
  // and the rest.
  virtual void append_head(std::string& /*out*/) const {}
  virtual void append_item(std::string& /*out*/, size_t /*item*/) const {}
  virtual void append_tail(std::string& /*out*/, int64_t /*prompt_tokens*/) const {}

  // An answer in events: those that can be told by now and were not; after the last keep() also
  // those that end it.
  virtual bool streams() const { return false; }
  virtual void append_events(std::string& /*out*/) {}
};

// A task of one request for each of a list of prompts, whose answer is a JSON array with something
// around it.
class PromptTask : public BatchTask {
 public:
  // Before anything else, and once. `request_bytes`: of a request beside its prompt.
  void set_prompts(PromptList prompts, size_t request_bytes) {
    prompts_ = std::move(prompts);
    request_bytes_ = request_bytes;
  }

  std::optional<size_t> next_bytes() const final {
    if (next_ == prompts_.size()) return std::nullopt;
    return request_bytes_ + prompts_.tokens(next_) * sizeof(int32_t);
  }
  std::unique_ptr<sched::Request> next() final { return request(prompts_.at(next_)); }
  size_t take_next() final {
    prompts_.drop(next_);
    return next_++;
  }

 protected:
  // The engine's request for one prompt; its number is the prompt's.
  virtual std::unique_ptr<sched::Request> request(std::vector<int32_t> prompt) const = 0;

 private:
  PromptList prompts_;
  size_t request_bytes_ = 0;
  size_t next_ = 0;  // The first prompt that the engine has not had.
};

struct PreparedBatch {
  MemoryLease whole;          // For the results and the answer's text, until it is sent.
  MemoryLease computing;      // For what waits, and `lent_bytes`, until all is computed.
  size_t lent_bytes = 0;      // The most that requests may take which the engine has.
  int64_t prompt_tokens = 0;  // Of all requests.
  int32_t priority = 0;
  ChosenAdapter adapter;
  std::unique_ptr<BatchTask> task;
  Ignored ignored;  // What the answer does not do of what was asked.
};

// Threads: the loop's; a pool thread makes the JSON once every request is finished, and then alone
// looks at the task and the piece; before that it does the task's slow work, and then looks at the
// task.
//
// Invariants:
// (1) A request is lent to the engine while it is in open_, and is in StreamHost::retired from then
//     on if it was not finished.
// (2) done() is true once nothing is lent, nothing runs in the pool, and the client is answered;
//     nothing is leased then.
class BatchAnswer : public std::enable_shared_from_this<BatchAnswer> {
 public:
  // `next_id`: of the next request of this process; it outlives the answer.
  BatchAnswer(StreamHost& host, ExchangePtr exchange, PreparedBatch prepared, uint64_t& next_id);

  // Lends the first requests to the engine. An error means that it takes none: the caller answers.
  Result<void> submit();
  // Looks at what has finished, and submits more.
  void poll();
  // Sends a comment after a long silence of events.
  void keep_alive(sched::Clock::time_point now);
  // Ends the answer if it has waited or taken too long.
  void expire(sched::Clock::time_point now);
  // The time since it arrived, if the engine has begun none of its requests; else 0.
  double waiting_seconds(sched::Clock::time_point now) const;
  // Adds the requests that the engine has.
  void list_open(std::vector<OpenRequest>& list, sched::Clock::time_point now) const;
  // Nothing happens to a whole answer that the client has begun to read.
  void fail(const Error& error, net::HttpResponder::Headers headers = {});
  void abandon();

  uint64_t caller() const { return exchange_->caller(); }
  int64_t prompt_tokens() const { return prepared_.prompt_tokens; }
  bool done() const { return ended_ && !making_; }
  // Nothing is left but to hand the client what is computed.
  bool ending() const { return started_ && !making_; }

 private:
  // What the engine has.
  struct Open {
    size_t bytes = 0;
    std::unique_ptr<sched::Request> request;
    size_t number = 0;  // By which the task knows it.
  };

  void take_finished();
  bool take_place();
  Result<void> submit_more();
  void give_back(size_t places);
  void end_requests();
  AnswerFigures figures_so_far() const;
  void set_figures();
  bool send_events();
  void do_work();
  void make_piece();
  void write_piece();
  void send();
  void send_piece();
  void wait_for_client();
  void end();
  void release();

  StreamHost& host_;
  const ExchangePtr exchange_;
  uint64_t& next_id_;
  PreparedBatch prepared_;
  std::vector<Open> open_;
  size_t open_bytes_ = 0;
  AnswerFigures figures_;
  bool any_finished_ = false;
  int64_t computed_tokens_ = 0;  // Of requests that have finished.
  sched::Clock::time_point last_write_ = sched::Clock::now();  // Of events.

  // The pool's while it makes a piece.
  std::optional<Result<size_t>> items_;  // How many there are, once they were looked at.
  size_t next_item_ = 0;
  std::string piece_;
  bool last_ = false;  // piece_ is the end of the answer.

  size_t piece_begin_ = 0;  // Of what is not sent of it.
  bool started_ = false;    // The headers are sent, and pieces follow.
  bool paused_ = false;     // Waits for the client to take what is queued.
  bool making_ = false;     // The pool makes a piece, or does the task's work.
  bool ended_ = false;      // Answered or abandoned.
};

}  // namespace weir::api
