// PullAnswer: an open answer of /api/pull: lines that say how far the pull is, or one object when
// it is done. The client's leaving ends the pull; what has come by then stays in the cache, where
// the next one goes on.
//
// Threads: the loop's.
//
// Invariants:
// (1) A pull is open in the store as long as its answer is.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "api/exchange/exchange.h"
#include "api/ollama/model_pages.h"
#include "api/serving/model_store.h"

namespace weir::api::ollama {

class PullAnswer : public std::enable_shared_from_this<PullAnswer> {
 public:
  PullAnswer(ExchangePtr exchange, bool stream) : exchange_(std::move(exchange)), stream_(stream) {}

  // REQUIRES: a shared_ptr owns it; once.
  void begin(ModelStore& store, const std::string& model);
  // Repeats the last line after a long silence.
  void keep_alive(sched::Clock::time_point now, std::chrono::milliseconds silence);
  // Ends the pull, and the answer with the error.
  void fail(const Error& error);

  bool done() const { return done_; }
  const std::string& model() const { return model_; }
  const PullProgress& latest() const { return latest_; }  // Of nothing, before it is known.

 private:
  void start();
  void progress(const PullProgress& progress);
  void end(const Result<void>& result);
  void write(std::string line);
  void abandon();
  void stop();

  // More is not written to a client that does not read: the next line says more than this one.
  static constexpr size_t kQueuedBytesMax = 4 << 10;

  const ExchangePtr exchange_;
  const bool stream_;
  std::string model_;
  PullProgress latest_{};
  bool ended_ = false;  // The pull has.
  std::function<void()> stop_;  // Empty: there is nothing to end.
  std::string last_line_;
  sched::Clock::time_point last_write_{};
  bool started_ = false;  // The lines have begun.
  bool done_ = false;
};

}  // namespace weir::api::ollama
