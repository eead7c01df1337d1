// TLS without sockets: certificate files, and a session against OpenSSL's client in memory. Over
// sockets it is tested end to end (tests/e2e/tls_test.py).
#include "net/tls.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <sys/stat.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

namespace weir::net {
namespace {

// A folder of its own, gone with the test: tests run beside one another.
class TempFolder {
 public:
  TempFolder() {
    std::string pattern = testing::TempDir() + "/weir-tls-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TempFolder() { std::filesystem::remove_all(path_); }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

using Pkey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// Writes a self-signed certificate of `name` and its key; `seconds`: how long it is valid from now.
struct Certificate {
  explicit Certificate(const std::string& name, long seconds = 3600)
      : cert_file(folder.path() + "/cert.pem"), key_file(folder.path() + "/key.pem") {
    write(name, seconds);
  }
  // Anew, in the same files.
  void write(const std::string& name, long seconds) const {
    const Pkey key(EVP_EC_gen("P-256"), &EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> cert(X509_new(), &X509_free);
    ASN1_INTEGER_set(X509_get_serialNumber(cert.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert.get()), seconds < 0 ? 2 * seconds : 0);
    X509_gmtime_adj(X509_getm_notAfter(cert.get()), seconds);
    X509_set_pubkey(cert.get(), key.get());
    X509_NAME* const subject = X509_get_subject_name(cert.get());
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    X509_set_issuer_name(cert.get(), subject);
    X509_sign(cert.get(), key.get(), EVP_sha256());
    FILE* file = std::fopen(cert_file.c_str(), "w");
    PEM_write_X509(file, cert.get());
    std::fclose(file);
    file = std::fopen(key_file.c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    std::fclose(file);
    file = std::fopen((key_file + ".locked").c_str(), "w");
    PEM_write_PrivateKey(file, key.get(), EVP_aes_128_cbc(), nullptr, 0, nullptr,
                         const_cast<char*>("secret"));
    std::fclose(file);
  }
  const TempFolder folder;
  const std::string cert_file, key_file;
};

TEST(TlsContexts, NameTheFileAtFault) {
  const Certificate one("one"), other("other");
  const auto error = [](const std::string& cert, const std::string& key) {
    const auto loaded = TlsContext::load(cert, key);
    return loaded ? std::string("loaded") : loaded.error().message;
  };
  EXPECT_EQ(error(one.cert_file, one.key_file), "loaded");
  EXPECT_NE(error("/nowhere.crt", one.key_file).find("--tls-cert: cannot read /nowhere.crt"),
            std::string::npos);
  EXPECT_NE(error(one.cert_file, "/nowhere.key").find("--tls-key: cannot read /nowhere.key"),
            std::string::npos);
  const std::string swapped = error(one.key_file, one.cert_file);
  EXPECT_NE(swapped.find("--tls-cert: expected certificates in PEM form in " + one.key_file),
            std::string::npos)
      << swapped;
  const std::string no_key = error(one.cert_file, one.cert_file);
  EXPECT_NE(no_key.find("--tls-key: expected a private key in PEM form"), std::string::npos)
      << no_key;
  const std::string locked = error(one.cert_file, one.key_file + ".locked");
  EXPECT_NE(locked.find("without a passphrase"), std::string::npos) << locked;
  const std::string foreign = error(one.cert_file, other.key_file);
  EXPECT_NE(foreign.find("is not the key of the certificate in " + one.cert_file),
            std::string::npos)
      << foreign;
}

// A FIFO has no end: to open it is to wait.
TEST(TlsContexts, TakeRegularFilesOnly) {
  const Certificate one("one");
  const std::string fifo = one.folder.path() + "/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const auto error = [&](const std::string& cert, const std::string& key) {
    const auto loaded = TlsContext::load(cert, key);
    return loaded ? std::string("loaded") : loaded.error().message;
  };
  EXPECT_EQ(error(fifo, one.key_file),
            "--tls-cert: expected a regular file, found a FIFO: " + fifo);
  EXPECT_EQ(error(one.cert_file, fifo),
            "--tls-key: expected a regular file, found a FIFO: " + fifo);
  EXPECT_EQ(error(one.folder.path(), one.key_file),
            "--tls-cert: expected a regular file, found a folder: " + one.folder.path());
  EXPECT_EQ(error("/dev/zero", one.key_file),
            "--tls-cert: expected a regular file, found a device or a socket: /dev/zero");
  auto context = TlsContext::load(one.cert_file, one.key_file);
  ASSERT_TRUE(context) << context.error().message;
  std::filesystem::remove(one.key_file);
  ASSERT_EQ(::mkfifo(one.key_file.c_str(), 0600), 0);
  EXPECT_FALSE((*context)->reload());
  EXPECT_TRUE((*context)->description().starts_with("CN=one"));
}

TEST(TlsContexts, KeepWhatTheyHaveWhenNewFilesAreBad) {
  const Certificate one("reloaded");
  auto context = TlsContext::load(one.cert_file, one.key_file);
  ASSERT_TRUE(context) << context.error().message;
  EXPECT_TRUE((*context)->description().starts_with("CN=reloaded until 2"))
      << (*context)->description();
  EXPECT_FALSE((*context)->expired());
  std::ofstream(one.key_file) << "nonsense";
  EXPECT_FALSE((*context)->reload());
  EXPECT_TRUE((*context)->description().starts_with("CN=reloaded"));
  one.write("reloaded", -3600);
  EXPECT_TRUE((*context)->reload());
  EXPECT_TRUE((*context)->expired());
}

// OpenSSL's own client, in memory.
class Client {
 public:
  Client() : context_(SSL_CTX_new(TLS_client_method())), session_(SSL_new(context_)) {
    BIO* const in = BIO_new(BIO_s_mem());
    BIO* const out = BIO_new(BIO_s_mem());
    BIO_set_mem_eof_return(in, -1);
    BIO_set_mem_eof_return(out, -1);
    SSL_set_bio(session_, in, out);
    SSL_set_connect_state(session_);
  }
  ~Client() {
    SSL_free(session_);
    SSL_CTX_free(context_);
  }
  SSL* session() { return session_; }

  // Hands bytes to and fro until nobody has any; returns what the server has read.
  std::string talk(TlsSession& server, TlsSession::Status* last = nullptr) {
    std::string received;
    for (bool moved = true; moved;) {
      moved = false;
      SSL_do_handshake(session_);
      char buffer[4096];
      for (size_t n = 0; SSL_read_ex(session_, buffer, sizeof buffer, &n) == 1;)
        answer.append(buffer, n);
      std::string sealed(BIO_ctrl_pending(SSL_get_wbio(session_)), '\0');
      if (!sealed.empty()) {
        BIO_read(SSL_get_wbio(session_), sealed.data(), static_cast<int>(sealed.size()));
        for (const char byte : sealed) {  // Records come in pieces.
          server.feed({&byte, 1});
          TlsSession::Read read = server.read(buffer, sizeof buffer);
          for (; read.status == TlsSession::Status::kData;
               read = server.read(buffer, sizeof buffer))
            received.append(buffer, read.bytes);
          if (last) *last = read.status;
        }
        moved = true;
      }
      std::string out;
      server.take_output(out);
      if (out.empty()) continue;
      BIO_write(SSL_get_rbio(session_), out.data(), static_cast<int>(out.size()));
      moved = true;
    }
    return received;
  }

  std::string answer;

 private:
  SSL_CTX* const context_;
  SSL* const session_;
};

class TlsSessions : public testing::Test {
 protected:
  const Certificate certificate{"session"};
  std::shared_ptr<TlsContext> context =
      *TlsContext::load(certificate.cert_file, certificate.key_file);
  TlsSession server{*context};
  Client client;
};

TEST_F(TlsSessions, CarryBytesBothWays) {
  EXPECT_FALSE(server.write("too early"));
  static constexpr unsigned char kOffers[] = "\x02h2\x08http/1.1";
  SSL_set_alpn_protos(client.session(), kOffers, sizeof kOffers - 1);
  client.talk(server);
  ASSERT_TRUE(server.established());
  const unsigned char* protocol = nullptr;
  unsigned length = 0;
  SSL_get0_alpn_selected(client.session(), &protocol, &length);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(protocol), length), "http/1.1");
  const std::string request(100'000, 'q'), answer(1'000'000, 'a');
  size_t written = 0;
  ASSERT_EQ(SSL_write_ex(client.session(), request.data(), request.size(), &written), 1);
  EXPECT_EQ(client.talk(server), request);
  ASSERT_TRUE(server.write(answer));
  client.talk(server);
  EXPECT_EQ(client.answer, answer);
  server.shut_down();
  client.talk(server);
  EXPECT_EQ(SSL_get_shutdown(client.session()) & SSL_RECEIVED_SHUTDOWN, SSL_RECEIVED_SHUTDOWN);
}

TEST_F(TlsSessions, SeeTheClientsEnd) {
  client.talk(server);
  SSL_shutdown(client.session());
  TlsSession::Status last{};
  client.talk(server, &last);
  EXPECT_EQ(last, TlsSession::Status::kClosed);
}

TEST_F(TlsSessions, RefuseOldVersionsAndOtherProtocols) {
  TlsSession::Status last{};
  SSL_set_min_proto_version(client.session(), TLS1_VERSION);
  SSL_set_max_proto_version(client.session(), TLS1_1_VERSION);
  SSL_set_security_level(client.session(), 0);
  client.talk(server, &last);
  EXPECT_EQ(last, TlsSession::Status::kFailed);
  TlsSession second(*context);
  Client http2;
  static constexpr unsigned char kOffers[] = "\x02h2";
  SSL_set_alpn_protos(http2.session(), kOffers, sizeof kOffers - 1);
  http2.talk(second, &last);
  EXPECT_EQ(last, TlsSession::Status::kFailed);
}

TEST_F(TlsSessions, TellPlainHttpFromNonsense) {
  char buffer[100];
  server.feed("GET / HTTP/1.1\r\n\r\n");
  EXPECT_EQ(server.read(buffer, sizeof buffer).status, TlsSession::Status::kPlainHttp);
  EXPECT_EQ(server.read(buffer, sizeof buffer).status, TlsSession::Status::kFailed);
  TlsSession second(*context);
  second.feed(std::string(1000, '\x7f'));
  EXPECT_EQ(second.read(buffer, sizeof buffer).status, TlsSession::Status::kFailed);
  EXPECT_FALSE(second.write("x"));
}

}  // namespace
}  // namespace weir::net
