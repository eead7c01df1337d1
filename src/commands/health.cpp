#include "commands/health.h"

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "net/http_client.h"
#include "net/loop.h"
#include "net/tls.h"

namespace weir {

namespace {

// Longer than any step that a server at work puts before an answer of its network loop.
constexpr uint64_t kAnswerMs = 5000;
constexpr size_t kBodyBytesMax = 64 << 10;

// What listens on all addresses is asked on loopback.
std::string address_of(const Options& options) {
  if (options.host == "0.0.0.0") return "127.0.0.1";
  if (options.host == "::" || options.host == "[::]") return "::1";
  return options.host;
}

Result<net::HttpTarget> target_of(const Options& options) {
  WEIR_ASSIGN(net::HttpTarget target,
              net::HttpTarget::tcp(address_of(options), static_cast<uint16_t>(options.port)));
  if (!options.tls_cert.empty()) {
    // The certificate is for a name under which others know this machine.
    WEIR_ASSIGN(auto trust, net::TlsTrust::load("", /*anybody=*/true));
    target.use_tls(std::move(trust), address_of(options));
  }
  return target;
}

}  // namespace

Result<void> check_health(const Options& options) {
  WEIR_ASSIGN(const net::HttpTarget target, target_of(options));
  net::Loop loop;
  int status = 0;
  std::string body;
  std::optional<std::string> failure;
  const auto stop = [&](std::optional<std::string> why) {
    failure = std::move(why);
    loop.stop();
  };
  net::HttpClient client(loop, target,
                         {.on_head = [&](int code, std::string_view) { status = code; },
                          .on_body =
                              [&](std::string_view bytes) {
                                if (body.size() + bytes.size() <= kBodyBytesMax) body += bytes;
                              },
                          .on_end = [&] { stop(std::nullopt); },
                          .on_error = [&](const std::string& why) { stop(why); }});
  loop.every(kAnswerMs, [&] { stop("no answer in " + std::to_string(kAnswerMs / 1000) + " s"); });
  client.request("GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  loop.run();
  const std::string where = address_of(options) + " port " + std::to_string(options.port) + ": ";
  if (failure) return fail(ErrorCode::kUnavailable, where + *failure);
  if (status != 200)
    return fail(ErrorCode::kUnavailable,
                where + "expected 200 of /health; found " + std::to_string(status) + " " + body);
  std::printf("%s\n", body.c_str());
  return {};
}

}  // namespace weir
