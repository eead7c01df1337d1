// What an operator's files hold: as a file of keys any bytes give keys that are found by their
// secrets, or an error that repeats no line of it; as certificate and key an error or a context.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "api/access/keys.h"
#include "base/check.h"
#include "net/tls.h"

namespace {

constexpr size_t kMessageBytesMax = 400;

void parse_as_keys(std::string_view text) {
  const auto keys = weir::api::parse_keys(text, "fuzz");
  if (!keys) {
    const std::string& message = keys.error().message;
    CHECK(message.starts_with("fuzz") && message.size() < kMessageBytesMax);
    return;
  }
  for (const weir::api::KeySpec& key : *keys)
    CHECK(!key.secret.empty() && !key.name.empty() && key.concurrency >= 0 &&
          key.requests_per_minute >= 0 && key.tokens_per_minute >= 0);
  if (!weir::api::check_keys(*keys)) return;
  const weir::api::Keyring ring(*keys);
  for (const weir::api::KeySpec& key : *keys) {
    weir::net::HttpRequest request;
    request.headers.emplace_back("authorization", "Bearer " + key.secret);
    const auto found = ring.find(request);
    CHECK(found != nullptr && found->name() == key.name);
  }
}

void load_as_certificate(std::string_view text) {
  const int file = ::memfd_create("fuzz", 0);
  CHECK(file >= 0 && ::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
  const std::string path = "/proc/self/fd/" + std::to_string(file);
  const auto context = weir::net::TlsContext::load(path, path);
  if (context)
    CHECK(!(*context)->description().empty() && (*context)->reload().has_value());
  else
    CHECK(context.error().message.starts_with("--tls-"));
  ::close(file);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  parse_as_keys(text);
  load_as_certificate(text);
  return 0;
}
