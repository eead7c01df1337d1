// Loop: one libuv loop and the thread that runs it.
//
// Threads: run() is the loop's thread; only wake(), post() and stop() may be called from others.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"

namespace weir::net {

class Loop {
 public:
  Loop();
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop(). Every handle is closed on the way out.
  void run();

  // From any thread: makes the loop call the on_wake function soon. Calls merge; no allocation.
  void wake();
  void on_wake(std::function<void()> call);
  // From any thread: runs `task` on the loop's thread. Allocates: for requests, not for tokens.
  void post(std::function<void()> task);
  void stop();

  // On the loop's thread. Runs `work` on a pool thread, then `done` on the loop.
  void run_in_pool(std::function<void()> work, std::function<void()> done);
  // Calls `call` each `period_ms` on the loop until it is stopped.
  void every(uint64_t period_ms, std::function<void()> call);
  // Calls `call` when the process gets this signal, instead of its default action.
  void on_signal(int signal_number, std::function<void(int)> call);
  // Milliseconds of the loop's clock.
  uint64_t now_ms() const;

  struct Impl;
  Impl& impl() { return *impl_; }  // For this folder.

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace weir::net
