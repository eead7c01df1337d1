// The service manager hears that the server is alive while the engine gets on, computing or idle,
// and not while a turn stands still.
#include "program/service_report.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

namespace weir {

namespace {

// Takes turns without end; one stands still while it is told to.
class Turns final : public sched::Actor {
 public:
  bool take_turn(Actor*& /*waiting*/) override {
    while (stuck.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return busy.load();
  }
  std::atomic<bool> stuck{false}, busy{true};
};

class Report : public testing::Test {
 protected:
  Report() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string name = "weir-service-report-test-" + std::to_string(::getpid());
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    EXPECT_EQ(::bind(fd_, reinterpret_cast<const sockaddr*>(&address),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())),
              0);
    ::setenv("NOTIFY_SOCKET", ("@" + name).c_str(), 1);
    ::setenv("WATCHDOG_USEC", "40000", 1);
    ::unsetenv("WATCHDOG_PID");
  }
  ~Report() override { ::close(fd_); }

  // What was said so far and not heard, a state a line.
  std::string heard() const {
    std::string all;
    char text[512];
    for (ssize_t size; (size = ::recv(fd_, text, sizeof text, MSG_DONTWAIT)) >= 0;)
      all.append(text, static_cast<size_t>(size)).append("\n");
    return all;
  }
  // Whether it is said within 10 s, and whether it is not said for 300 ms.
  bool will_hear(const std::string& state) const {
    for (int i = 0; i < 1000; ++i) {
      if (heard().find(state) != std::string::npos) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  }
  bool will_not_hear(const std::string& state) const {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return heard().find(state) == std::string::npos;
  }

 private:
  const int fd_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

TEST_F(Report, TellsThatTheEngineIsAliveForAsLongAsItMoves) {
  auto manager = net::ServiceManager::from_environment();
  ASSERT_TRUE(manager) << manager.error().message;
  ServiceReport report(std::move(*manager));
  net::Loop loop;
  sched::Stage stage;
  Turns turns;
  stage.add(turns);
  std::thread engine([&] { stage.run(); });

  report.loading(loop);
  report.stage("pull 42 %");
  const std::string begin = heard();
  EXPECT_NE(begin.find("STATUS=Loading the model\n"), std::string::npos) << begin;
  EXPECT_NE(begin.find("STATUS=Loading the model (pull 42 %)\nEXTEND_TIMEOUT_USEC=60000000\n"),
            std::string::npos)
      << begin;
  report.reloading();
  report.reloaded();
  EXPECT_EQ(heard(), "") << "a server that loads is not ready for having reread its files";

  loop.post([&] { report.ready("Serving a model", loop, stage); });
  std::thread network([&] { loop.run(); });
  EXPECT_TRUE(will_hear("READY=1\nSTATUS=Serving a model\n"));
  EXPECT_TRUE(will_hear("WATCHDOG=1"));
  turns.busy = false;  // From now on only the report's own ring wakes the stage.
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_TRUE(will_hear("WATCHDOG=1"));
  turns.stuck = true;
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  (void)heard();
  EXPECT_TRUE(will_not_hear("WATCHDOG=1"));
  turns.stuck = false;
  EXPECT_TRUE(will_hear("WATCHDOG=1"));

  loop.post([&] {
    report.reloading();
    report.reloaded();
    report.stopping(3, std::chrono::seconds(38));
  });
  EXPECT_TRUE(will_hear(
      "READY=1\nSTOPPING=1\nSTATUS=Ending; open answers: 3\nEXTEND_TIMEOUT_USEC=38000000\n"));
  stage.stop();
  engine.join();
  loop.stop();
  network.join();
}

}  // namespace

}  // namespace weir
