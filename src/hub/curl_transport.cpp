// The transport that talks to the world: libcurl's multi interface on the caller's thread.
#include <curl/curl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>
#include <optional>

#include "base/ascii.h"
#include "base/check.h"
#include "base/concat.h"
#include "hub/address.h"
#include "hub/transport.h"
#include "hub/url.h"

namespace weir::hub {

namespace {

// A stall: slower than a bad line, for longer than one that is only interrupted.
constexpr long kStallBytesPerSecond = 1000;
constexpr long kStallSeconds = 30;
// Several times what TCP and TLS need across the world.
constexpr long kConnectMs = 15'000;
constexpr long kBufferBytes = 256 << 10;  // Few calls at a gigabyte a second.
// Connections kept open: those of downloads, and one to the hub.
constexpr long kConnectionsKept = 8;
// A head is a few KB with its signed link.
constexpr size_t kHeadBytesMax = 64 << 10;

// The proxy that the environment names for a scheme, as curl's tool reads it; empty: none.
std::string proxy_of(std::string_view scheme) {
  const auto variable = [](const char* name) -> std::string {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
  };
  // HTTP_PROXY in capitals is what a CGI server sets for a client's header: it counts for no one.
  std::string proxy = scheme == "http" ? variable("http_proxy") : variable("https_proxy");
  if (proxy.empty() && scheme == "https") proxy = variable("HTTPS_PROXY");
  if (proxy.empty()) proxy = variable("all_proxy");
  return proxy.empty() ? variable("ALL_PROXY") : proxy;
}

// One request under way.
struct Transfer {
  Transport::Id id = 0;
  CURL* easy = nullptr;
  curl_slist* headers = nullptr;
  Receiver* receiver = nullptr;
  ResponseHead head;
  size_t head_bytes = 0;
  bool head_told = false;
  bool ended = false;  // The receiver wants no more, or has been told the end.
  bool by_proxy = false;
  Url url;
  Reach* reach = nullptr;  // The transport's.
  std::string refused;     // Why no connection was made.

  Transfer() = default;
  Transfer(const Transfer&) = delete;
  Transfer& operator=(const Transfer&) = delete;
  ~Transfer() {
    if (easy != nullptr) curl_easy_cleanup(easy);
    curl_slist_free_all(headers);
  }

  void on_head_line(std::string_view line);
};

// A line of a head as it comes. A head that follows another one's (100 Continue) begins anew.
void Transfer::on_head_line(std::string_view line) {
  if (head_told) return;  // Trailers.
  while (line.ends_with('\n') || line.ends_with('\r')) line.remove_suffix(1);
  if (line.starts_with("HTTP/")) {
    head = {};
    const size_t blank = line.find(' ');
    const std::string_view code = blank == std::string_view::npos ? "" : line.substr(blank + 1);
    std::from_chars(code.data(), code.data() + code.size(), head.status);
  } else if (const size_t colon = line.find(':'); colon != std::string_view::npos && colon > 0) {
    std::string name(line.substr(0, colon));
    std::ranges::transform(name, name.begin(), ascii_lower);
    std::string_view value = line.substr(colon + 1);
    while (value.starts_with(' ') || value.starts_with('\t')) value.remove_prefix(1);
    head.headers.emplace_back(std::move(name), std::string(value));
  } else if (line.empty() && head.status >= 200) {
    head_told = true;
    ended = !receiver->on_head(head);
  }
}

size_t take_head(char* data, size_t size, size_t count, void* context) {
  auto* transfer = static_cast<Transfer*>(context);
  transfer->head_bytes += size * count;
  if (transfer->head_bytes > kHeadBytesMax) return 0;
  transfer->on_head_line({data, size * count});
  return transfer->ended ? 0 : size * count;
}

size_t take_body(char* data, size_t size, size_t count, void* context) {
  auto* transfer = static_cast<Transfer*>(context);
  transfer->ended = transfer->ended || !transfer->receiver->on_data({data, size * count});
  return transfer->ended ? 0 : size * count;
}

curl_socket_t open_socket(void* context, curlsocktype, curl_sockaddr* address) {
  auto* transfer = static_cast<Transfer*>(context);
  if (!transfer->by_proxy) {
    transfer->refused = transfer->reach->refusal(transfer->url, &address->addr);
    if (!transfer->refused.empty()) return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

class CurlTransport final : public Transport {
 public:
  CurlTransport(std::unique_ptr<Reach> reach, CURLM* multi)
      : reach_(std::move(reach)), multi_(multi) {
    curl_multi_setopt(multi_, CURLMOPT_MAXCONNECTS, kConnectionsKept);
  }
  ~CurlTransport() override {
    for (auto& [id, transfer] : transfers_) curl_multi_remove_handle(multi_, transfer->easy);
    transfers_.clear();
    curl_multi_cleanup(multi_);
  }

  Id start(const Request& request, Receiver& receiver) override;
  void cancel(Id id) override;
  void run(std::chrono::milliseconds time) override;
  std::chrono::steady_clock::time_point now() const override {
    return std::chrono::steady_clock::now();
  }

 private:
  void set_up(Transfer& transfer, const Url& url, const Request& request);
  bool tell_ends();
  void end(Id id, CURLcode code);

  const std::unique_ptr<Reach> reach_;
  CURLM* const multi_;
  Id last_ = 0;
  std::map<Id, std::unique_ptr<Transfer>> transfers_;
  // Requests that could not even begin, and why: told in run(), like all ends.
  std::vector<std::pair<Receiver*, std::string>> stillborn_;
};

Transport::Id CurlTransport::start(const Request& request, Receiver& receiver) {
  const Result<Url> url = Url::parse(request.url);
  std::string why = url ? reach_->refusal(*url) : url.error().message;
  if (!why.empty()) {
    stillborn_.emplace_back(&receiver, std::move(why));
    return ++last_;
  }
  // The client sees to it; a second look costs nothing.
  CHECK(request.token.empty() || reach_->is_trusted(*url));
  auto transfer = std::make_unique<Transfer>();
  transfer->id = ++last_;
  transfer->easy = curl_easy_init();
  CHECK(transfer->easy != nullptr);
  transfer->receiver = &receiver;
  transfer->url = *url;
  transfer->reach = reach_.get();
  set_up(*transfer, *url, request);
  curl_multi_add_handle(multi_, transfer->easy);
  return transfers_.emplace(last_, std::move(transfer)).first->first;
}

void CurlTransport::set_up(Transfer& transfer, const Url& url, const Request& request) {
  CURL* easy = transfer.easy;
  const auto add = [&](const std::string& line) {
    transfer.headers = curl_slist_append(transfer.headers, line.c_str());
  };
  add("User-Agent: weir");
  add("Accept-Encoding: identity");
  if (!request.token.empty()) add("Authorization: Bearer " + request.token);
  if (request.range)
    add(concat({"Range: bytes=", std::to_string(request.range->begin), "-",
                std::to_string(request.range->end - 1)}));
  curl_easy_setopt(easy, CURLOPT_URL, url.text.c_str());
  curl_easy_setopt(easy, CURLOPT_HTTPHEADER, transfer.headers);
  curl_easy_setopt(easy, CURLOPT_HEADEROPT, static_cast<long>(CURLHEADER_SEPARATE));
  curl_easy_setopt(easy, CURLOPT_NOBODY, request.head_only ? 1L : 0L);
  curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, url.scheme.c_str());
  // A connection a request: streams of one HTTP/2 connection would share its window.
  curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, kConnectMs);
  curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, static_cast<long>(request.time.count()));
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_LIMIT, kStallBytesPerSecond);
  curl_easy_setopt(easy, CURLOPT_LOW_SPEED_TIME, kStallSeconds);
  curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, kBufferBytes);
  // What other programs of this kind read, for networks whose TLS is taken apart on the way.
  if (const char* file = std::getenv("SSL_CERT_FILE"); file != nullptr && *file != '\0')
    curl_easy_setopt(easy, CURLOPT_CAINFO, file);
  const std::string proxy = reach_->proxy(url);
  transfer.by_proxy = !proxy.empty();
  curl_easy_setopt(easy, CURLOPT_PROXY, proxy.c_str());  // Empty: none, whatever else is set.
  curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, &take_head);
  curl_easy_setopt(easy, CURLOPT_HEADERDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, &take_body);
  curl_easy_setopt(easy, CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, &open_socket);
  curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, &transfer);
  curl_easy_setopt(easy, CURLOPT_PRIVATE, &transfer);
}

void CurlTransport::cancel(Id id) {
  const auto found = transfers_.find(id);
  if (found == transfers_.end()) return;
  curl_multi_remove_handle(multi_, found->second->easy);
  transfers_.erase(found);
}

void CurlTransport::run(std::chrono::milliseconds time) {
  int running = 0;
  curl_multi_perform(multi_, &running);
  if (tell_ends() || time.count() <= 0) return;
  curl_multi_poll(multi_, nullptr, 0, static_cast<int>(time.count()), nullptr);
  curl_multi_perform(multi_, &running);
  tell_ends();
}

// Whether there were any.
bool CurlTransport::tell_ends() {
  bool any = false;
  for (const auto& [receiver, why] : std::exchange(stillborn_, {})) {
    receiver->on_end(Ending::kRefused, why);
    any = true;
  }
  int left = 0;
  while (const CURLMsg* message = curl_multi_info_read(multi_, &left)) {
    if (message->msg != CURLMSG_DONE) continue;
    void* transfer = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &transfer);
    end(static_cast<Transfer*>(transfer)->id, message->data.result);
    any = true;
  }
  return any;
}

// Why a request has ended; libcurl's words, which repeat no address.
void CurlTransport::end(Id id, CURLcode code) {
  const auto found = transfers_.find(id);
  const std::unique_ptr<Transfer> transfer = std::move(found->second);
  transfers_.erase(found);
  curl_multi_remove_handle(multi_, transfer->easy);
  if (transfer->ended) return;
  if (code == CURLE_OK && transfer->head_told)
    return transfer->receiver->on_end(Ending::kWhole, "");
  if (!transfer->refused.empty())
    return transfer->receiver->on_end(Ending::kRefused, transfer->refused);
  constexpr std::array kFinal = {CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE,
                                 CURLE_UNSUPPORTED_PROTOCOL, CURLE_URL_MALFORMAT,
                                 CURLE_SSL_ENGINE_NOTFOUND};
  const bool final = std::ranges::find(kFinal, code) != kFinal.end();
  transfer->receiver->on_end(final ? Ending::kRefused : Ending::kBroken,
                             concat({transfer->url.host, ": ", curl_easy_strerror(code)}));
}

// A hub, and where it sends to.
class HubReach final : public Reach {
 public:
  explicit HubReach(Url endpoint) : endpoint_(std::move(endpoint)) {}

  std::string refusal(const Url& url) override {
    if (url.scheme != "https" && endpoint_.scheme == "https")
      return url.host + ": expected an https address, as the hub's is; found http";
    const bool literal = literal_address_kind(url.host).value_or(AddressKind::kPublic) !=
                         AddressKind::kPublic;
    if (literal && !proxy(url).empty() && !is_trusted(url)) return within_network(url);
    return {};
  }
  std::string refusal(const Url& url, const sockaddr* address) override {
    const AddressKind kind = address_kind(address);
    if (is_trusted(url)) {
      endpoint_kind_ = kind;
      return {};
    }
    const bool may = kind == AddressKind::kPublic ||
                     (endpoint_kind_ == kind && kind != AddressKind::kOther);
    return may ? std::string() : within_network(url);
  }
  std::string proxy(const Url& url) override { return proxy_of(url.scheme); }
  bool is_trusted(const Url& url) override { return url.same_origin(endpoint_); }

 private:
  static std::string within_network(const Url& url) {
    return url.host + ": the hub sends to an address within this network";
  }

  const Url endpoint_;
  std::optional<AddressKind> endpoint_kind_;  // Once it was asked.
};

}  // namespace

std::string_view ResponseHead::header(std::string_view name) const {
  std::string_view value;
  for (const auto& [each, text] : headers)
    if (each == name) value = text;
  return value;
}

Result<std::unique_ptr<Transport>> curl_transport(std::unique_ptr<Reach> reach) {
  CURLM* multi = curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK ? curl_multi_init() : nullptr;
  if (multi == nullptr) return fail(ErrorCode::kCapacity, "libcurl cannot be set up");
  return std::make_unique<CurlTransport>(std::move(reach), multi);
}

Result<std::unique_ptr<Transport>> curl_transport(const Settings& settings) {
  WEIR_ASSIGN(Url endpoint, Url::parse(settings.endpoint));
  return curl_transport(std::make_unique<HubReach>(std::move(endpoint)));
}

}  // namespace weir::hub
