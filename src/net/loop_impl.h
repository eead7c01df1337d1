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

  Impl();
  ~Impl();

  // `call` closes handles that somebody else owns; run() calls it on its way out.
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

  std::mutex mutex;
  std::vector<std::function<void()>> tasks;  // Guarded by mutex.
};

template <class Handle>
uv_handle_t* as_handle(Handle* handle) {
  return reinterpret_cast<uv_handle_t*>(handle);
}

}  // namespace weir::net
