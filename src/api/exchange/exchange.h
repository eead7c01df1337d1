// Exchange: one HTTP request and its answer: the headers that every answer has, errors in the shape
// of the protocol that is asked, one line in the access log.
//
// Threads: the loop's. Shared by all that works on the answer.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/access/cors.h"
#include "api/access/keys.h"
#include "api/access/refusal_turns.h"
#include "api/exchange/api_stats.h"
#include "api/exchange/error_shape.h"
#include "api/request/ignored.h"
#include "base/result.h"
#include "net/http.h"
#include "sched/request.h"

namespace weir::api {

// What an answer from the engine adds to the access log.
struct AnswerFigures {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t output_tokens = 0;
  int64_t given_up_tokens = 0;  // Of attempts that are in no answer's usage. Their caller pays them.
  double queue_s = 0;
  double first_token_s = 0;
  std::string_view finish;  // Of the last choice to end.
};

class Exchange {
 public:
  struct Policy {
    CorsPolicy cors;
    int32_t retry_after_s = 1;
    RefusalTurns* refusals = nullptr;  // Null: all are given at once.
  };

  // `policy` and `stats` outlive the exchange.
  Exchange(const Policy& policy, ApiStats& stats, net::HttpRequest&& request,
           net::HttpResponderPtr responder);

  const net::HttpRequest& request() const { return request_; }
  // The body moves out: requests are long and answers take time.
  std::string take_body() { return std::move(request_.body); }
  void put_body(std::string body) { request_.body = std::move(body); }
  net::HttpResponder& responder() { return *responder_; }
  sched::Clock::time_point arrived() const { return arrived_; }
  // It has waited for its model, which counts neither as its time in the queue nor as its answer's.
  void arrive_now() { arrived_ = sched::Clock::now(); }

  // Each of these answers, and ends the exchange but for those that start.
  void respond(int status, std::string_view content_type, std::string_view body,
               net::HttpResponder::Headers headers = {});
  void respond_json(std::string_view body) { respond(200, "application/json", body); }
  void respond_error(const Error& error, net::HttpResponder::Headers headers = {});
  void respond_refusal(const Key::Refusal& refusal);
  // Of events, or of lines; it may have been started. From then on an error is an event.
  void start_stream(std::string_view content_type);
  void start_parts(std::string_view content_type);  // Of the pieces of one long text.
  void end_stream();
  // The client is gone.
  void abandon();

  // The key that the request came with: the log and the headers name it and its limits, which count
  // what the figures say that the answer used.
  void set_key(std::shared_ptr<Key> key) { key_ = std::move(key); }
  const Key* key() const { return key_.get(); }
  // What this request stores is seen by requests of the same owner: those with its key.
  std::string owner() const { return key_ ? std::to_string(key_->id()) : std::string(); }
  // Whose requests these are, where callers share something fairly: the key, or without one the
  // address. Numbers of keys and of addresses never meet: either all callers have keys or none.
  uint64_t caller() const { return key_ ? key_->id() : request_.peer_id; }
  // The request counts as one of its key's until the answer ends.
  void hold(KeyUse use) { use_ = std::move(use); }
  // Kept until the answer ends: what it needs that is shared.
  void hold(std::shared_ptr<const void> held) { held_ = std::move(held); }
  // How many choices are asked for, once that is known; a refusal is the answer.
  std::optional<Key::Refusal> take_choices(int32_t choices) { return use_.set_choices(choices); }
  // One request more of an answer that needs many (Key::lend()).
  bool lend_place() { return use_.lend(); }
  void give_back_places(int32_t places) { use_.give_back(places); }
  // To be asked before tokens are computed; a refusal is the answer.
  std::optional<Key::Refusal> take_prompt_tokens(int64_t tokens);

  // The answer names it in a header, and the log does. To be called before the answer begins.
  void set_ignored(const Ignored& ignored);

  // For the log; to be set before the answer ends.
  void set_figures(const AnswerFigures& figures) { figures_ = figures; }

  // The headers that every answer has, and the type and text of an error; also for answers that
  // HttpServer gives itself.
  static net::HttpResponder::Headers common_headers(const Policy& policy,
                                                    const net::HttpRequest& request, int status);
  static std::pair<std::string, std::string> error_body(int status, std::string_view message,
                                                        const net::HttpRequest& request);

 private:
  void answer_error(const Error& error, net::HttpResponder::Headers headers);
  void end_with_event(const std::string& event);
  void finish(int status);
  void settle();
  void log_answer(int status) const;

  const Policy& policy_;
  ApiStats& stats_;
  net::HttpRequest request_;
  net::HttpResponderPtr responder_;
  net::HttpResponder::Headers common_;  // The request's id first.
  const sched::Clock::time_point came_ = sched::Clock::now();
  sched::Clock::time_point arrived_ = came_;
  const ErrorShape& errors_;
  AnswerFigures figures_;
  std::string ignored_;  // For the log.
  std::shared_ptr<Key> key_;
  KeyUse use_;
  std::shared_ptr<const void> held_;
  int64_t taken_tokens_ = 0;  // From the key's limit.
  bool streaming_ = false;    // Events have begun.
  bool settled_ = false;      // With the key.
  bool finished_ = false;
};

using ExchangePtr = std::shared_ptr<Exchange>;

// Random hexadecimal digits that cannot be guessed, whatever other ids are known; for request and
// answer ids. The loop's thread.
std::string random_id(std::string_view prefix);
uint64_t random_bits();

}  // namespace weir::api
