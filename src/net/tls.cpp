#include "net/tls.h"

#include <fcntl.h>
#include <openssl/bio.h>
#include <openssl/buffer.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <ctime>
#include <memory>
#include <utility>

#include "base/check.h"

namespace weir::net {

namespace {

// What a session's memory for one direction may keep while it is empty: enough that an event of a
// stream needs no allocation. The largest answer that ever was must not stay for as long as the
// connection does.
constexpr size_t kIdleBytesMax = 1024;

// What a session holds while it shakes hands, beyond what stays (MemoryPlan): its own message, the
// peer's of up to 16 KiB, and a record of each direction. Measured 23 to 41 KiB.
constexpr size_t kHandshakeBytes = 41 << 10;
// And while a record is not whole: 16 KiB, and what TLS adds.
constexpr size_t kRecordBytes = 17 << 10;

using ContextPtr = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;

// OpenSSL's reason of its last error, which is taken from its queue.
std::string last_reason() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = code != 0 ? ERR_reason_error_string(code) : nullptr;
  ERR_clear_error();
  return reason ? reason : "unknown error";
}

// OpenSSL would wait for a FIFO's writer, and for a device's end.
Result<void> check_readable(const char* option, const std::string& file) {
  const int fd = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  const bool found = fd >= 0 && ::fstat(fd, &info) == 0;
  const int error = errno;
  if (fd >= 0) ::close(fd);
  if (!found)
    return fail(ErrorCode::kConfig,
                std::string(option) + ": cannot read " + file + ": " + std::strerror(error));
  if (S_ISREG(info.st_mode)) return {};
  const char* const kind = S_ISDIR(info.st_mode)    ? "a folder"
                           : S_ISFIFO(info.st_mode) ? "a FIFO"
                                                    : "a device or a socket";
  return fail(ErrorCode::kConfig,
              std::string(option) + ": expected a regular file, found " + kind + ": " + file);
}

// A server has no one at its terminal, which OpenSSL would ask without this.
int refuse_passphrase(char*, int, int, void*) { return -1; }

// HTTP/1.1 is what is spoken here; a client that offers other protocols only is told so (RFC 7301).
int choose_protocol(SSL*, const unsigned char** out, unsigned char* out_length,
                    const unsigned char* in, unsigned in_length, void*) {
  static constexpr unsigned char kProtocol[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_length, kProtocol, sizeof kProtocol, in, in_length) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

Result<ContextPtr> make_context(const std::string& cert_file, const std::string& key_file) {
  WEIR_TRY(check_readable("--tls-cert", cert_file));
  WEIR_TRY(check_readable("--tls-key", key_file));
  ContextPtr context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free);
  CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  // Ten thousand idle connections must not hold 34 KB of buffers each.
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  // Clients resume by tickets, which they keep themselves.
  SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  SSL_CTX_set_default_passwd_cb(context.get(), &refuse_passphrase);
  SSL_CTX_set_alpn_select_cb(context.get(), &choose_protocol, nullptr);
  if (SSL_CTX_use_certificate_chain_file(context.get(), cert_file.c_str()) != 1)
    return fail(ErrorCode::kConfig, "--tls-cert: expected certificates in PEM form in " +
                                        cert_file +
                                        ", found none that can be used: " + last_reason());
  if (SSL_CTX_use_PrivateKey_file(context.get(), key_file.c_str(), SSL_FILETYPE_PEM) != 1) {
    const bool mismatch = ERR_GET_REASON(ERR_peek_last_error()) == X509_R_KEY_VALUES_MISMATCH;
    const std::string reason = last_reason();
    if (mismatch)
      return fail(ErrorCode::kConfig,
                  "--tls-key: " + key_file + " is not the key of the certificate in " + cert_file);
    return fail(ErrorCode::kConfig,
                "--tls-key: expected a private key in PEM form without a passphrase in " +
                    key_file + ", found none that can be used: " + reason);
  }
  if (SSL_CTX_check_private_key(context.get()) != 1)
    return fail(ErrorCode::kConfig, "--tls-key: " + key_file +
                                        " is not the key of the certificate in " + cert_file +
                                        ": " + last_reason());
  return context;
}

void release_if_empty(BIO* bio) {
  BUF_MEM* memory = nullptr;
  BIO_get_mem_ptr(bio, &memory);
  if (memory->max <= kIdleBytesMax || BIO_ctrl_pending(bio) > 0) return;
  BUF_MEM* const fresh = BUF_MEM_new();
  CHECK(fresh != nullptr);
  BIO_set_mem_buf(bio, fresh, BIO_CLOSE);
}

}  // namespace

Result<std::shared_ptr<TlsContext>> TlsContext::load(const std::string& cert_file,
                                                     const std::string& key_file) {
  WEIR_ASSIGN(ContextPtr context, make_context(cert_file, key_file));
  std::shared_ptr<TlsContext> loaded(new TlsContext);
  loaded->cert_file_ = cert_file;
  loaded->key_file_ = key_file;
  loaded->context_ = context.release();
  return loaded;
}

TlsContext::~TlsContext() { SSL_CTX_free(context_); }

Result<void> TlsContext::reload() {
  WEIR_ASSIGN(ContextPtr context, make_context(cert_file_, key_file_));
  SSL_CTX_free(std::exchange(context_, context.release()));
  return {};
}

std::string TlsContext::description() const {
  const X509* const certificate = SSL_CTX_get0_certificate(context_);
  const std::unique_ptr<BIO, decltype(&BIO_free)> bio(BIO_new(BIO_s_mem()), &BIO_free);
  CHECK(certificate != nullptr && bio != nullptr);
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  tm until{};
  ASN1_TIME_to_tm(X509_get0_notAfter(certificate), &until);
  char date[32];
  ::strftime(date, sizeof date, " until %Y-%m-%d", &until);
  char* text = nullptr;
  const long length = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<size_t>(length)) + date;
}

bool TlsContext::expired() const {
  const X509* const certificate = SSL_CTX_get0_certificate(context_);
  return X509_cmp_current_time(X509_get0_notAfter(certificate)) < 0 ||
         X509_cmp_current_time(X509_get0_notBefore(certificate)) > 0;
}

Result<std::shared_ptr<TlsTrust>> TlsTrust::load(const std::string& ca_file, bool anybody) {
  ContextPtr context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  CHECK(context != nullptr);
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_RELEASE_BUFFERS);
  static constexpr unsigned char kProtocol[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  CHECK(SSL_CTX_set_alpn_protos(context.get(), kProtocol, sizeof kProtocol) == 0);
  if (!anybody) SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
  if (ca_file.empty()) {
    SSL_CTX_set_default_verify_paths(context.get());
  } else if (SSL_CTX_load_verify_locations(context.get(), ca_file.c_str(), nullptr) != 1) {
    return fail(ErrorCode::kConfig, "expected certificates in PEM form in " + ca_file +
                                        ", found none that can be used: " + last_reason());
  }
  std::shared_ptr<TlsTrust> loaded(new TlsTrust);
  loaded->context_ = context.release();
  return loaded;
}

TlsTrust::~TlsTrust() { SSL_CTX_free(context_); }

TlsSession::TlsSession(const TlsContext& context) : TlsSession(context.context_) {
  SSL_set_accept_state(session_);
}

TlsSession::TlsSession(const TlsTrust& trust, const std::string& host)
    : TlsSession(trust.context_) {
  // An address is none of the names that a server is asked for by (RFC 6066).
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(session_), host.c_str()) != 1) {
    ERR_clear_error();
    SSL_set1_host(session_, host.c_str());
    SSL_set_tlsext_host_name(session_, host.c_str());
  }
  SSL_set_connect_state(session_);
}

TlsSession::TlsSession(ssl_ctx_st* context) : session_(SSL_new(context)) {
  BIO* const in = BIO_new(BIO_s_mem());
  BIO* const out = BIO_new(BIO_s_mem());
  CHECK(session_ != nullptr && in != nullptr && out != nullptr);
  BIO_set_mem_eof_return(in, -1);  // An empty memory is "later", not the end.
  BIO_set_mem_eof_return(out, -1);
  SSL_set_bio(session_, in, out);
}

TlsSession::~TlsSession() { SSL_free(session_); }

void TlsSession::feed(std::string_view bytes) {
  const int taken = BIO_write(SSL_get_rbio(session_), bytes.data(), static_cast<int>(bytes.size()));
  CHECK(taken == static_cast<int>(bytes.size()));
  begun_ = true;
}

TlsSession::Read TlsSession::read(char* out, size_t size) {
  if (failed_) return {Status::kFailed};
  ERR_clear_error();
  size_t bytes = 0;
  const int done = SSL_read_ex(session_, out, size, &bytes);
  if (done == 1) return {Status::kData, bytes};
  switch (SSL_get_error(session_, done)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
      release_if_empty(SSL_get_rbio(session_));
      return {Status::kMore};
    case SSL_ERROR_ZERO_RETURN:
      return {Status::kClosed};
    default: {
      failed_ = true;
      const bool http = ERR_GET_REASON(ERR_peek_last_error()) == SSL_R_HTTP_REQUEST;
      ERR_clear_error();
      return {http ? Status::kPlainHttp : Status::kFailed};
    }
  }
}

bool TlsSession::established() const { return SSL_is_init_finished(session_) == 1; }

size_t TlsSession::buffered_bytes() const {
  if (!established()) return begun_ ? kHandshakeBytes : 0;
  return SSL_has_pending(session_) == 1 ? kRecordBytes : 0;
}

std::string TlsSession::failure() const {
  const long reason = SSL_get_verify_result(session_);
  if (reason == X509_V_OK) return "broken TLS; does the server speak it?";
  return std::string("the server's certificate is not trusted: ") +
         X509_verify_cert_error_string(reason);
}

bool TlsSession::write(std::string_view bytes) {
  if (failed_ || !established()) return false;
  while (!bytes.empty()) {
    ERR_clear_error();
    size_t taken = 0;  // All of it: memory takes what it is given.
    if (SSL_write_ex(session_, bytes.data(), bytes.size(), &taken) != 1) {
      ERR_clear_error();
      failed_ = true;
      return false;
    }
    bytes.remove_prefix(taken);
  }
  return true;
}

void TlsSession::shut_down() {
  if (failed_ || !established()) return;
  SSL_shutdown(session_);
  ERR_clear_error();
}

void TlsSession::take_output(std::string& out) {
  BIO* const bio = SSL_get_wbio(session_);
  const size_t pending = BIO_ctrl_pending(bio);
  if (pending == 0) return;
  const size_t begin = out.size();
  out.resize(begin + pending);
  const int read =
      BIO_read(bio, out.data() + begin, static_cast<int>(std::min<size_t>(pending, INT_MAX)));
  out.resize(begin + static_cast<size_t>(std::max(read, 0)));
  release_if_empty(bio);
}

}  // namespace weir::net
