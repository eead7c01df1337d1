// Loop: one libuv loop and the thread that runs it.
//
// Threads: run() is the loop's thread; only wake(), post(), stop() and advance_clock() may be
// called from others, at any time from construction to destruction. The rest belongs to the loop's
// thread, or to the one that prepares the loop before run().
//
// SIGPIPE is ignored by the whole process from the first Loop on: a client that leaves is an error
// code of its write, not the end of the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "base/result.h"

namespace weir::net {

class Loop {
 public:
  // The pool's threads, libuv's, which all loops of a process share.
  static constexpr int kPoolThreads = 8;
  // How much work may be with the pool, waiting or being done. Each holds a request's text.
  static constexpr size_t kPoolWorkMax = 4096;

  // What the deadlines of a loop's connections go by: the system's time, or one that stands still
  // until advance_clock(), for tests. (every() goes by the system's in either case.)
  enum class Clock { kSystem, kByHand };

  explicit Loop(Clock clock = Clock::kSystem);
  ~Loop();
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  // Runs until stop(). Every handle is closed on the way out. Called once.
  void run();

  // From any thread: makes the loop call the on_wake function soon. Calls merge; no allocation.
  void wake();
  void on_wake(std::function<void()> call);
  // From any thread: runs `task` on the loop's thread. Allocates: for requests, not for tokens.
  // Tasks posted after stop() are dropped.
  void post(std::function<void()> task);
  void stop();

  // Runs `work` on a pool thread, then `done` on the loop. False, and nothing is called, if
  // kPoolWorkMax are outstanding. At stop() work that has not begun is dropped, and no `done` is
  // called any more.
  bool run_in_pool(std::function<void()> work, std::function<void()> done);
  size_t pool_work() const;
  // Calls `call` each `period_ms` on the loop until it is stopped.
  void every(uint64_t period_ms, std::function<void()> call);
  // Calls `call` when the process gets this signal, instead of its default action. When the loop
  // has ended the default action is back.
  void on_signal(int signal_number, std::function<void(int)> call);
  // Calls `call` for a signal that must never act by itself, not before the loop runs and not
  // after. REQUIRES: hold_signal(signal_number) was called.
  void on_held_signal(int signal_number, std::function<void()> call);
  // Milliseconds of the loop's clock, which it looks at once a turn.
  uint64_t now_ms() const;
  // From any thread: moves the clock on. The loop sees it in its next turn, before the tasks that
  // are posted after this call, and does first what is due by then. REQUIRES: Clock::kByHand.
  void advance_clock(uint64_t ms);

  struct Impl;
  Impl& impl() { return *impl_; }  // For this folder.

 private:
  std::unique_ptr<Impl> impl_;
};

// Keeps a signal from acting on this process for as long as it lives: it waits for a Loop. Called
// before other threads are made, which inherit it.
void hold_signal(int signal_number);

}  // namespace weir::net
