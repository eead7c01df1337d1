// HttpAnswer: the HttpResponder of one request on one connection.
//
// Threads: the loop's.
//
// Invariants:
// (1) connection_ is set from the request until the answer is complete or the connection is gone.
// (2) Both callbacks are released when connection_ becomes null, which breaks the cycle of an
//     application object that holds the responder and is held by its callbacks.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "net/http.h"

namespace weir::net {

class HttpConnection;

class HttpAnswer final : public HttpResponder {
 public:
  explicit HttpAnswer(HttpConnection* connection) : connection_(connection) {}

  void respond(int status, const Headers& headers, std::string_view body) override;
  void start_stream(int status, const Headers& headers) override;
  void write(std::string_view bytes) override;
  void write(StreamBuffer& buffer) override;
  void end_stream() override;
  size_t queued_bytes() const override;
  void on_drained(std::function<void()> call) override;
  void on_closed(std::function<void()> call) override;
  bool closed() const override;
  void prefetch() const override;

  // The connection tells that the answer is complete, or that it has gone itself.
  void complete();
  void lose();
  void call_drained();
  void forget_callbacks();

 private:
  HttpConnection* connection_;
  bool started_ = false;  // The head of a stream was sent.
  bool lost_ = false;
  std::function<void()> drained_call_, closed_call_;
};

}  // namespace weir::net
