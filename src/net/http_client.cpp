// HttpClient over libuv and llhttp's response parser.
#include "net/http_client.h"

#include <llhttp.h>
#include <netdb.h>
#include <strings.h>
#include <sys/un.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "net/loop_impl.h"

namespace weir::net {

Result<HttpTarget> HttpTarget::tcp(const std::string& host, uint16_t port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const std::string service = std::to_string(port);
  const int error = getaddrinfo(host.c_str(), service.c_str(), &hints, &found);
  if (error != 0)
    return fail(ErrorCode::kConfig, "the host " + host + " is unknown: " + gai_strerror(error));
  HttpTarget target;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next)
    target.addresses_.emplace_back(reinterpret_cast<const char*>(entry->ai_addr),
                                   entry->ai_addrlen);
  freeaddrinfo(found);
  return target;
}

Result<HttpTarget> HttpTarget::unix_socket(const std::string& path) {
  if (path.empty() || path.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::kConfig, "the path of a unix socket must have 1 to " +
                                        std::to_string(sizeof(sockaddr_un::sun_path) - 1) +
                                        " bytes, found " + std::to_string(path.size()));
  HttpTarget target;
  target.addresses_ = {path};
  target.is_unix_ = true;
  return target;
}

void HttpTarget::use_tls(std::shared_ptr<TlsTrust> trust, std::string host) {
  trust_ = std::move(trust);
  host_ = std::move(host);
}

namespace {

bool is_content_type(std::string_view name) {
  return name.size() == 12 && strncasecmp(name.data(), "content-type", 12) == 0;
}

}  // namespace

struct HttpClient::Impl {
  // A connection outlives the client until its handle is closed; `client` is null once the client
  // has given it up.
  struct Connection {
    union {
      uv_handle_t base;
      uv_tcp_t tcp;
      uv_pipe_t pipe;
    } handle;
    Impl* client = nullptr;
    uv_connect_t connecting;
    uv_write_t writing;
    std::string sending,
        waiting;  // Of the bytes for the socket: being written, to be written next.
    std::string error;
    std::unique_ptr<TlsSession> tls;
    bool is_reached = false;  // The address answers.
    bool is_open = false;     // TLS included.
    bool is_closing = false;
    bool is_writing = false;
    bool was_used = false;   // A response came over it before.
    bool has_bytes = false;  // Of the response to the present request.
    bool is_complete = false;
    bool keep_alive = false;
    llhttp_t parser;
    std::string header_name, content_type;
    char buffer[16 << 10];

    uv_stream_t* stream() { return reinterpret_cast<uv_stream_t*>(&handle); }
    void close();
    void fail(std::string message);
    void on_connected(int status);
    void on_open();
    void on_read(ssize_t count);
    void on_end(const char* reason);
    void on_sealed_bytes(size_t count);
    void on_bytes(size_t count);
    void send(const std::string& bytes);
    void send_sealed();
    void send_raw(std::string_view bytes);
    void write_waiting();
    void start_response();
    void complete();
  };

  Impl(Loop& owner, HttpTarget to, Callbacks calls)
      : loop(owner.impl()), target(std::move(to)), callbacks(std::move(calls)) {
    closer = loop.add_closer([this] { drop(); });
  }

  void connect();
  // Gives the connection up; nothing is called for it any more.
  void drop();
  void on_closed(Connection& closed);
  static const llhttp_settings_t& settings();

  Loop::Impl& loop;
  const HttpTarget target;
  Callbacks callbacks;
  uint64_t closer = 0;
  Connection* connection = nullptr;
  size_t address = 0;    // Of the target's: the one that is connected to.
  size_t unreached = 0;  // How many have been tried in vain since one was reached.
  bool in_flight = false;
  bool only_connect = false;
  bool is_head = false;
  bool may_retry = false;
  std::string request;
  uint64_t connections = 0;
};

void HttpClient::Impl::Connection::close() {
  if (std::exchange(is_closing, true)) return;
  uv_close(&handle.base, [](uv_handle_t* closed) {
    auto* current = static_cast<Connection*>(closed->data);
    if (current->client != nullptr) current->client->on_closed(*current);
    delete current;
  });
}

void HttpClient::Impl::Connection::fail(std::string message) {
  if (error.empty()) error = std::move(message);
  close();
}

void HttpClient::Impl::Connection::on_connected(int status) {
  if (is_closing) return;
  if (status != 0) return fail(std::string("cannot connect: ") + uv_strerror(status));
  is_reached = true;
  client->unreached = 0;
  ++client->connections;
  if (!client->target.is_unix_) uv_tcp_nodelay(&handle.tcp, 1);
  uv_read_start(
      stream(),
      [](uv_handle_t* reading, size_t, uv_buf_t* buf) {
        auto* current = static_cast<Connection*>(reading->data);
        *buf = uv_buf_init(current->buffer, sizeof current->buffer);
      },
      [](uv_stream_t* reading, ssize_t count, const uv_buf_t*) {
        static_cast<Connection*>(reading->data)->on_read(count);
      });
  if (!client->target.trust_) return on_open();
  tls = std::make_unique<TlsSession>(*client->target.trust_, client->target.host_);
  on_sealed_bytes(0);  // Nothing has come; it begins.
}

void HttpClient::Impl::Connection::on_open() {
  is_open = true;
  if (client->only_connect) {
    client->in_flight = client->only_connect = false;
    client->callbacks.on_end();
  } else {
    send(client->request);
  }
}

void HttpClient::Impl::Connection::send(const std::string& bytes) {
  start_response();
  if (!tls) return send_raw(bytes);
  if (!tls->write(bytes)) return fail(tls->failure());
  send_sealed();
}

// What the session has for the server.
void HttpClient::Impl::Connection::send_sealed() {
  std::string sealed;
  tls->take_output(sealed);
  if (!sealed.empty()) send_raw(sealed);
}

void HttpClient::Impl::Connection::send_raw(std::string_view bytes) {
  if (!is_writing) {
    const uv_buf_t buf =
        uv_buf_init(const_cast<char*>(bytes.data()), static_cast<unsigned>(bytes.size()));
    const int count = uv_try_write(stream(), &buf, 1);
    if (count < 0 && count != UV_EAGAIN) return fail(uv_strerror(count));
    bytes.remove_prefix(static_cast<size_t>(std::max(count, 0)));
  }
  waiting += bytes;
  write_waiting();
}

void HttpClient::Impl::Connection::write_waiting() {
  if (is_writing || waiting.empty() || is_closing) return;
  sending = std::exchange(waiting, {});
  const uv_buf_t buf = uv_buf_init(sending.data(), static_cast<unsigned>(sending.size()));
  writing.data = this;
  is_writing = true;
  uv_write(&writing, stream(), &buf, 1, [](uv_write_t* written, int status) {
    auto* current = static_cast<Connection*>(written->data);
    current->is_writing = false;
    if (status < 0) return current->fail(uv_strerror(status));
    current->write_waiting();
  });
}

void HttpClient::Impl::Connection::start_response() {
  has_bytes = is_complete = false;
  content_type.clear();
  llhttp_init(&parser, HTTP_RESPONSE, &settings());
  parser.data = this;
}

const llhttp_settings_t& HttpClient::Impl::settings() {
  static const auto self = [](llhttp_t* parser) -> Connection& {
    return *static_cast<Connection*>(parser->data);
  };
  static const llhttp_settings_t instance = [] {
    llhttp_settings_t s;
    llhttp_settings_init(&s);
    s.on_header_field = [](llhttp_t* parser, const char* at, size_t length) {
      self(parser).header_name.append(at, length);
      return 0;
    };
    s.on_header_value = [](llhttp_t* parser, const char* at, size_t length) {
      Connection& c = self(parser);
      if (is_content_type(c.header_name)) c.content_type.append(at, length);
      return 0;
    };
    s.on_header_value_complete = [](llhttp_t* parser) {
      self(parser).header_name.clear();
      return 0;
    };
    s.on_headers_complete = [](llhttp_t* parser) -> int {
      Connection& c = self(parser);
      if (parser->status_code < 200) return 0;
      c.client->callbacks.on_head(parser->status_code, c.content_type);
      if (c.client == nullptr) return HPE_USER;
      return c.client->is_head ? 1 : 0;
    };
    s.on_body = [](llhttp_t* parser, const char* at, size_t length) -> int {
      Connection& c = self(parser);
      c.client->callbacks.on_body({at, length});
      return c.client == nullptr ? HPE_USER : 0;
    };
    s.on_message_complete = [](llhttp_t* parser) -> int {
      Connection& c = self(parser);
      if (parser->status_code < 200) return 0;  // 100 Continue: the answer is still to come.
      c.is_complete = true;
      c.keep_alive = llhttp_should_keep_alive(parser) != 0;
      return HPE_PAUSED;
    };
    return s;
  }();
  return instance;
}

void HttpClient::Impl::Connection::on_read(ssize_t count) {
  if (count == 0 || is_closing) return;
  if (count < 0) {
    const bool is_end = count == UV_EOF;
    // An end that TLS has not announced may be anybody's.
    if (!is_end || tls)
      return fail(is_end ? "the server closed the connection"
                         : uv_strerror(static_cast<int>(count)));
    return on_end("the server closed the connection");
  }
  tls ? on_sealed_bytes(static_cast<size_t>(count)) : on_bytes(static_cast<size_t>(count));
}

// The server sends nothing more.
void HttpClient::Impl::Connection::on_end(const char* reason) {
  if (client->in_flight && has_bytes) {
    llhttp_finish(&parser);  // A body may end with its connection.
    if (is_complete) {
      keep_alive = false;
      return complete();
    }
  }
  fail(reason);
}

// `count` bytes in the buffer are TLS's; what comes out of them takes their place.
void HttpClient::Impl::Connection::on_sealed_bytes(size_t count) {
  tls->feed({buffer, count});
  while (client != nullptr && !is_closing) {
    const auto [status, size] = tls->read(buffer, sizeof buffer);
    send_sealed();  // The handshake's part, or an alert.
    if (is_closing) return;
    if (!is_open && tls->established()) {
      on_open();
      if (client == nullptr || is_closing) return;
    }
    switch (status) {
      case TlsSession::Status::kData:
        on_bytes(size);
        break;
      case TlsSession::Status::kMore:
        return;
      case TlsSession::Status::kClosed:
        return on_end("the server closed the connection");
      case TlsSession::Status::kFailed:
      case TlsSession::Status::kPlainHttp:
        return fail(tls->failure());
    }
  }
}

void HttpClient::Impl::Connection::on_bytes(size_t count) {
  if (!client->in_flight) return fail("the server sent bytes without a request");
  has_bytes = true;
  const llhttp_errno_t code = llhttp_execute(&parser, buffer, count);
  if (client == nullptr) return;  // A callback called close().
  if (is_complete) {
    if (llhttp_get_error_pos(&parser) != buffer + count)
      return fail("the server sent bytes after its response");
    return complete();
  }
  if (code != HPE_OK) fail(std::string("malformed response: ") + llhttp_get_error_reason(&parser));
}

void HttpClient::Impl::Connection::complete() {
  was_used = true;
  has_bytes = false;
  Impl& owner = *client;
  owner.in_flight = false;
  if (!keep_alive || is_writing) {  // It answered before it had read the whole request.
    owner.connection = nullptr;
    client = nullptr;
    close();
  }
  owner.callbacks.on_end();
}

void HttpClient::Impl::connect() {
  connection = new Connection;
  Connection& c = *connection;
  c.client = this;
  c.handle.base.data = nullptr;
  const std::string& to = target.addresses_[address];
  if (target.is_unix_) {
    CHECK(uv_pipe_init(&loop.uv, &c.handle.pipe, 0) == 0);
  } else {
    CHECK(uv_tcp_init(&loop.uv, &c.handle.tcp) == 0);
  }
  c.handle.base.data = &c;
  c.connecting.data = &c;
  const auto connected = [](uv_connect_t* connecting, int status) {
    static_cast<Connection*>(connecting->data)->on_connected(status);
  };
  if (target.is_unix_) {
    uv_pipe_connect(&c.connecting, &c.handle.pipe, to.c_str(), connected);
  } else {
    const int error = uv_tcp_connect(&c.connecting, &c.handle.tcp,
                                     reinterpret_cast<const sockaddr*>(to.data()), connected);
    if (error != 0) c.fail(std::string("cannot connect: ") + uv_strerror(error));
  }
}

void HttpClient::Impl::drop() {
  in_flight = only_connect = false;
  if (Connection* dropped = std::exchange(connection, nullptr)) {
    dropped->client = nullptr;
    dropped->close();
  }
}

void HttpClient::Impl::on_closed(Connection& closed) {
  connection = nullptr;
  if (!in_flight) return;  // An idle connection: the next request makes a new one.
  if (!closed.is_reached && !loop.ended && ++unreached < target.addresses_.size()) {
    address = (address + 1) % target.addresses_.size();
    return connect();
  }
  unreached = 0;
  if (closed.was_used && !closed.has_bytes && std::exchange(may_retry, false) && !loop.ended)
    return connect();
  in_flight = only_connect = false;
  if (!loop.ended) callbacks.on_error(closed.error);
}

HttpClient::HttpClient(Loop& loop, const HttpTarget& target, Callbacks callbacks)
    : impl_(new Impl(loop, target, std::move(callbacks))) {}

HttpClient::~HttpClient() {
  impl_->drop();
  impl_->loop.remove_closer(impl_->closer);
  delete impl_;
}

void HttpClient::connect() {
  CHECK(!impl_->in_flight && impl_->connection == nullptr);
  impl_->in_flight = impl_->only_connect = true;
  impl_->may_retry = false;
  impl_->connect();
}

void HttpClient::request(std::string bytes, bool is_head) {
  CHECK(!impl_->in_flight);
  impl_->request = std::move(bytes);
  impl_->is_head = is_head;
  impl_->in_flight = impl_->may_retry = true;
  if (impl_->connection == nullptr) {
    impl_->connect();
  } else if (impl_->connection->is_closing) {
    impl_->connection->was_used = true;  // on_closed() will make a new one for it.
    impl_->connection->has_bytes = false;
  } else {
    impl_->connection->send(impl_->request);
  }
}

void HttpClient::close() { impl_->drop(); }

bool HttpClient::is_open() const {
  return impl_->connection != nullptr && impl_->connection->is_open &&
         !impl_->connection->is_closing;
}

uint64_t HttpClient::connections() const { return impl_->connections; }

}  // namespace weir::net
