#include "program/media_fetcher.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/concat.h"
#include "hub/url.h"

namespace weir {

namespace {

// How long the other thread may not hear of orders and of its end while files come.
constexpr std::chrono::milliseconds kStep{20};
// Memory is asked for in pieces.
constexpr size_t kPieceBytes = size_t{256} << 10;

class ListedReach final : public hub::Reach {
 public:
  explicit ListedReach(const MediaHosts& hosts) : hosts_(hosts) {}

  std::string refusal(const hub::Url& url) override {
    if (hosts_.allows_host(url.host)) return {};
    return concat({"images and sounds are fetched from ", hosts_.shown(),
                   " alone (--allow-remote-media), not from ", url.host});
  }
  std::string refusal(const hub::Url& url, const sockaddr* address) override {
    if (hosts_.allows_address(address)) return {};
    return concat({url.host, " stands for an address that is not public, which "
                   "--allow-remote-media does not name"});
  }
  // A proxy would look names up itself.
  std::string proxy(const hub::Url&) override { return {}; }
  bool is_trusted(const hub::Url&) override { return false; }

 private:
  const MediaHosts& hosts_;
};

}  // namespace

// One file on its way.
class MediaFetcher::File final : public hub::Receiver {
 public:
  File(std::string address, const Order& order) : address_(std::move(address)), order_(order) {}

  bool started() const { return started_; }
  bool running() const { return id_.has_value(); }
  bool done() const { return result_.has_value(); }
  Result<std::string> take() { return *std::move(result_); }

  void start(hub::Transport& transport) {
    const auto now = transport.now();
    if (!std::exchange(started_, true)) end_ = now + kTimeMax;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end_ - now);
    if (left.count() <= 0) return fail(concat({address_host(), ": it has taken too long"}));
    moved_.reset();
    id_ = transport.start({.url = address_, .time = left}, *this);
  }
  void stop(hub::Transport& transport) {
    if (id_) transport.cancel(*std::exchange(id_, std::nullopt));
  }
  // It was sent elsewhere, and is to be started anew.
  bool is_moved() const { return moved_.has_value() && !done(); }
  void follow() {
    const Result<hub::Url> from = hub::Url::parse(address_);
    Result<hub::Url> to = from ? from->join(*moved_) : from;
    if (!to) return fail(to.error().message);
    if (++redirects_ > kRedirectsMax)
      return fail(concat({from->host, ": more than ", std::to_string(kRedirectsMax),
                          " redirects"}));
    address_ = std::move(to->text);
  }

  bool on_head(const hub::ResponseHead& head) override {
    constexpr std::array kMoved = {301, 302, 303, 307, 308};
    if (std::ranges::find(kMoved, head.status) != kMoved.end() &&
        !head.header("location").empty()) {
      moved_ = std::string(head.header("location"));
      return stop_here();
    }
    if (head.status != 200) {
      fail(concat({address_host(), ": expected status 200, found ", std::to_string(head.status)}));
      return stop_here();
    }
    const std::string_view length = head.header("content-length");
    size_t bytes = 0;
    if (std::from_chars(length.data(), length.data() + length.size(), bytes).ec == std::errc() &&
        bytes > order_.bytes_max) {
      fail_size(std::to_string(bytes));
      return stop_here();
    }
    return true;
  }

  bool on_data(std::string_view bytes) override {
    if (bytes.size() > order_.bytes_max - text_.size()) {
      fail_size("more");
      return stop_here();
    }
    while (text_.size() + bytes.size() > admitted_) {
      const size_t piece = std::max(kPieceBytes, admitted_);
      if (Result<void> room = order_.admit(piece); !room) {
        result_ = tl::unexpected<Error>(std::move(room).error());
        return stop_here();
      }
      admitted_ += piece;
    }
    text_ += bytes;
    return true;
  }

  void on_end(hub::Ending ending, const std::string& why) override {
    id_.reset();
    if (done()) return;
    if (ending == hub::Ending::kWhole)
      result_ = std::move(text_);
    else
      fail(why);
  }

 private:
  // A receiver that says so hears no end.
  bool stop_here() {
    id_.reset();
    return false;
  }
  void fail(std::string why) {
    result_ = weir::fail(ErrorCode::kInvalid, "it cannot be fetched: " + std::move(why), {},
                         "failed_to_download_image");
  }
  void fail_size(const std::string& found) {
    fail(concat({address_host(), ": expected at most ", std::to_string(order_.bytes_max),
                 " bytes, found ", found}));
  }
  std::string address_host() const {
    const Result<hub::Url> url = hub::Url::parse(address_);
    return url ? url->host : std::string("the address");
  }

  std::string address_;
  const Order& order_;
  std::string text_;
  size_t admitted_ = 0;
  int redirects_ = 0;
  bool started_ = false;
  std::chrono::steady_clock::time_point end_{};
  std::optional<std::string> moved_;
  std::optional<hub::Transport::Id> id_;  // While a request runs.
  std::optional<Result<std::string>> result_;
};

struct MediaFetcher::Open {
  Order order;
  std::deque<File> files;  // That do not move: requests hold them.

  size_t running() const {
    return static_cast<size_t>(std::ranges::count_if(files, &File::running));
  }
};

MediaFetcher::MediaFetcher(MediaHosts hosts, Post post,
                           std::function<Result<std::unique_ptr<hub::Transport>>()> transport)
    : hosts_(std::move(hosts)),
      post_(std::move(post)),
      make_transport_(transport ? std::move(transport) : [this] {
        return hub::curl_transport(std::make_unique<ListedReach>(hosts_));
      }) {}

MediaFetcher::~MediaFetcher() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  bell_.notify_one();
  thread_.join();
}

uint64_t MediaFetcher::fetch(Order order) {
  CHECK(!order.addresses.empty());
  const uint64_t number = ++ordered_;
  waiting_.emplace(number, std::exchange(order.done, {}));
  {
    const std::lock_guard lock(mutex_);
    orders_.emplace(number, std::move(order));
  }
  if (thread_.joinable())
    bell_.notify_one();
  else
    thread_ = std::thread([this] { work(); });
  return number;
}

void MediaFetcher::cancel(uint64_t number) {
  if (waiting_.erase(number) == 0) return;
  {
    const std::lock_guard lock(mutex_);
    cancelled_.push_back(number);
  }
  bell_.notify_one();
}

// From the other thread.
void MediaFetcher::finish(uint64_t number, std::vector<Result<std::string>> files) {
  auto held = std::make_shared<std::vector<Result<std::string>>>(std::move(files));
  post_([this, number, held, alive = std::weak_ptr(alive_)] {
    if (alive.expired()) return;
    const auto waiting = waiting_.find(number);
    if (waiting == waiting_.end()) return;
    const auto done = std::move(waiting->second);
    waiting_.erase(waiting);
    done(std::move(*held));
  });
}

// Waits where there is nothing to do. False: the end has come. `cancelled`: orders, of which any may
// have ended.
bool MediaFetcher::take_orders(std::map<uint64_t, std::unique_ptr<Open>>& open,
                               std::vector<uint64_t>& cancelled) {
  std::unique_lock lock(mutex_);
  if (open.empty()) bell_.wait(lock, [this] { return ending_ || !orders_.empty(); });
  for (auto& [number, order] : orders_) {
    auto one = std::make_unique<Open>();
    one->order = std::move(order);
    for (const std::string& address : one->order.addresses)
      one->files.emplace_back(address, one->order);
    open.emplace(number, std::move(one));
  }
  orders_.clear();
  cancelled = std::exchange(cancelled_, {});
  return !ending_;
}

// One file of each order in turn, so that the many of one keep no other waiting.
void MediaFetcher::start_files(hub::Transport& transport,
                               std::map<uint64_t, std::unique_ptr<Open>>& open) {
  size_t running = 0;
  for (const auto& [number, one] : open) running += one->running();
  for (bool any = true; any && running < kAtOnceMax;) {
    any = false;
    for (const auto& [number, one] : open) {
      if (running >= kAtOnceMax || one->running() >= kOfOneMax) continue;
      const auto next = std::ranges::find_if(
          one->files, [](const File& file) { return !file.started() || file.is_moved(); });
      if (next == one->files.end()) continue;
      if (next->is_moved()) next->follow();
      if (!next->done()) next->start(transport);
      running += next->running() ? 1 : 0;
      any = true;
    }
  }
}

void MediaFetcher::work() {
  std::map<uint64_t, std::unique_ptr<Open>> open;
  Result<std::unique_ptr<hub::Transport>> transport = make_transport_();
  std::vector<uint64_t> cancelled;
  while (take_orders(open, cancelled)) {
    for (const uint64_t number : cancelled) {
      const auto found = open.find(number);
      if (found == open.end()) continue;
      if (transport)
        for (File& file : found->second->files) file.stop(**transport);
      open.erase(found);
    }
    if (!transport) {
      for (const auto& [number, one] : open)
        finish(number, std::vector<Result<std::string>>(
                           one->files.size(), tl::unexpected<Error>(transport.error())));
      open.clear();
      continue;
    }
    start_files(**transport, open);
    if (!open.empty()) (*transport)->run(kStep);
    std::erase_if(open, [&](const auto& entry) {
      if (!std::ranges::all_of(entry.second->files, &File::done)) return false;
      std::vector<Result<std::string>> files;
      for (File& file : entry.second->files) files.push_back(file.take());
      finish(entry.first, std::move(files));
      return true;
    });
  }
  if (transport)
    for (const auto& [number, one] : open)
      for (File& file : one->files) file.stop(**transport);
}

}  // namespace weir
