// ServiceManager: the program that started this one as a service (systemd), and what the two tell
// each other: sockets that it listens on already, and how far the service is. Both are few lines of
// published protocol (sd_listen_fds(3), sd_notify(3)), so there is no libsystemd.
//
// Threads: from_environment() before other threads are made, for it takes variables out of the
// environment; say() any; the rest its owner's.
#pragma once

#include <chrono>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace weir::net {

class ServiceManager {
 public:
  // No manager: nothing is passed, and what is said goes nowhere.
  ServiceManager() = default;
  ~ServiceManager();
  ServiceManager(ServiceManager&& other) noexcept;
  ServiceManager& operator=(ServiceManager&& other) noexcept;

  // What the variables LISTEN_*, NOTIFY_SOCKET and WATCHDOG_* say, if they are meant for this
  // process. They are taken out of the environment.
  static Result<ServiceManager> from_environment();

  bool is_told() const { return fd_ >= 0; }
  // Lines of NAME=value: "READY=1\nSTATUS=Ready". What it has no room for within 100 ms is lost.
  void say(std::string_view state) const;

  // Listening sockets, which are this process's to close; the manager keeps its own.
  std::span<const int> sockets() const { return sockets_; }
  // It ends a service that has not said WATCHDOG=1 for so long; 0: it does not watch.
  std::chrono::microseconds watchdog() const { return watchdog_; }

 private:
  int fd_ = -1;
  std::string address_;  // The bytes of a sockaddr_un.
  std::vector<int> sockets_;
  std::chrono::microseconds watchdog_{0};
};

}  // namespace weir::net
