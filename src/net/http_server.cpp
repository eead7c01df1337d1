// HttpServer: listeners, the limit of connections, draining; and ServerState.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "net/http.h"
#include "net/http_connection.h"
#include "net/loop_impl.h"
#include "net/server_state.h"

namespace weir::net {

std::string_view HttpRequest::header(std::string_view name) const {
  for (const auto& [key, value] : headers)
    if (key == name) return value;
  return {};
}

namespace {

// Waiting to be accepted; the kernel lowers it to net.core.somaxconn.
constexpr int kBacklog = 4096;
}  // namespace

ServerState::ServerState(Loop::Impl& owner, const HttpLimits& http_limits)
    : loop_impl(owner), loop(&owner.uv), limits(http_limits), wheel_(owner.now_ms()) {
  stats.connections_max.set(http_limits.connections_max);
  stats.body_bytes_max.set(static_cast<double>(http_limits.body_bytes_max));
  CHECK(uv_timer_init(loop, &timer_) == 0 && uv_idle_init(loop, &idle_) == 0);
  CHECK(uv_prepare_init(loop, &prepare_) == 0);
  timer_.data = idle_.data = prepare_.data = this;
  open_handles = 3;
}

void ServerState::arm(WheelTimer& wheel_timer, uint64_t deadline_ms) {
  wheel_.arm(wheel_timer, deadline_ms);
  start_timer();
}

// The uv timer runs for the first occupied slot, so a server whose clients are idle sleeps.
void ServerState::start_timer() {
  const auto next_ms = wheel_.next_ms();
  if (!next_ms || closing || (timer_due_ms_ != 0 && timer_due_ms_ <= *next_ms)) return;
  if (loop_impl.by_hand) return;  // advance_clock() runs it.
  timer_due_ms_ = *next_ms;
  const uint64_t now = now_ms();
  uv_timer_start(
      &timer_, [](uv_timer_t* handle) { static_cast<ServerState*>(handle->data)->run_timer(); },
      timer_due_ms_ > now ? timer_due_ms_ - now : 0, 0);
}

void ServerState::run_timer() {
  timer_due_ms_ = 0;
  wheel_.advance(now_ms(), [](WheelTimer& expired) {
    static_cast<HttpConnection*>(expired.owner)->on_deadline();
  });
  start_timer();
}

void ServerState::defer(HttpConnection* connection) {
  if (connection->is_deferred || closing) return;
  connection->is_deferred = true;
  deferred_.push_back(connection);
  start_idle();
}

void ServerState::wake_drained() {
  if (!closing) start_idle();
}

// An idle handle keeps the loop from sleeping: the next turn comes at once. No-op if it runs.
void ServerState::start_idle() {
  uv_idle_start(&idle_,
                [](uv_idle_t* handle) { static_cast<ServerState*>(handle->data)->run_deferred(); });
}

void ServerState::run_deferred() {
  // No connection is freed in between: that happens in the closing phase of the loop's turn.
  for (HttpConnection* connection : std::exchange(deferred_, {})) {
    connection->is_deferred = false;
    connection->run_deferred();
  }
  if (deferred_.empty()) uv_idle_stop(&idle_);
  maybe_drained();
}

void ServerState::count_turn(PeerId peer, size_t cost) {
  turns.count(peer, cost);
  expect_turn();
}

void ServerState::count_read(PeerId peer, size_t cost) {
  turns.count_read(peer, cost);
  expect_turn();
}

ReadTurns::Ticket ServerState::wait_turn(PeerId peer, HttpConnection* connection) {
  expect_turn();
  if (!closing) start_idle();
  return turns.wait(peer, connection);
}

void ServerState::expect_turn() {
  if (closing) return;
  uv_prepare_start(
      &prepare_, [](uv_prepare_t* handle) { static_cast<ServerState*>(handle->data)->run_turn(); });
}

void ServerState::run_turn() {
  uv_prepare_stop(&prepare_);
  go_on_.clear();
  turns.begin(go_on_);
  for (HttpConnection* connection : go_on_) connection->go_on();
  begin_turn();
  if (!turns.any_waiting()) return;
  expect_turn();
  if (!closing) start_idle();
}

void ServerState::add(HttpConnection* connection) {
  connection->next = connections;
  if (connections != nullptr) connections->previous = connection;
  connections = connection;
  ++open_handles;
  ++connection_count;
  stats.open_connections.set(connection_count - refused_count);
}

void ServerState::mark_refused(HttpConnection* connection) {
  connection->is_refused = true;
  ++refused_count;
  stats.refused_connections.add();
  stats.open_connections.set(connection_count - refused_count);
}

void ServerState::remove(HttpConnection* connection) {
  (connection->previous != nullptr ? connection->previous->next : connections) = connection->next;
  if (connection->next != nullptr) connection->next->previous = connection->previous;
  if (connection->is_deferred) std::erase(deferred_, connection);
  --connection_count;
  if (connection->is_refused) --refused_count;
  stats.open_connections.set(connection_count - refused_count);
  maybe_drained();
  handle_closed();
}

void ServerState::maybe_drained() {
  if (!draining || connection_count > 0 || orphaned) return;
  if (const auto call = std::exchange(drained, nullptr)) call();
}

void ServerState::handle_closed() {
  if (--open_handles == 0 && orphaned) delete this;
}

void ServerState::close_handles() {
  if (std::exchange(closing, true)) return;
  const auto closed = [](uv_handle_t* handle) {
    static_cast<ServerState*>(handle->data)->handle_closed();
  };
  uv_close(as_handle(&timer_), closed);
  uv_close(as_handle(&idle_), closed);
  uv_close(as_handle(&prepare_), closed);
  for (HttpConnection* c = connections; c != nullptr; c = c->next) c->close();
}

struct HttpServer::Impl : ServerState {
  struct Listener {
    union {
      uv_handle_t base;
      uv_tcp_t tcp;
      uv_pipe_t pipe;
    } handle;
    Impl* server = nullptr;
    HttpConnection::Transport transport = HttpConnection::Transport::kTcp;
    bool has_put_off = false;  // libuv keeps a connection until it is accepted, and no further one.
    uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&handle); }
  };

  Impl(Loop& owner, const HttpLimits& http_limits) : ServerState(owner.impl(), http_limits) {
    closer = loop_impl.add_closer([this] { close_all(); });
    clock_watch = loop_impl.add_clock_watch([this] { run_timer(); });
  }

  void release() {
    loop_impl.remove_closer(closer);
    loop_impl.remove_clock_watch(clock_watch);
    orphaned = true;
    handler = nullptr;
    error_body = nullptr;
    wants_body = nullptr;
    error_headers = nullptr;
    drained = nullptr;
    for (HttpConnection* c = connections; c != nullptr; c = c->next) c->forget_callbacks();
    close_all();
    if (open_handles == 0) delete this;
  }

  void close_all() {
    close_listeners();
    close_handles();
  }

  Listener& add_listener(HttpConnection::Transport transport) {
    Listener* listener = new Listener;
    listener->server = this;
    listener->transport = transport;
    if (transport == HttpConnection::Transport::kTcp) {
      CHECK(uv_tcp_init(loop, &listener->handle.tcp) == 0);
    } else {
      CHECK(uv_pipe_init(loop, &listener->handle.pipe, 0) == 0);
    }
    listener->handle.base.data = listener;
    listeners.push_back(listener);
    ++open_handles;
    return *listener;
  }

  uint16_t note_address(Listener& listener);

  void close_listener(Listener* listener) {
    std::erase(listeners, listener);
    std::erase(passed, listener);
    uv_close(&listener->handle.base, [](uv_handle_t* handle) {
      auto* closed = static_cast<Listener*>(handle->data);
      closed->server->handle_closed();
      delete closed;
    });
  }

  void close_listeners() {
    while (!listeners.empty()) close_listener(listeners.back());
  }

  int listen(Listener& listener) {
    return uv_listen(listener.stream(), kBacklog, [](uv_stream_t* stream, int status) {
      auto* owner = static_cast<Listener*>(stream->data);
      owner->server->on_connection(*owner, status);
    });
  }

  void on_connection(Listener& listener, int status) {
    if (status != 0) return on_accept_error(status);
    if (accepts_left == 0) {
      listener.has_put_off = true;
      expect_turn();
      return hurry();
    }
    --accepts_left;
    stats.connections.add();
    const int error = HttpConnection::accept(*this, listener.stream(), listener.transport);
    if (error != 0) return on_accept_error(error);
  }

  void begin_turn() override {
    accepts_left = ReadTurns::kAccepts;
    for (Listener* listener : listeners)
      if (std::exchange(listener->has_put_off, false)) on_connection(*listener, 0);
  }

  // Out of files, mostly. libuv has closed the connection; we say so once in a while.
  void on_accept_error(int error) {
    stats.refused_connections.add();
    if (now_ms() < accept_warning_due_ms) return;
    accept_warning_due_ms = now_ms() + 10'000;
    log::warn(std::string("net accept_failed error=") + uv_err_name(error) +
              " open_connections=" + std::to_string(connection_count));
  }

  uint64_t closer = 0;
  uint64_t clock_watch = 0;
  std::vector<Listener*> listeners;
  std::vector<Listener*> passed;  // Of them, those that do not accept yet.
  uint16_t tcp_port = 0;          // Of the first TCP listener,
  std::string tcp_address;
  bool is_public = false;
  uint64_t accept_warning_due_ms = 0;
  int32_t accepts_left = ReadTurns::kAccepts;  // Of the loop's turn.
};

HttpServer::HttpServer(Loop& loop, const HttpLimits& limits, Handler handler, ErrorBody error_body)
    : impl_(new Impl(loop, limits)) {
  impl_->handler = std::move(handler);
  impl_->error_body = std::move(error_body);
}

HttpServer::~HttpServer() { impl_->release(); }

namespace {

std::string listen_hint(int error) {
  if (error == UV_EADDRINUSE) return ": another program listens there; choose another port";
  if (error == UV_EACCES) return ": ports below 1024 need privileges; choose a higher one";
  if (error == UV_EADDRNOTAVAIL) return ": it is not an address of this machine";
  return {};
}

Error listen_error(const std::string& where, int error) {
  return {ErrorCode::kConfig,
          "cannot listen on " + where + ": " + uv_strerror(error) + listen_hint(error)};
}

void set_port(sockaddr* address, uint16_t port) {
  if (address->sa_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  }
}

bool is_loopback(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET)
    return ntohl(reinterpret_cast<const sockaddr_in*>(&address)->sin_addr.s_addr) >> 24 == 127;
  const in6_addr& ip = reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr;
  return IN6_IS_ADDR_LOOPBACK(&ip) || (IN6_IS_ADDR_V4MAPPED(&ip) && ip.s6_addr[12] == 127);
}

std::string address_text(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  const void* bytes =
      address.ss_family == AF_INET6
          ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6*>(&address)->sin6_addr)
          : &reinterpret_cast<const sockaddr_in*>(&address)->sin_addr;
  (void)uv_inet_ntop(address.ss_family, bytes, text, sizeof text);
  return text;
}

uint16_t get_port(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

}  // namespace

// Of a TCP listener that is bound; returns its port.
uint16_t HttpServer::Impl::note_address(Listener& listener) {
  sockaddr_storage bound{};
  int length = sizeof bound;
  uv_tcp_getsockname(&listener.handle.tcp, reinterpret_cast<sockaddr*>(&bound), &length);
  const uint16_t port = get_port(bound);
  is_public |= !is_loopback(bound);
  if (tcp_port == 0) {
    tcp_port = port;
    tcp_address = address_text(bound);
  }
  return port;
}

Result<void> HttpServer::listen_tcp(const std::string& host, uint16_t port) {
  std::string name = host;
  if (name.size() > 2 && name.front() == '[' && name.back() == ']')
    name = name.substr(1, name.size() - 2);
  const std::string where =
      (name.find(':') == std::string::npos ? name : "[" + name + "]") + ":" + std::to_string(port);

  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  uv_getaddrinfo_t lookup;
  const int lookup_error =
      uv_getaddrinfo(impl_->loop, &lookup, nullptr, name.c_str(), nullptr, &hints);
  if (lookup_error != 0)
    return fail(ErrorCode::kConfig, "cannot listen on " + where + ": the host is unknown (" +
                                        uv_strerror(lookup_error) + "); give an address");

  // A name may have several addresses (localhost: 127.0.0.1 and ::1); each gets a listener, all
  // with the same port. One that this machine lacks is passed over if another works.
  int first_error = 0;
  int listening = 0;
  for (const addrinfo* info = lookup.addrinfo; info != nullptr; info = info->ai_next) {
    set_port(info->ai_addr, port);
    Impl::Listener& listener = impl_->add_listener(HttpConnection::Transport::kTcp);
    int error = uv_tcp_bind(&listener.handle.tcp, info->ai_addr, 0);
    if (error == 0) error = impl_->listen(listener);
    if (error != 0) {
      impl_->close_listener(&listener);
      if (first_error == 0) first_error = error;
      if (error == UV_EADDRINUSE) break;
      continue;
    }
    ++listening;
    port = impl_->note_address(listener);
  }
  uv_freeaddrinfo(lookup.addrinfo);
  if (listening == 0 || first_error == UV_EADDRINUSE)
    return tl::unexpected<Error>(listen_error(where, first_error));
  return {};
}

Result<void> HttpServer::listen_unix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::kConfig, "the path of a unix socket must have 1 to " +
                                        std::to_string(sizeof address.sun_path - 1) +
                                        " bytes, found " + std::to_string(path.size()));
  std::memcpy(address.sun_path, path.c_str(), path.size());

  // A server that was killed leaves its socket in place: no process answers there, and it may go.
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) {
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int error =
        ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0
                                                                                           : errno;
    ::close(probe);
    if (error == ECONNREFUSED) ::unlink(path.c_str());
  }
  Impl::Listener& listener = impl_->add_listener(HttpConnection::Transport::kUnix);
  int error = uv_pipe_bind(&listener.handle.pipe, path.c_str());
  if (error == 0) error = impl_->listen(listener);
  if (error == 0) return {};
  impl_->close_listener(&listener);
  return fail(
      ErrorCode::kConfig,
      "cannot listen on unix socket " + path + ": " + uv_strerror(error) +
          (error == UV_EADDRINUSE ? ": another program listens there, or the file is no socket"
                                  : ""));
}

Result<void> HttpServer::listen_passed(int fd) {
  sockaddr_storage bound{};
  socklen_t length = sizeof bound;
  const bool known = ::getsockname(fd, reinterpret_cast<sockaddr*>(&bound), &length) == 0;
  const bool is_unix = known && bound.ss_family == AF_UNIX;
  if (!is_unix && (!known || (bound.ss_family != AF_INET && bound.ss_family != AF_INET6)))
    return fail(ErrorCode::kConfig, "a passed socket: expected one of TCP or Unix; found " +
                                        std::string(known ? "another kind" : std::strerror(errno)));
  Impl::Listener& listener = impl_->add_listener(is_unix ? HttpConnection::Transport::kUnix
                                                         : HttpConnection::Transport::kTcp);
  int error =
      is_unix ? uv_pipe_open(&listener.handle.pipe, fd) : uv_tcp_open(&listener.handle.tcp, fd);
  if (error != 0) {
    impl_->close_listener(&listener);
    return tl::unexpected<Error>(listen_error("a passed socket", error));
  }
  if (!is_unix) impl_->note_address(listener);
  impl_->passed.push_back(&listener);
  return {};
}

void HttpServer::accept_passed() {
  for (Impl::Listener* listener : std::exchange(impl_->passed, {}))
    if (const int error = impl_->listen(*listener); error != 0)
      log::error(std::string("net cannot accept from a passed socket: ") + uv_strerror(error));
}

void HttpServer::use_tls(std::shared_ptr<TlsContext> context) { impl_->tls = std::move(context); }

uint16_t HttpServer::port() const { return impl_->tcp_port; }

const std::string& HttpServer::address() const { return impl_->tcp_address; }

bool HttpServer::is_public() const { return impl_->is_public; }

void HttpServer::drain(std::function<void()> done) {
  impl_->draining = true;
  impl_->drained = std::move(done);
  impl_->close_listeners();
  bool any = false;
  for (HttpConnection* c = impl_->connections; c != nullptr; c = c->next) {
    c->close_when_idle();
    any = true;
  }
  if (!any) impl_->wake_drained();
}

void HttpServer::close_unfinished_requests() {
  for (HttpConnection* c = impl_->connections; c != nullptr; c = c->next) c->close_if_reading();
}

const HttpStats& HttpServer::stats() const { return impl_->stats; }

void HttpServer::wants_body(WantsBody call) { impl_->wants_body = std::move(call); }

void HttpServer::error_headers(ErrorHeaders call) { impl_->error_headers = std::move(call); }

}  // namespace weir::net
