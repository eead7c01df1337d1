#include "net/service_manager.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

namespace weir::net {

namespace {

// Where the passed sockets begin: after standard input, output and error.
constexpr int kFirstSocket = 3;
// More are a mistake: each port of each address is one.
constexpr int64_t kSocketsMax = 64;
constexpr timeval kSayTime{.tv_sec = 0, .tv_usec = 100'000};

std::optional<std::string> take(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string taken(value);
  ::unsetenv(name);
  return taken;
}

Result<int64_t> number(const char* name, const std::string& text, int64_t least, int64_t most) {
  int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc() && stop == end && value >= least && value <= most) return value;
  return fail(ErrorCode::kConfig, std::string(name) + ": expected a number from " +
                                      std::to_string(least) + " to " + std::to_string(most) +
                                      "; found '" + text + "'");
}

// Variables are inherited: what names another process is not for this one.
bool is_for_us(const std::optional<std::string>& process) {
  return !process || *process == std::to_string(::getpid());
}

Result<std::vector<int>> passed_sockets(int64_t count) {
  std::vector<int> sockets;
  for (int fd = kFirstSocket; fd < kFirstSocket + count; ++fd) {
    int listens = 0;
    socklen_t size = sizeof listens;
    if (::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || listens == 0)
      return fail(ErrorCode::kConfig, "LISTEN_FDS: expected listening stream sockets; found that " +
                                          std::to_string(fd) + " is none");
    if (::fcntl(fd, F_SETFD, FD_CLOEXEC) != 0)
      return fail(ErrorCode::kIo, "LISTEN_FDS: " + std::string(std::strerror(errno)));
    sockets.push_back(fd);
  }
  return sockets;
}

// A path, or '@' and a name that is in no file system.
Result<std::string> address_of(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() < 2 || name.size() >= sizeof address.sun_path ||
      (name[0] != '/' && name[0] != '@'))
    return fail(ErrorCode::kConfig,
                "NOTIFY_SOCKET: expected a path or @NAME; found '" + name + "'");
  std::memcpy(address.sun_path, name.data(), name.size());
  if (name[0] == '@') address.sun_path[0] = '\0';
  return std::string(reinterpret_cast<const char*>(&address),
                     offsetof(sockaddr_un, sun_path) + name.size());
}

}  // namespace

ServiceManager::~ServiceManager() {
  if (fd_ >= 0) ::close(fd_);
}

ServiceManager::ServiceManager(ServiceManager&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      address_(std::move(other.address_)),
      sockets_(std::move(other.sockets_)),
      watchdog_(other.watchdog_) {}

ServiceManager& ServiceManager::operator=(ServiceManager&& other) noexcept {
  std::swap(fd_, other.fd_);
  address_ = std::move(other.address_);
  sockets_ = std::move(other.sockets_);
  watchdog_ = other.watchdog_;
  return *this;
}

Result<ServiceManager> ServiceManager::from_environment() {
  ServiceManager manager;
  const auto listen_pid = take("LISTEN_PID"), listen_fds = take("LISTEN_FDS");
  take("LISTEN_FDNAMES");
  if (listen_fds && listen_pid && is_for_us(listen_pid)) {
    WEIR_ASSIGN(const int64_t count, number("LISTEN_FDS", *listen_fds, 0, kSocketsMax));
    WEIR_ASSIGN(manager.sockets_, passed_sockets(count));
  }
  const auto notify_socket = take("NOTIFY_SOCKET");
  if (notify_socket && !notify_socket->empty()) {
    WEIR_ASSIGN(manager.address_, address_of(*notify_socket));
    manager.fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (manager.fd_ < 0 ||
        ::setsockopt(manager.fd_, SOL_SOCKET, SO_SNDTIMEO, &kSayTime, sizeof kSayTime) != 0)
      return fail(ErrorCode::kIo, "NOTIFY_SOCKET: " + std::string(std::strerror(errno)));
  }
  const auto watchdog_pid = take("WATCHDOG_PID"), watchdog = take("WATCHDOG_USEC");
  if (watchdog && is_for_us(watchdog_pid)) {
    constexpr int64_t kWeekUs = int64_t{7} * 24 * 3600 * 1'000'000;
    WEIR_ASSIGN(const int64_t period, number("WATCHDOG_USEC", *watchdog, 1, kWeekUs));
    manager.watchdog_ = std::chrono::microseconds(period);
  }
  return manager;
}

void ServiceManager::say(std::string_view state) const {
  if (fd_ < 0) return;
  (void)::sendto(fd_, state.data(), state.size(), MSG_NOSIGNAL,
                 reinterpret_cast<const sockaddr*>(address_.data()),
                 static_cast<socklen_t>(address_.size()));
}

}  // namespace weir::net
