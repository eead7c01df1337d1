// Transport: HTTP requests that run side by side on the thread that waits for them.
// curl_transport() is the one that talks to the world; tests have one that follows a script.
//
// Threads: all calls from one thread. Receivers are called from run() only, and from within one no
// request may be started or cancelled.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hub/settings.h"
#include "hub/url.h"

struct sockaddr;

namespace weir::hub {

struct ByteRange {
  uint64_t begin = 0, end = 0;  // [begin, end).
  uint64_t bytes() const { return end - begin; }
};

struct Request {
  std::string url = {};
  bool head_only = false;
  std::string token = {};               // Authorization: Bearer TOKEN. Empty: none.
  std::optional<ByteRange> range = {};  // Range: bytes=begin-(end-1).
  // For all of it. 0: none; an answer below 1 KB/s for 30 s ends in any case.
  std::chrono::milliseconds time{0};
};

struct ResponseHead {
  int status = 0;
  std::vector<std::pair<std::string, std::string>> headers;  // Names in lower case.

  // Empty where there is none; the last where there are several.
  std::string_view header(std::string_view name) const;
};

enum class Ending : uint8_t {
  kWhole,    // The answer has come to its end.
  kBroken,   // It has not, or no connection could be made: trying again may help.
  kRefused,  // Trying again does not: an address or a certificate that is not to be trusted.
};

// Of one request. Redirects are not followed: they are answers like others.
class Receiver {
 public:
  virtual ~Receiver() = default;
  // False ends the request without a further call.
  virtual bool on_head(const ResponseHead& head) = 0;
  virtual bool on_data(std::string_view bytes) = 0;
  // The last call. `why` is a sentence unless the answer is whole.
  virtual void on_end(Ending ending, const std::string& why) = 0;
};

class Transport {
 public:
  using Id = uint64_t;

  virtual ~Transport() = default;
  // `receiver` outlives the request.
  virtual Id start(const Request& request, Receiver& receiver) = 0;
  // No call to its receiver comes any more. Nothing happens for one that has ended.
  virtual void cancel(Id id) = 0;
  // Works on all requests until something has come, at most for `time`.
  virtual void run(std::chrono::milliseconds time) = 0;
  virtual std::chrono::steady_clock::time_point now() const = 0;
};

// Which addresses a transport may ask, and how. Asked on the transport's thread.
class Reach {
 public:
  virtual ~Reach() = default;
  // Why `url` is not asked: a sentence that names its host. Empty: it is.
  virtual std::string refusal(const Url& url) = 0;
  // The same of an address that stands for its host, before a connection to it is made. Not asked
  // where a proxy makes the connection.
  virtual std::string refusal(const Url& url, const sockaddr* address) = 0;
  // The proxy that makes it; empty: none.
  virtual std::string proxy(const Url& url) = 0;
  // It may be told a token.
  virtual bool is_trusted(const Url& url) = 0;
};

// Over libcurl. Speaks http and https, with what `reach` allows.
// The error: libcurl cannot be set up.
Result<std::unique_ptr<Transport>> curl_transport(std::unique_ptr<Reach> reach);

// The one to a hub. Speaks https, and http only where `settings.endpoint` does. Other hosts than the
// endpoint's must have public addresses, or one of the endpoint's kind (loopback, private): else a
// hub could have this machine ask what only it can reach. Where a proxy is configured (https_proxy,
// http_proxy, all_proxy, no_proxy) it is the proxy that knows addresses, and refuses them.
Result<std::unique_ptr<Transport>> curl_transport(const Settings& settings);

}  // namespace weir::hub
