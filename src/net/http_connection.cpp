// The life of a connection: reading and deadlines. What it writes is in http_connection_write.cpp.
#include "net/http_connection.h"

#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/check.h"
#include "net/http_answer.h"

namespace weir::net {

namespace {

// Pipelined bytes that may wait for the answer before them; reading stops beyond.
constexpr size_t kPipelineBytesMax = 64 << 10;
// A body that is not wanted is read and thrown away up to this size, so that the connection can
// be kept: cheaper for both than a new connection.
constexpr uint64_t kDiscardBytesMax = 1 << 20;
// Connections beyond the limit that may carry a 503 away at the same time; the rest are just
// closed.
constexpr int32_t kRefusedMax = 128;
// While reading is stopped libuv does not see a client leave, so we look ourselves.
constexpr uint64_t kPeerCheckMs = 250;
// A vanished host is noticed after this long without traffic (and nine probes).
constexpr unsigned kTcpKeepAliveS = 60;

}  // namespace

HttpConnection::HttpConnection(ServerState& server, Transport transport)
    : server_(server),
      transport_(transport),
      parser_(server.limits.header_bytes_max, server.limits.body_bytes_max, this) {
  timer.owner = this;
  if (transport == Transport::kTcp) {
    uv_tcp_init(server.loop, &handle_.tcp);
    if (server.tls) tls_ = std::make_unique<TlsSession>(*server.tls);
  } else {
    uv_pipe_init(server.loop, &handle_.pipe, 0);
  }
  handle_.base.data = this;
}

int HttpConnection::accept(ServerState& server, uv_stream_t* listener, Transport transport) {
  auto* connection = new HttpConnection(server, transport);
  server.add(connection);
  const int error = uv_accept(listener, connection->stream());
  if (error != 0) {
    connection->close();
    return error;
  }
  if (transport == Transport::kTcp) {
    uv_tcp_nodelay(&connection->handle_.tcp, 1);
    uv_tcp_keepalive(&connection->handle_.tcp, 1, kTcpKeepAliveS);
    connection->peer_id_ = peer_id(connection->peer_address());
  }
  connection->begin();
  return 0;
}

void HttpConnection::begin() {
  for (PeerShare* share : {&place_, &head_, &body_, &small_body_, &queued_}) {
    share->owner = this;
    share->peer = peer_id_;
  }
  server_.count_turn(peer_id_, ReadTurns::kAcceptCost);
  if (take_place()) {
    if (server_.turns.must_wait(peer_id_)) wait_turn();
    start_reading();
    return arm_read_deadline();
  }
  server_.mark_refused(this);
  if (tls_ || server_.refused_count > kRefusedMax) return close();  // TLS: before a handshake.
  refuse(503, "the server has as many connections as it may have");
}

void HttpConnection::close() {
  if (is_closed()) return;
  if (tls_) say_goodbye();
  if (turn_ != 0) server_.turns.leave(peer_id_, std::exchange(turn_, 0));
  give_back_all();
  state_ = State::kClosed;
  server_.disarm(timer);
  uv_close(&handle_.base, [](uv_handle_t* handle) {
    auto* connection = static_cast<HttpConnection*>(handle->data);
    if (const auto answer = std::move(connection->answer_)) answer->lose();
    connection->server_.remove(connection);
    delete connection;
  });
}

void HttpConnection::close_when_idle() {
  if (state_ == State::kReading && !parser_.in_request() && pending_.empty()) close();
}

void HttpConnection::close_if_reading() {
  if (state_ == State::kReading) close();
}

void HttpConnection::forget_callbacks() {
  if (answer_) answer_->forget_callbacks();
}

void HttpConnection::start_reading() {
  if (reading_) return;
  reading_ = true;
  if (turn_ == 0) read_on();
}

void HttpConnection::read_on() {
  const int error = uv_read_start(
      stream(),
      [](uv_handle_t* handle, size_t, uv_buf_t* buf) {
        auto* connection = static_cast<HttpConnection*>(handle->data);
        ServerState& server = connection->server_;
        // Without a buffer libuv reads nothing, and says UV_ENOBUFS.
        const bool waits = server.turns.had_part(connection->peer_id_);
        *buf = uv_buf_init(server.read_buffer.data(), waits ? 0 : server.read_buffer.size());
      },
      [](uv_stream_t* handle, ssize_t count, const uv_buf_t* buf) {
        static_cast<HttpConnection*>(handle->data)->on_read(count, buf->base);
      });
  if (error != 0) close();
}

void HttpConnection::pause_reading() {
  if (!reading_) return;
  reading_ = false;
  if (turn_ == 0) uv_read_stop(stream());
}

void HttpConnection::wait_turn() {
  if (turn_ != 0) return;
  turn_ = server_.wait_turn(peer_id_, this);
  if (reading_) uv_read_stop(stream());
}

void HttpConnection::go_on() {
  turn_ = 0;
  if (reading_) read_on();
}

void HttpConnection::on_read(ssize_t count, const char* data) {
  if (count == 0) return;  // Nothing after all.
  if (count == UV_ENOBUFS) return wait_turn();
  if (count == UV_EOF) return on_end_of_input();
  if (count < 0) return close();  // ECONNRESET and the like.
  const std::string_view bytes(data, static_cast<size_t>(count));
  const bool in_handshake = tls_ && !tls_->established();
  server_.count_read(peer_id_, bytes.size() + (in_handshake ? ReadTurns::kHandshakeCost : 0));
  tls_&& state_ != State::kLingering ? on_sealed_bytes(bytes) : on_bytes(bytes);
  if (!is_closed() && server_.turns.must_wait(peer_id_)) wait_turn();
}

// One read's worth is unsealed at once, so that nothing waits within the session.
void HttpConnection::on_sealed_bytes(std::string_view bytes) {
  tls_->feed(bytes);  // A copy: the buffer is free for what comes out.
  while (!is_closed() && state_ != State::kLingering) {
    const auto [status, size] = tls_->read(server_.read_buffer.data(), server_.read_buffer.size());
    send_sealed();  // The handshake's answer, or an alert.
    if (is_closed()) return;
    switch (status) {
      case TlsSession::Status::kData:
        on_bytes({server_.read_buffer.data(), size});
        break;
      case TlsSession::Status::kMore:
        if (!hold_head()) return refuse_more();
        if (state_ == State::kReading) arm_read_deadline();  // The handshake may be done.
        return;
      case TlsSession::Status::kClosed:
        return on_end_of_input();
      case TlsSession::Status::kFailed:
      case TlsSession::Status::kPlainHttp:
        return fail_tls(status == TlsSession::Status::kPlainHttp);
    }
  }
}

// A client that speaks plain HTTP is told so in HTTP, as it would not understand an alert.
void HttpConnection::fail_tls(bool plain_http) {
  server_.stats.tls_failures.add();
  if (state_ != State::kReading) return close();
  keep_alive_ = false;
  if (plain_http) {
    constexpr std::string_view kBody = "This port speaks HTTPS only: use https://.\n";
    send_raw(
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n"
        "Content-Length: " +
        std::to_string(kBody.size()) + "\r\n\r\n" + std::string(kBody));
  }
  if (!is_closed()) begin_linger();
}

void HttpConnection::on_bytes(std::string_view bytes) {
  switch (state_) {
    case State::kReading:
      // Deferred: what came before these bytes is not parsed yet.
      return pending_.empty() ? process(bytes) : keep_for_later(bytes);
    case State::kAnswering:
    case State::kFlushing:
      return keep_for_later(bytes);
    case State::kLingering:
    case State::kClosed:
      return;
  }
}

void HttpConnection::on_end_of_input() {
  switch (state_) {
    case State::kReading:
      if (pending_.empty()) return close();
      break;
    case State::kFlushing:
      break;
    case State::kAnswering:  // Half a close or a whole one: it looks the same (see HttpResponder).
    case State::kLingering:
    case State::kClosed:
      return close();
  }
  end_of_input_ = true;
  pause_reading();
}

// Parses up to the next request that is not answered at once, or to the end of `bytes`.
void HttpConnection::process(std::string_view bytes) {
  processing_ = true;
  while (state_ == State::kReading) {
    switch (parser_.feed(bytes)) {
      case HttpParser::Event::kMore:
        if (!hold_head()) {
          refuse_head();
          break;
        }
        processing_ = false;
        if (end_of_input_) return close();
        start_reading();
        return arm_read_deadline();
      case HttpParser::Event::kHeaders:
        hold_head() ? begin_body() : refuse_head();
        break;
      case HttpParser::Event::kRequest:
        dispatch();
        break;
      case HttpParser::Event::kError:
        (parser_.error_status() == 503 ? server_.stats.refused_bodies : server_.stats.malformed)
            .add();
        refuse(parser_.error_status(), parser_.error_message());
        break;
    }
  }
  processing_ = false;
  if (state_ == State::kAnswering) {
    if (end_of_input_) return close();
    keep_for_later(bytes);
  } else if (state_ == State::kFlushing && keep_alive_) {
    keep_for_later(bytes);
  }
}

void HttpConnection::keep_for_later(std::string_view bytes) {
  if (ignores_input_) return;
  pending_.append(bytes);
  if (!hold_head()) return refuse_more();
  if (end_of_input_) return;
  if (pending_.size() < kPipelineBytesMax) return start_reading();  // It also sees a client leave.
  pause_reading();
  arm_answer_deadline();
}

void HttpConnection::arm_read_deadline() {
  const HttpLimits& limits = server_.limits;
  const Awaited awaited = tls_ && !tls_->established() ? Awaited::kHandshake
                          : parser_.in_body()          ? Awaited::kBody
                          : parser_.in_request()       ? Awaited::kHeaders
                                                       : Awaited::kRequest;
  // Headers and the next request have one deadline; each piece of a body moves it.
  const bool begins = std::exchange(awaited_, awaited) != awaited;
  const uint64_t now_ms = server_.now_ms();
  if (begins) waiting_since_ms_ = now_ms;
  if (awaited == Awaited::kBody) {
    const std::pair<Pace&, uint64_t> paces[] = {{body_pace_, limits.body_bytes_per_s_min},
                                                {brisk_pace_, limits.body_bytes_per_s_brisk}};
    for (const auto& [pace, bytes_per_s] : paces) {
      if (begins) pace.begin(now_ms, 0);
      pace.move(now_ms, parser_.body_bytes(), bytes_per_s);
    }
    server_.arm(timer, body_pace_.since_ms() + limits.body_timeout_ms);
  } else if (begins) {
    server_.arm(timer, now_ms + (awaited == Awaited::kHandshake ? limits.handshake_timeout_ms
                                 : awaited == Awaited::kHeaders ? limits.header_timeout_ms
                                                                : limits.idle_timeout_ms));
  }
  update_yield();
}

void HttpConnection::arm_answer_deadline() {
  if (state_ != State::kAnswering && state_ != State::kFlushing) return;
  uint64_t deadline_ms = UINT64_MAX;
  if (queued_bytes() > 0) deadline_ms = write_pace_.since_ms() + server_.limits.write_timeout_ms;
  if (!reading_ && !end_of_input_)
    deadline_ms = std::min(deadline_ms, server_.now_ms() + kPeerCheckMs);
  if (deadline_ms != UINT64_MAX) server_.arm(timer, deadline_ms);
}

void HttpConnection::on_deadline() {
  switch (state_) {
    case State::kReading:
      if (!parser_.in_request()) return close();
      return refuse(408, parser_.in_body() ? "the rest of the body did not come in time"
                                           : "the rest of the headers did not come in time");
    case State::kAnswering:
    case State::kFlushing: {
      if (!reading_ && !end_of_input_ && peer_has_hung_up()) return close();
      const HttpLimits& limits = server_.limits;
      const uint64_t now_ms = server_.now_ms();
      write_pace_.move(now_ms, bytes_taken_by_peer(), limits.answer_bytes_per_s_min);
      if (queued_bytes() > 0 && now_ms >= write_pace_.since_ms() + limits.write_timeout_ms) {
        server_.stats.slow_readers.add();
        return close();
      }
      return arm_answer_deadline();
    }
    case State::kLingering:
    case State::kClosed:
      return close();
  }
}

void HttpConnection::run_deferred() {
  if (is_closed()) return;
  if (std::exchange(call_drained_, false) && state_ == State::kAnswering && queued_bytes() == 0)
    answer_->call_drained();
  if (state_ == State::kReading && !pending_.empty()) {
    const std::string bytes = std::exchange(pending_, std::string());
    process(bytes);
  }
}

// The headers are complete: ask for the body, throw it away, or answer without it.
void HttpConnection::begin_body() {
  if (!parser_.has_body()) return;
  parser_.set_peer(peer_id_);
  body_unwanted_ =
      server_.wants_body && !server_.orphaned && !server_.wants_body(parser_.request());
  if (!body_unwanted_) {
    if (parser_.expects_continue()) send("HTTP/1.1 100 Continue\r\n\r\n");
    return;
  }
  parser_.discard_body();
  if (!parser_.is_chunked() && parser_.content_length() <= kDiscardBytesMax &&
      !parser_.expects_continue())
    return;
  ignores_input_ = true;
  dispatch();
}

void HttpConnection::dispatch() {
  server_.disarm(timer);
  awaited_ = Awaited::kNothing;
  server_.stats.requests.add();
  server_.count_turn(peer_id_, ReadTurns::kRequestCost);
  answering_head_ = parser_.head_memory();
  HttpRequest request = ignores_input_ ? parser_.abandon() : parser_.take_request();
  request.without_body = std::exchange(body_unwanted_, false);
  request.peer = peer();
  request.peer_id = peer_id_;
  request.id = server_.stats.requests.value();
  keep_alive_ = parser_.keep_alive() && !ignores_input_ && !server_.draining;
  head_only_ = request.method == "HEAD";
  state_ = State::kAnswering;
  update_yield();
  answer_ = std::make_shared<HttpAnswer>(this);
  if (!server_.orphaned) server_.handler(std::move(request), answer_);
}

void HttpConnection::refuse(int status, std::string_view message) {
  keep_alive_ = false;
  ignores_input_ = true;
  server_.disarm(timer);
  const HttpRequest request = parser_.abandon();
  std::string().swap(pending_);
  hold_head();  // Nothing any more, though the client may linger.
  head_only_ = request.method == "HEAD";
  send_error(status, message, request);
}

void HttpConnection::refuse_head() {
  server_.stats.refused_heads.add();
  refuse(503, "the server is reading as many bytes of headers as it may hold");
}

// Ends what no client can be told about: an answer is under way, or a handshake.
void HttpConnection::refuse_more() {
  server_.stats.refused_heads.add();
  close();
}

bool HttpConnection::peer_has_hung_up() const {
  uv_os_fd_t fd = -1;
  if (uv_fileno(&handle_.base, &fd) != 0) return true;
  pollfd state{fd, POLLRDHUP, 0};
  return ::poll(&state, 1, 0) > 0;
}

// The kernel reports a full socket as writable only when a third of it (over 1 MB) is free again,
// so what lies in it is counted too: a slow client still moves.
uint64_t HttpConnection::bytes_taken_by_peer() const {
  uv_os_fd_t fd = -1;
  int in_socket = 0;
  if (uv_fileno(&handle_.base, &fd) == 0) ::ioctl(fd, SIOCOUTQ, &in_socket);
  const uint64_t waiting = queued_bytes() + static_cast<uint64_t>(in_socket);
  return sent_bytes_ - std::min(sent_bytes_, waiting);
}

sockaddr_storage HttpConnection::peer_address() const {
  sockaddr_storage address{};
  int length = sizeof address;
  uv_tcp_getpeername(&handle_.tcp, reinterpret_cast<sockaddr*>(&address), &length);
  return address;
}

const std::string& HttpConnection::peer() {
  if (!peer_.empty()) return peer_;
  char text[INET6_ADDRSTRLEN + 16] = "unix";
  if (transport_ == Transport::kTcp) {
    const sockaddr_storage address = peer_address();
    char name[INET6_ADDRSTRLEN] = "?";
    if (address.ss_family == AF_INET6) {
      const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&address);
      uv_ip6_name(v6, name, sizeof name);
      std::snprintf(text, sizeof text, "[%s]:%u", name, unsigned{ntohs(v6->sin6_port)});
    } else {
      const auto* v4 = reinterpret_cast<const sockaddr_in*>(&address);
      uv_ip4_name(v4, name, sizeof name);
      std::snprintf(text, sizeof text, "%s:%u", name, unsigned{ntohs(v4->sin_port)});
    }
  }
  peer_ = text;
  return peer_;
}

}  // namespace weir::net
