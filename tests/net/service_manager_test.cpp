#include "net/service_manager.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

namespace weir::net {

namespace {

// The manager's end, on an address in no file system.
class FakeManager {
 public:
  FakeManager() : name_("weir-service-manager-test-" + std::to_string(::getpid())) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name_.data(), name_.size());
    const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name_.size());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address), size), 0);
  }
  ~FakeManager() { ::close(fd_); }

  std::string address() const { return "@" + name_; }
  std::string heard() const {
    char text[256];
    const ssize_t size = ::recv(fd_, text, sizeof text, MSG_DONTWAIT);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

 private:
  const std::string name_;
  const int fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

class ServiceManagerTest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* name : kNames) ::unsetenv(name);
  }
  static void set(const char* name, const std::string& value) {
    ::setenv(name, value.c_str(), /*overwrite=*/1);
  }

  static constexpr const char* kNames[] = {"LISTEN_PID",    "LISTEN_FDS",   "LISTEN_FDNAMES",
                                           "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"};
};

TEST_F(ServiceManagerTest, WithoutOneThereIsNothingAndNothingIsSaid) {
  const auto manager = ServiceManager::from_environment();
  ASSERT_TRUE(manager);
  EXPECT_FALSE(manager->is_told());
  EXPECT_TRUE(manager->sockets().empty());
  EXPECT_EQ(manager->watchdog().count(), 0);
  manager->say("READY=1");
}

TEST_F(ServiceManagerTest, HearsWhatIsSaidAndTheVariablesAreGone) {
  const FakeManager fake;
  set("NOTIFY_SOCKET", fake.address());
  set("WATCHDOG_USEC", "2000000");
  set("WATCHDOG_PID", std::to_string(::getpid()));
  auto read = ServiceManager::from_environment();
  ASSERT_TRUE(read) << read.error().message;
  const ServiceManager manager = std::move(*read);
  EXPECT_TRUE(manager.is_told());
  EXPECT_EQ(manager.watchdog().count(), 2'000'000);
  manager.say("READY=1\nSTATUS=Serving");
  EXPECT_EQ(fake.heard(), "READY=1\nSTATUS=Serving");
  for (const char* name : kNames) EXPECT_EQ(std::getenv(name), nullptr) << name;
}

TEST_F(ServiceManagerTest, WhatIsForAnotherProcessIsNotForThisOne) {
  set("LISTEN_PID", "1");
  set("LISTEN_FDS", "1");
  set("WATCHDOG_PID", "1");
  set("WATCHDOG_USEC", "1000");
  const auto manager = ServiceManager::from_environment();
  ASSERT_TRUE(manager) << manager.error().message;
  EXPECT_TRUE(manager->sockets().empty());
  EXPECT_EQ(manager->watchdog().count(), 0);
}

TEST_F(ServiceManagerTest, WrongValuesAreNamed) {
  const std::string long_path = "/" + std::string(200, 'x');
  const struct {
    const char* name;
    std::string value, error;
  } kWrong[] = {
      {"NOTIFY_SOCKET", "vsock:2:1234", "NOTIFY_SOCKET: expected a path or @NAME; found 'vsock:"},
      {"NOTIFY_SOCKET", long_path, "NOTIFY_SOCKET: expected"},
      {"WATCHDOG_USEC", "soon", "WATCHDOG_USEC: expected a number from 1 to 604800000000; found"},
      {"LISTEN_FDS", "-1", "LISTEN_FDS: expected a number from 0 to 64; found '-1'"},
      {"LISTEN_FDS", "64", "LISTEN_FDS: expected listening stream sockets; found that"},
  };
  for (const auto& wrong : kWrong) {
    set("LISTEN_PID", std::to_string(::getpid()));
    set(wrong.name, wrong.value);
    const auto manager = ServiceManager::from_environment();
    ASSERT_FALSE(manager) << wrong.value;
    EXPECT_NE(manager.error().message.find(wrong.error), std::string::npos)
        << manager.error().message;
  }
}

}  // namespace

}  // namespace weir::net
