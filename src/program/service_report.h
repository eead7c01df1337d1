// ServiceReport: what the program that started this server as a service (systemd) hears of it: that
// it loads, is ready, rereads its files or ends, and for as long as the engine gets on, that it is
// alive.
//
// Threads: the network loop's, or the one that prepares the loop.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "net/loop.h"
#include "net/service_manager.h"
#include "sched/stage.h"

namespace weir {

class ServiceReport {
 public:
  explicit ServiceReport(net::ServiceManager manager) : manager_(std::move(manager)) {}

  const net::ServiceManager& manager() const { return manager_; }

  // From now on until it is ready, the time that it has to begin is lengthened again and again.
  void loading(net::Loop& loop);
  // How far it is: "pull 42 %". Empty: it is loading.
  void stage(const std::string& stage);
  // `status`: a line for people. From now on the manager hears that the server is alive, each time
  // that the stage has moved on since the last; it outlives the loop's run.
  void ready(const std::string& status, net::Loop& loop, sched::Stage& stage);
  void reloading();
  void reloaded();
  // It may take so long until the process has ended.
  void stopping(size_t open, std::chrono::seconds time);

 private:
  void watch(sched::Stage& stage);

  net::ServiceManager manager_;
  bool ready_ = false;
  uint32_t seen_ = 0;      // How far the engine was at the last look.
  bool is_stuck_ = false;  // It was no further, and the log says so.
};

}  // namespace weir
