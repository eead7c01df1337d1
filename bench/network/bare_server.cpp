#include "bare_server.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <chrono>
#include <string_view>
#include <thread>
#include <vector>

#include "base/check.h"

namespace weir::bench {

namespace {

constexpr int kEventsMax = 1024;  // As libuv.

void write_all(int fd, std::string_view bytes) {
  CHECK(::write(fd, bytes.data(), bytes.size()) == std::ssize(bytes));
}

int add(int epoll, int fd) {
  epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

// A chunk of this size in all, with one event.
std::string chunk_of(int64_t bytes) {
  char size[20];
  const int64_t guess = bytes - 6;  // "xx\r\n" before, "\r\n" behind; "xxx\r\n" from 256 on.
  const int64_t payload = guess < 256 ? guess : guess - 1;
  const char* end = std::to_chars(size, size + sizeof size, payload, 16).ptr;
  std::string chunk(static_cast<const char*>(size), end);
  chunk += "\r\n";
  chunk.append(static_cast<size_t>(payload - 2), 'x');
  return chunk + "\n\n\r\n";
}

}  // namespace

BareServer::BareServer() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* const name = reinterpret_cast<sockaddr*>(&address);
  CHECK(::bind(listener_, name, length) == 0 && ::listen(listener_, 4096) == 0);
  CHECK(::getsockname(listener_, name, &length) == 0);
  port_ = ntohs(address.sin_port);
}

BareServer::~BareServer() { ::close(listener_); }

int BareServer::accept_one() const {
  const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  CHECK(fd >= 0);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

BareResult BareServer::run_streams(int32_t clients, int32_t steps, int32_t margin,
                                   int64_t period_us, int64_t chunk_bytes) {
  BareResult result;
  std::thread([&] {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    const int wake = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    CHECK(add(epoll, wake) == 0);
    std::vector<int> fds;
    for (int32_t i = 0; i < clients; ++i) {
      fds.push_back(accept_one());
      CHECK(add(epoll, fds.back()) == 0);
    }
    std::array<epoll_event, kEventsMax> events;
    std::array<char, 4096> buffer;
    for (int32_t open = clients; open > 0;) {
      const int count = ::epoll_wait(epoll, events.data(), kEventsMax, -1);
      for (int i = 0; i < count; ++i, --open)
        CHECK(::read(events[static_cast<size_t>(i)].data.fd, buffer.data(), buffer.size()) > 0);
    }
    for (const int fd : fds) write_all(fd, "HTTP/1.1 200 OK\r\n\r\n");

    std::thread ticker([&] {
      auto next = std::chrono::steady_clock::now();
      for (int32_t i = 0; i < steps; ++i) {
        next += std::chrono::microseconds(period_us);
        std::this_thread::sleep_until(next);
        const uint64_t one = 1;
        CHECK(::write(wake, &one, sizeof one) == sizeof one);
      }
    });
    const std::string chunk = chunk_of(chunk_bytes);
    CpuTime begin;
    for (int32_t step = 0; step < steps;) {
      const int count = ::epoll_wait(epoll, events.data(), kEventsMax, -1);
      uint64_t ticks = 0;
      if (count != 1 || ::read(wake, &ticks, sizeof ticks) != sizeof ticks) continue;
      // A late loop writes as often as it was told to: the same number of events as Weir's.
      for (; ticks > 0; --ticks, ++step) {
        if (step == margin) begin = thread_cpu();
        if (step == steps - margin) result.cpu = thread_cpu() - begin;
        for (const int fd : fds) write_all(fd, chunk);
      }
    }
    ticker.join();
    for (const int fd : fds) write_all(fd, "0\r\n\r\n");
    for (const int fd : fds) ::close(fd);
    ::close(wake);
    ::close(epoll);
  }).join();
  result.writes = int64_t{clients} * (steps - 2 * margin);
  return result;
}

BareResult BareServer::run_requests(int32_t clients, int64_t response_bytes) {
  BareResult result;
  std::thread([&] {
    const int epoll = ::epoll_create1(EPOLL_CLOEXEC);
    for (int32_t i = 0; i < clients; ++i) CHECK(add(epoll, accept_one()) == 0);
    std::string response = "HTTP/1.1 200 OK\r\nContent-Length: ";
    // The digits of the length are three for any answer from 100 to 999 bytes.
    const int64_t body = response_bytes - std::ssize(response) - 3 - 4;
    CHECK(body >= 100 && body < 1000);
    response += std::to_string(body) + "\r\n\r\n";
    response.append(static_cast<size_t>(body), 'x');
    std::array<epoll_event, kEventsMax> events;
    std::vector<char> buffer(64 << 10);
    const CpuTime begin = thread_cpu();
    for (int32_t open = clients; open > 0;) {
      const int count = ::epoll_wait(epoll, events.data(), kEventsMax, -1);
      for (int i = 0; i < count; ++i) {
        const int fd = events[static_cast<size_t>(i)].data.fd;
        if (::read(fd, buffer.data(), buffer.size()) > 0) {
          write_all(fd, response);
          ++result.writes;
          continue;
        }
        ::close(fd);
        --open;
      }
    }
    result.cpu = thread_cpu() - begin;
    ::close(epoll);
  }).join();
  return result;
}

}  // namespace weir::bench
