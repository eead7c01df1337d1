// The inside of Loop, for the other files of this folder: the uv loop itself and what must be
// closed before it ends.
//
// Threads: the loop's, but for what `mutex` guards and the two atomics.
#pragma once

#include <uv.h>

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include "net/loop.h"

namespace weir::net {

struct Loop::Impl {
  struct Periodic {
    uv_timer_t timer;
    std::function<void()> call;
  };
  struct Signal {
    uv_signal_t handle;
    std::function<void(int)> call;
  };
  struct HeldSignal {
    uv_poll_t handle;
    int fd = -1;  // A signalfd.
    std::function<void()> call;
  };
  struct PoolWork {
    uv_work_t request;
    Impl* loop = nullptr;
    std::function<void()> work, done;
    std::list<PoolWork>::iterator self;
  };

  explicit Impl(Clock clock);
  ~Impl();

  uint64_t now_ms() const { return by_hand ? seen_ms : uv_now(&uv); }
  // Looks at the clock within a turn, for what took long in it.
  void update_time();

  // `call` does what is due when a clock has been advanced by hand.
  uint64_t add_clock_watch(std::function<void()> call);
  void remove_clock_watch(uint64_t id) { clock_watches.erase(id); }

  // `call` closes handles that another class owns; run() calls it on its way out.
  uint64_t add_closer(std::function<void()> call);
  void remove_closer(uint64_t id) { closers.erase(id); }

  void run();
  void on_async();
  void close_all();

  uv_loop_t uv;
  uv_async_t async;
  std::atomic<bool> stopping{false};
  bool running = false;  // Between the start of run() and stop().
  bool ended = false;    // Nothing of the application is called any more.
  std::function<void()> wake_call;
  std::list<Periodic> periodics;
  std::list<Signal> signals;
  std::list<HeldSignal> held_signals;
  std::list<PoolWork> pool_work;
  std::map<uint64_t, std::function<void()>> closers;
  uint64_t next_closer = 0;
  const bool by_hand;
  std::atomic<uint64_t> hand_ms{1'000};
  uint64_t seen_ms = 1'000;  // The clock as this turn of the loop has it.
  std::map<uint64_t, std::function<void()>> clock_watches;
  uint64_t next_clock_watch = 0;

  std::mutex mutex;
  std::vector<std::function<void()>> tasks;  // Guarded by mutex.
};

template <class Handle>
uv_handle_t* as_handle(Handle* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

}  // namespace weir::net
