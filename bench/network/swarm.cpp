#include "swarm.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>
#include <thread>

#include "base/check.h"
#include "cpu_time.h"

extern char** environ;

namespace weir::bench {

namespace {

constexpr int kEventsMax = 256;
// Between two looks the swarm sleeps, whatever comes meanwhile: a client that waits for each byte
// is woken by each write, at the writer's cost, and the more often the slower the writer is.
// Clients elsewhere would not be.
constexpr auto kNap = std::chrono::milliseconds(2);
constexpr double kPatienceS = 60;

struct Client {
  int fd = -1;
  bool in_body = false;
  bool ended = false;
  char last = 0;          // The byte before.
  std::string_view body;  // Of what is read now.
  std::array<char, 5> tail{};
  int64_t line_bytes = 0;  // Of the line so far.
  double begin_s = 0, end_s = 0;
  int64_t answers = 0;
  int64_t bytes = 0;  // Of the answer so far.
};

int connect_to(uint16_t port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  std::perror("swarm: connect");
  std::exit(1);
}

void send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0) {
      std::perror("swarm: write");
      std::exit(1);
    }
    bytes.remove_prefix(static_cast<size_t>(count));
  }
}

class Run {
 public:
  Run(uint16_t port, int32_t count) : epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
    clients_.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < clients_.size(); ++i) {
      clients_[i].fd = connect_to(port);
      epoll_event event{.events = EPOLLIN, .data = {.u64 = i}};
      CHECK(::epoll_ctl(epoll_, EPOLL_CTL_ADD, clients_[i].fd, &event) == 0);
    }
  }

  // Calls on_bytes(client, bytes) until it has returned true (the client has ended) for each.
  template <class OnBytes>
  void read_all(OnBytes on_bytes) {
    std::vector<char> buffer(64 << 10);
    std::array<epoll_event, kEventsMax> events;
    double heard_s = now_s();
    for (size_t open = clients_.size(); open > 0;) {
      const int count = ::epoll_wait(epoll_, events.data(), kEventsMax, 0);
      if (count < kEventsMax) std::this_thread::sleep_for(kNap);
      if (count > 0) heard_s = now_s();
      if (now_s() > heard_s + kPatienceS) {
        std::fprintf(stderr, "swarm: %zu answers do not end\n", open);
        std::exit(1);
      }
      for (int i = 0; i < count; ++i) {
        Client& client = clients_[events[static_cast<size_t>(i)].data.u64];
        const ssize_t got = ::read(client.fd, buffer.data(), buffer.size());
        if (got <= 0) {
          std::fprintf(stderr, "swarm: the server has closed a connection\n");
          std::exit(1);
        }
        if (!on_bytes(client, std::string_view(buffer.data(), static_cast<size_t>(got)))) continue;
        ::epoll_ctl(epoll_, EPOLL_CTL_DEL, client.fd, nullptr);
        --open;
      }
    }
  }

  std::vector<Client>& clients() { return clients_; }

 private:
  const int epoll_;
  std::vector<Client> clients_;
};

std::string head_of(const std::string& method, const std::string& path) {
  return method + " " + path +
         " HTTP/1.1\r\nHost: localhost\r\nUser-Agent: swarm\r\nAccept: */*\r\n";
}

// Counts what ends in `bytes` of a chunked answer; true at its end.
bool take(Client& client, std::string_view bytes, SwarmResult& result) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  while (at < end) {
    const auto* line_end =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<size_t>(end - at)));
    if (line_end == nullptr) {
      client.line_bytes += end - at;
      break;
    }
    const char before = line_end > bytes.data() ? line_end[-1] : client.last;
    const int64_t line = client.line_bytes + (line_end - at);
    client.line_bytes = 0;
    at = line_end + 1;
    if (client.in_body) {
      if (before == '\n') ++result.events;
      if (before == '\r') ++result.chunks;  // Twice a chunk.
    } else if (line == 1) {
      client.in_body = true;
      result.bytes += end - at;
      result.bytes -= std::ssize(bytes);  // Added below.
    }
  }
  if (client.in_body) result.bytes += std::ssize(bytes);
  client.last = bytes.back();
  const size_t keep = std::min(bytes.size(), client.tail.size());
  std::memmove(client.tail.data(), client.tail.data() + keep, client.tail.size() - keep);
  std::memcpy(client.tail.data() + client.tail.size() - keep, end - keep, keep);
  return std::string_view(client.tail.data(), client.tail.size()) == "0\r\n\r\n";
}

SwarmResult run_streams(uint16_t port, int32_t count, const std::string& path,
                        const std::string& body) {
  SwarmResult result;
  Run run(port, count);
  const std::string request =
      head_of("POST", path) +
      "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) +
      "\r\n\r\n" + body;
  for (Client& client : run.clients()) {
    client.begin_s = now_s();
    send_all(client.fd, request);
  }
  run.read_all([&](Client& client, std::string_view bytes) {
    if (!take(client, bytes, result)) return false;
    client.end_s = now_s();
    ++result.streams;
    return true;
  });
  result.chunks /= 2;
  result.fastest_s = 1e9;
  for (const Client& client : run.clients()) {
    result.fastest_s = std::min(result.fastest_s, client.end_s - client.begin_s);
    result.slowest_s = std::max(result.slowest_s, client.end_s - client.begin_s);
  }
  return result;
}

// Bytes of the response that begins with `head`, from its Content-Length; 0 if there is none.
int64_t response_bytes(std::string_view response) {
  const size_t body = response.find("\r\n\r\n");
  const size_t length = response.find("Content-Length: ");
  if (body == std::string_view::npos || length > body) return 0;
  return static_cast<int64_t>(body) + 4 + std::atoll(response.data() + length + 16);
}

SwarmResult run_requests(uint16_t port, int32_t count, const std::string& path, int32_t repeats) {
  SwarmResult result;
  Run run(port, count);
  const std::string request = head_of("GET", path) + "\r\n";
  for (Client& client : run.clients()) send_all(client.fd, request);
  run.read_all([&](Client& client, std::string_view bytes) {
    // Answers to one path are equally long; that is what makes counting bytes enough.
    if (result.response_bytes == 0) result.response_bytes = response_bytes(bytes);
    client.bytes += std::ssize(bytes);
    if (result.response_bytes == 0 || client.bytes > result.response_bytes) {
      std::fprintf(stderr, "swarm: an answer of another length\n");
      std::exit(1);
    }
    if (client.bytes < result.response_bytes) return false;
    client.bytes = 0;
    ++result.requests;
    if (++client.answers == repeats) return true;
    send_all(client.fd, request);
    return false;
  });
  return result;
}

}  // namespace

int run_swarm(const std::vector<std::string>& arguments) {
  CHECK(arguments.size() == 5);
  const auto port = static_cast<uint16_t>(std::atoi(arguments[1].c_str()));
  const int32_t count = std::atoi(arguments[2].c_str());
  const SwarmResult r =
      arguments[0] == "streams"
          ? run_streams(port, count, arguments[3], arguments[4])
          : run_requests(port, count, arguments[3], std::atoi(arguments[4].c_str()));
  std::printf("%lld %lld %lld %lld %lld %lld %.9g %.9g\n", static_cast<long long>(r.streams),
              static_cast<long long>(r.events), static_cast<long long>(r.chunks),
              static_cast<long long>(r.bytes), static_cast<long long>(r.requests),
              static_cast<long long>(r.response_bytes), r.fastest_s, r.slowest_s);
  return 0;
}

Swarm::Swarm(const std::vector<std::string>& arguments) {
  int ends[2];
  CHECK(::pipe2(ends, O_CLOEXEC) == 0);
  std::vector<std::string> all = {"network_bench", "--swarm"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  std::vector<char*> pointers;
  for (std::string& argument : all) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  CHECK(::posix_spawn(&process_, "/proc/self/exe", &actions, nullptr, pointers.data(), environ) ==
        0);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  output_ = ends[0];
}

Swarm Swarm::streams(uint16_t port, int32_t clients, const std::string& path,
                     const std::string& body) {
  return Swarm({"streams", std::to_string(port), std::to_string(clients), path, body});
}

Swarm Swarm::requests(uint16_t port, int32_t clients, const std::string& path, int32_t count) {
  return Swarm(
      {"requests", std::to_string(port), std::to_string(clients), path, std::to_string(count)});
}

double Swarm::cpu_us() const {
  clockid_t clock = 0;
  timespec used{};
  if (::clock_getcpuclockid(process_, &clock) != 0 || ::clock_gettime(clock, &used) != 0) return 0;
  return 1e6 * static_cast<double>(used.tv_sec) + 1e-3 * static_cast<double>(used.tv_nsec);
}

Result<SwarmResult> Swarm::wait() {
  std::string text;
  std::array<char, 512> buffer;
  for (ssize_t count; (count = ::read(output_, buffer.data(), buffer.size())) > 0;)
    text.append(buffer.data(), static_cast<size_t>(count));
  ::close(output_);
  int status = 0;
  rusage used{};
  ::wait4(process_, &status, 0, &used);
  SwarmResult r;
  long long numbers[6] = {};
  if (status != 0 || std::sscanf(text.c_str(), "%lld %lld %lld %lld %lld %lld %lg %lg", &numbers[0],
                                 &numbers[1], &numbers[2], &numbers[3], &numbers[4], &numbers[5],
                                 &r.fastest_s, &r.slowest_s) != 8)
    return fail(ErrorCode::kIo, "the clients failed");
  r.streams = numbers[0];
  r.events = numbers[1];
  r.chunks = numbers[2];
  r.bytes = numbers[3];
  r.requests = numbers[4];
  r.response_bytes = numbers[5];
  r.cpu_us = 1e6 * static_cast<double>(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
             static_cast<double>(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
  return r;
}

}  // namespace weir::bench
