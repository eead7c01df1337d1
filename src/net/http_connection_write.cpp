// The writing side of HttpConnection: answers, streams, what the socket does not take at once.
#include <utility>

#include "base/check.h"
#include "base/prefetch.h"
#include "base/trace.h"
#include "net/http_answer.h"
#include "net/http_connection.h"
#include "net/http_response.h"

namespace weir::net {

namespace {

// A body up to this size is copied after its head: one buffer costs the kernel less than two.
constexpr size_t kBodyCopiedMax = 4 << 10;

// So much is sealed at once, 16 records of TLS: a large body is not in memory twice more.
constexpr size_t kSealedBytesMax = 256 << 10;

}  // namespace

void HttpConnection::send_error(int status, std::string_view message, const HttpRequest& request) {
  HttpResponder::Headers headers;
  std::pair<std::string, std::string> body{"text/plain", std::string(message) + "\n"};
  if (!server_.orphaned) {
    if (server_.error_headers) headers = server_.error_headers(status, request);
    if (server_.error_body) body = server_.error_body(status, message, request);
  }
  if (is_closed()) return;
  headers.emplace_back("Content-Type", std::move(body.first));
  respond(status, headers, body.second);
}

void HttpConnection::respond(int status, const HttpResponder::Headers& headers,
                             std::string_view body) {
  if (is_closed()) return;
  keep_alive_ = keep_alive_ && !server_.draining;
  std::string& head = server_.head;
  head.clear();
  append_head(head,
              {.status = status,
               .kind = BodyKind::kLength,
               .content_length = body.size(),
               .keep_alive = keep_alive_,
               .date = server_.date_text()},
              headers);
  if (head_only_ || has_no_body(status)) body = {};
  if (body.size() <= kBodyCopiedMax) {
    head += body;
    body = {};
  }
  send(head, body);
  finish_answer();
}

void HttpConnection::start_stream(int status, const HttpResponder::Headers& headers) {
  if (is_closed()) return;
  chunked_ = !parser_.is_http_1_0();
  keep_alive_ = keep_alive_ && chunked_ && !server_.draining;
  std::string& head = server_.head;
  head.clear();
  append_head(head,
              {.status = status,
               .kind = chunked_ ? BodyKind::kChunked : BodyKind::kUntilEnd,
               .keep_alive = keep_alive_,
               .date = server_.date_text()},
              headers);
  send(head);
}

void HttpConnection::write_stream(StreamBuffer& buffer) {
  if (is_closed() || head_only_ || buffer.empty()) return;
  if (queued_bytes() + buffer.size() > server_.limits.stream_queue_bytes_max) return close();
  send(chunked_ ? buffer.as_chunk() : buffer.view());
}

void HttpConnection::end_stream() {
  if (is_closed()) return;
  if (chunked_ && !head_only_) send("0\r\n\r\n");
  finish_answer();
}

void HttpConnection::finish_answer() {
  if (is_closed()) return;  // The answer is lost, which on_closed tells.
  state_ = State::kFlushing;
  if (const auto answer = std::move(answer_)) answer->complete();
  answering_head_ = 0;
  hold_head();
  if (queued_bytes() == 0) on_flushed();
}

void HttpConnection::defer_drained() {
  call_drained_ = true;
  server_.defer(this);
}

// What write_stream() looks at.
void HttpConnection::prefetch() const {
  weir::prefetch(&handle_, sizeof handle_);
  weir::prefetch(&state_);
  weir::prefetch(&sent_bytes_);
}

size_t HttpConnection::queued_bytes() const {
  return queue_.size() + (writing_ ? uv_stream_get_write_queue_size(stream()) : 0);
}

void HttpConnection::send(std::string_view bytes, std::string_view more) {
  if (is_closed()) return;
  if (!tls_) return send_raw(bytes, more);
  if (bytes.size() + more.size() <= kSealedBytesMax) {  // An event, mostly: one write.
    if (!tls_->write(bytes) || !tls_->write(more)) return close();
    return send_sealed();
  }
  for (std::string_view part : {bytes, more}) {
    while (!part.empty()) {
      const std::string_view piece = part.substr(0, kSealedBytesMax);
      part.remove_prefix(piece.size());
      if (!tls_->write(piece)) return close();
      send_sealed();
      if (is_closed()) return;
    }
  }
}

// What the session has for the peer.
void HttpConnection::send_sealed() {
  std::string& sealed = server_.sealed;
  sealed.clear();
  tls_->take_output(sealed);
  if (!sealed.empty()) send_raw(sealed);
  constexpr size_t kKeptBytesMax = 256 << 10;  // Of one large body.
  if (sealed.capacity() > kKeptBytesMax) std::string().swap(sealed);
}

// An end that is announced is no truncation. It is not waited for.
void HttpConnection::say_goodbye() {
  if (writing_ || !queue_.empty()) return;
  tls_->shut_down();
  std::string& sealed = server_.sealed;
  sealed.clear();
  tls_->take_output(sealed);
  const uv_buf_t buf = uv_buf_init(sealed.data(), static_cast<unsigned>(sealed.size()));
  if (!sealed.empty()) uv_try_write(stream(), &buf, 1);
}

// One try to write at once; what the socket does not take is copied and sent later.
void HttpConnection::send_raw(std::string_view bytes, std::string_view more) {
  if (is_closed()) return;
  sent_bytes_ += bytes.size() + more.size();
  size_t taken = 0;
  if (!writing_) {
    const trace::Scope scope(trace::Kind::kNetwork, "write");
    const auto buf = [](std::string_view part) {
      return uv_buf_init(const_cast<char*>(part.data()), static_cast<unsigned>(part.size()));
    };
    const uv_buf_t bufs[2] = {buf(bytes), buf(more)};
    const int count = uv_try_write(stream(), bufs, more.empty() ? 1 : 2);
    if (count < 0 && count != UV_EAGAIN) return close();
    taken = count < 0 ? 0 : static_cast<size_t>(count);
  }
  if (taken == bytes.size() + more.size()) return;
  const size_t first = std::min(taken, bytes.size());
  queue_.append(bytes.substr(first)).append(more.substr(taken - first));
  if (!hold_answer()) return close();
  if (!writing_) start_write(/*goes_on=*/false);
}

void HttpConnection::start_write(bool goes_on) {
  writing_ = true;
  sending_.clear();
  sending_.swap(queue_);
  const uv_buf_t buf = uv_buf_init(sending_.data(), static_cast<unsigned>(sending_.size()));
  write_request_.data = this;
  const int error =
      uv_write(&write_request_, stream(), &buf, 1, [](uv_write_t* request, int status) {
        static_cast<HttpConnection*>(request->data)->on_written(status);
      });
  if (error != 0) {
    writing_ = false;
    return close();
  }
  if (!goes_on) {
    // The loop's time is that of when its callback began; how long the answer took to make and to
    // copy since is not the client's.
    server_.loop_impl.update_time();
    write_pace_.begin(server_.now_ms(), bytes_taken_by_peer());
  }
  arm_answer_deadline();
}

void HttpConnection::on_written(int status) {
  writing_ = false;
  if (is_closed()) return;
  if (status < 0) return close();
  if (!queue_.empty()) return start_write(/*goes_on=*/true);
  std::string().swap(sending_);  // A slow moment must not cost memory for ever.
  std::string().swap(queue_);
  hold_answer();
  if (state_ == State::kAnswering) {
    answer_->call_drained();
  } else if (state_ == State::kFlushing) {
    on_flushed();
  }
}

// The answer is written. Ready for the next request, or at the end.
void HttpConnection::on_flushed() {
  server_.disarm(timer);
  if (!keep_alive_ || server_.draining) return end_of_input_ ? close() : begin_linger();
  state_ = State::kReading;
  if (processing_) return;  // process() goes on by itself.
  if (!pending_.empty()) return server_.defer(this);
  if (end_of_input_) return close();
  start_reading();
  arm_read_deadline();
}

// A close with unread bytes would reset the connection, and the client might never see the answer
// (RFC 9112 9.6): we shut down our side, and read until the client closes its own.
void HttpConnection::begin_linger() {
  state_ = State::kLingering;
  std::string().swap(pending_);
  hold_head();
  waiting_since_ms_ = server_.now_ms();
  update_yield();
  server_.arm(timer, server_.now_ms() + server_.limits.linger_timeout_ms);
  if (tls_) {
    tls_->shut_down();
    send_sealed();
    if (is_closed()) return;
  }
  if (uv_shutdown(&shutdown_request_, stream(), nullptr) != 0) return close();
  start_reading();
}

}  // namespace weir::net
