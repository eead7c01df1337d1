// Images from web addresses, whatever their servers do.
#include "program/media_fetcher.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "../hub/scripted_transport.h"

namespace weir {
namespace {

using hub::ScriptedAnswer;

// The fetcher with a scripted web; what it posts is run by the test's thread.
class Fetching {
 public:
  explicit Fetching(hub::ScriptedTransport::Script script)
      : fetcher_(*MediaHosts::parse(std::vector<std::string>{"*"}),
                 [this](std::function<void()> call) {
                   const std::lock_guard lock(mutex_);
                   calls_.push_back(std::move(call));
                   bell_.notify_one();
                 },
                 [script = std::move(script)]() -> Result<std::unique_ptr<hub::Transport>> {
                   return std::make_unique<hub::ScriptedTransport>(script);
                 }) {}

  // Nobody waits for them.
  void begin(std::vector<std::string> addresses) {
    fetcher_.fetch({.addresses = std::move(addresses),
                    .bytes_max = size_t{1} << 30,
                    .admit = [](size_t) { return Result<void>(); },
                    .done = [](const std::vector<Result<std::string>>&) {}});
  }
  // What each address gave: the file, or "! " and why not.
  std::vector<std::string> fetch(std::vector<std::string> addresses, size_t bytes_max = 1 << 20) {
    std::optional<std::vector<std::string>> found;
    fetcher_.fetch({.addresses = std::move(addresses),
                    .bytes_max = bytes_max,
                    .admit = [this](size_t bytes) -> Result<void> {
                      if ((admitted += bytes) > memory)
                        return fail(ErrorCode::kOverloaded, "the memory is used up");
                      return {};
                    },
                    .done = [&](std::vector<Result<std::string>> files) {
                      found.emplace();
                      for (const auto& file : files)
                        found->push_back(file ? *file : "! " + file.error().message);
                    }});
    while (!found) run_one();
    return *found;
  }
  void run_one() {
    std::unique_lock lock(mutex_);
    bell_.wait(lock, [this] { return !calls_.empty(); });
    const auto call = std::move(calls_.front());
    calls_.erase(calls_.begin());
    lock.unlock();
    call();
  }

  std::atomic<size_t> admitted{0};
  size_t memory = size_t{64} << 20;

 private:
  std::mutex mutex_;
  std::condition_variable bell_;
  std::vector<std::function<void()>> calls_;
  MediaFetcher fetcher_;  // Ends first.
};

TEST(MediaFetcher, BringsFilesInTheirOrder) {
  Fetching fetching([](const hub::Request& request) {
    return ScriptedAnswer{.body = "of " + request.url.substr(request.url.rfind('/') + 1)};
  });
  std::vector<std::string> addresses, files;
  for (int i = 0; i < 20; ++i) {
    addresses.push_back("https://a.example/" + std::to_string(i));
    files.push_back("of " + std::to_string(i));
  }
  EXPECT_EQ(fetching.fetch(addresses), files);
}

TEST(MediaFetcher, FollowsAFewRedirects) {
  Fetching fetching([](const hub::Request& request) {
    const char step = request.url.back();
    if (step == '0') return ScriptedAnswer{.body = "here"};
    return ScriptedAnswer{.status = 302,
                          .headers = {{"location", std::string("/") + static_cast<char>(step - 1)}}};
  });
  EXPECT_EQ(fetching.fetch({"https://a.example/3"}), std::vector<std::string>{"here"});
  EXPECT_EQ(fetching.fetch({"https://a.example/4"}),
            std::vector<std::string>{"! it cannot be fetched: a.example: more than 3 redirects"});
}

TEST(MediaFetcher, FaultsBecomeSentences) {
  Fetching fetching([](const hub::Request& request) {
    if (request.url.ends_with("404")) return ScriptedAnswer{.status = 404};
    if (request.url.ends_with("said"))
      return ScriptedAnswer{.headers = {{"content-length", "2000"}}, .body = "x"};
    if (request.url.ends_with("long")) return ScriptedAnswer{.body = std::string(2000, 'x')};
    if (request.url.ends_with("cut"))
      return ScriptedAnswer{.body = std::string(200, 'x'), .cut_after = 100};
    return ScriptedAnswer{.body = "good"};
  });
  const std::string cannot = "! it cannot be fetched: ";
  EXPECT_EQ(fetching.fetch({"https://a.example/404", "https://a.example/said",
                            "https://a.example/long", "https://a.example/cut",
                            "https://a.example/good"},
                           1000),
            (std::vector<std::string>{
                cannot + "a.example: expected status 200, found 404",
                cannot + "a.example: expected at most 1000 bytes, found 2000",
                cannot + "a.example: expected at most 1000 bytes, found more",
                cannot + "the connection broke", "good"}));
}

TEST(MediaFetcher, TakesNoMoreMemoryThanItGets) {
  Fetching fetching(
      [](const hub::Request&) { return ScriptedAnswer{.body = std::string(900'000, 'x')}; });
  fetching.memory = 500'000;
  EXPECT_EQ(fetching.fetch({"https://a.example/a"}),
            std::vector<std::string>{"! the memory is used up"});
}

// A web server of a few answers, on a loopback address.
class LoopbackServer {
 public:
  explicit LoopbackServer(std::function<std::string(const std::string& head)> answer)
      : answer_(std::move(answer)), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&at), size), 0);
    EXPECT_EQ(::listen(listener_, 8), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~LoopbackServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  std::string at(const std::string& host, const std::string& path) const {
    return "http://" + host + ":" + std::to_string(port_) + path;
  }

 private:
  void serve() {
    for (int client; (client = ::accept(listener_, nullptr, nullptr)) >= 0;) {
      std::string head;
      char piece[4096];
      while (head.find("\r\n\r\n") == std::string::npos) {
        const ssize_t count = ::recv(client, piece, sizeof piece, 0);
        if (count <= 0) break;
        head.append(piece, static_cast<size_t>(count));
      }
      const std::string text = answer_(head);
      EXPECT_EQ(::send(client, text.data(), text.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(text.size()));
      ::close(client);
    }
  }

  const std::function<std::string(const std::string& head)> answer_;
  const int listener_;
  uint16_t port_ = 0;
  std::thread thread_;
};

std::string fetched(const std::vector<std::string>& hosts, const std::string& address) {
  std::mutex mutex;
  std::condition_variable bell;
  std::function<void()> posted;
  std::string found;
  MediaFetcher fetcher(*MediaHosts::parse(hosts), [&](std::function<void()> call) {
    const std::lock_guard lock(mutex);
    posted = std::move(call);
    bell.notify_one();
  });
  fetcher.fetch({.addresses = {address},
                 .bytes_max = 100,
                 .admit = [](size_t) { return Result<void>(); },
                 .done = [&](std::vector<Result<std::string>> files) {
                   found = files[0] ? *files[0] : "! " + files[0].error().message;
                 }});
  std::unique_lock lock(mutex);
  bell.wait(lock, [&] { return posted != nullptr; });
  posted();
  return found;
}

TEST(MediaFetcher, OverLibcurlAsksWhatTheListNames) {
  const LoopbackServer server([](const std::string& head) {
    const auto is = [&](const char* path) { return head.starts_with(std::string("GET ") + path); };
    if (is("/away")) {
      const size_t host = head.find("Host: ") + 6, colon = head.find(':', host);
      const std::string port = head.substr(colon, head.find('\r', colon) - colon);
      return "HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2" + port + "/\r\n\r\n";
    }
    if (is("/loop"))
      return std::string("HTTP/1.1 301 Moved\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n");
    if (is("/cut")) return std::string("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nshort");
    if (is("/large")) return "HTTP/1.1 200 OK\r\n\r\n" + std::string(200, 'x');
    EXPECT_EQ(head.find("Authorization"), std::string::npos);
    return std::string("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\ngood");
  });
  const std::vector<std::string> own = {"127.0.0.1"};
  EXPECT_EQ(fetched(own, server.at("127.0.0.1", "/")), "good");
  EXPECT_NE(fetched(own, server.at("127.0.0.1", "/away"))
                .find("images and sounds are fetched from 127.0.0.1 alone (--allow-remote-media), not from "
                      "127.0.0.2"),
            std::string::npos);
  EXPECT_NE(fetched(own, server.at("127.0.0.1", "/loop")).find("more than 3 redirects"),
            std::string::npos);
  EXPECT_TRUE(fetched(own, server.at("127.0.0.1", "/cut")).starts_with("! it cannot be fetched"));
  EXPECT_NE(fetched(own, server.at("127.0.0.1", "/large")).find("expected at most 100 bytes"),
            std::string::npos);
  // A name that is allowed may lead nowhere within this network.
  EXPECT_NE(fetched({"localhost"}, server.at("localhost", "/")).find("! it cannot be fetched"),
            std::string::npos);
  EXPECT_NE(fetched({"*"}, server.at("127.0.0.1", "/")).find("not from 127.0.0.1"),
            std::string::npos);
  EXPECT_NE(fetched(own, "file:///etc/hosts").find("! it cannot be fetched"), std::string::npos);
}

TEST(MediaFetcher, EndsInTheMidstOfItsWork) {
  std::atomic<int> asked{0};
  Fetching fetching([&](const hub::Request&) {
    ++asked;
    return ScriptedAnswer{.body = std::string(64 << 20, 'x')};
  });
  fetching.begin({"https://a.example/a", "https://a.example/b"});
  while (asked == 0) std::this_thread::yield();
}

}  // namespace
}  // namespace weir
