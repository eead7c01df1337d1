// HttpAnswer: checks the order of calls and passes them to the connection while there is one.
#include "net/http_answer.h"

#include <utility>

#include "base/check.h"
#include "net/http_connection.h"

namespace weir::net {

void HttpAnswer::respond(int status, const Headers& headers, std::string_view body) {
  if (connection_ == nullptr) return;
  CHECK(!started_);
  connection_->respond(status, headers, body);
}

void HttpAnswer::start_stream(int status, const Headers& headers) {
  if (connection_ == nullptr) return;
  CHECK(!started_);
  started_ = true;
  connection_->start_stream(status, headers);
}

void HttpAnswer::write(std::string_view bytes) {
  if (connection_ == nullptr) return;
  CHECK(started_);
  StreamBuffer buffer;
  buffer.text().append(bytes);
  connection_->write_stream(buffer);
}

void HttpAnswer::write(StreamBuffer& buffer) {
  if (connection_ != nullptr) {
    CHECK(started_);
    connection_->write_stream(buffer);
  }
  buffer.clear();
}

void HttpAnswer::end_stream() {
  if (connection_ == nullptr) return;
  CHECK(started_);
  connection_->end_stream();
}

size_t HttpAnswer::queued_bytes() const {
  return connection_ == nullptr ? 0 : connection_->queued_bytes();
}

void HttpAnswer::on_drained(std::function<void()> call) {
  if (connection_ == nullptr) return;
  drained_call_ = std::move(call);
  if (connection_->queued_bytes() == 0) connection_->defer_drained();
}

void HttpAnswer::on_closed(std::function<void()> call) {
  if (connection_ != nullptr) closed_call_ = std::move(call);
}

bool HttpAnswer::closed() const {
  return lost_ || (connection_ != nullptr && connection_->is_closed());
}

void HttpAnswer::prefetch() const {
  if (connection_ != nullptr) connection_->prefetch();
}

void HttpAnswer::complete() {
  connection_ = nullptr;
  forget_callbacks();
}

void HttpAnswer::lose() {
  connection_ = nullptr;
  lost_ = true;
  drained_call_ = nullptr;
  if (const auto call = std::exchange(closed_call_, nullptr)) call();
}

void HttpAnswer::call_drained() {
  if (const auto call = std::exchange(drained_call_, nullptr)) call();
}

void HttpAnswer::forget_callbacks() {
  drained_call_ = nullptr;
  closed_call_ = nullptr;
}

}  // namespace weir::net
