// TLS between a connection's socket and its HTTP: TlsContext is the server's certificate and key,
// TlsTrust which servers a client believes, TlsSession one connection's state. OpenSSL works on
// memory: bytes go in and out here, sockets are the connection's business.
//
// Threads: the loop's; load() any.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

struct ssl_ctx_st;
struct ssl_st;

namespace weir::net {

class TlsContext {
 public:
  // Certificates (PEM, the server's first, then its chain) and the key of the first (PEM, without a
  // passphrase). Errors name the file at fault.
  static Result<std::shared_ptr<TlsContext>> load(const std::string& cert_file,
                                                  const std::string& key_file);
  ~TlsContext();
  TlsContext(const TlsContext&) = delete;
  TlsContext& operator=(const TlsContext&) = delete;

  // Reads the files again, for sessions from now on. On error all stays as it was.
  Result<void> reload();
  // "CN=example.org until 2027-01-01", for the log.
  std::string description() const;
  // The certificate's time is over, or has not come.
  bool expired() const;

 private:
  friend class TlsSession;
  TlsContext() = default;

  std::string cert_file_, key_file_;
  ssl_ctx_st* context_ = nullptr;  // Counted: sessions hold it, too.
};

class TlsTrust {
 public:
  // Certificates (PEM) that a server's must be signed by, or be; without a file, the system's. With
  // `anybody` nothing is asked of a server.
  static Result<std::shared_ptr<TlsTrust>> load(const std::string& ca_file, bool anybody);
  ~TlsTrust();
  TlsTrust(const TlsTrust&) = delete;
  TlsTrust& operator=(const TlsTrust&) = delete;

 private:
  friend class TlsSession;
  TlsTrust() = default;

  ssl_ctx_st* context_ = nullptr;
};

class TlsSession {
 public:
  // The server's side.
  explicit TlsSession(const TlsContext& context);
  // The client's, with a server that must be able to prove that it is `host`, a name or an address.
  // The first read() begins.
  TlsSession(const TlsTrust& trust, const std::string& host);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Takes bytes of the socket. read() them all before the next call: what waits is bounded by that.
  void feed(std::string_view bytes);

  enum class Status : uint8_t {
    kData,
    kMore,       // Nothing without further bytes.
    kClosed,     // The peer ends its side.
    kFailed,     // A broken handshake or record; an alert may be in the output.
    kPlainHttp,  // The peer does not speak TLS but HTTP.
  };
  struct Read {
    Status status = Status::kMore;
    size_t bytes = 0;
  };
  // Decrypts into `out`, and goes on with the handshake.
  Read read(char* out, size_t size);

  bool established() const;
  // What it holds beside its state, about: a handshake's messages, or a record that has not come
  // whole.
  size_t buffered_bytes() const;
  // Why it has failed, as far as it is about the server's certificate; else that TLS is broken.
  std::string failure() const;
  // Encrypts; the result is output. False if the session is broken or not established.
  bool write(std::string_view bytes);
  // Tells the peer that nothing more comes.
  void shut_down();
  // Moves what the socket is to be given to the end of `out`.
  void take_output(std::string& out);

 private:
  explicit TlsSession(ssl_ctx_st* context);

  ssl_st* session_ = nullptr;  // Owns its memory BIOs.
  bool begun_ = false;         // Something has come.
  bool failed_ = false;
};

}  // namespace weir::net
