// Loop over uv_loop_t: wake-ups, tasks from other threads, pool work, periods and signals.
#include "net/loop.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <string>
#include <utility>

#include "base/check.h"
#include "net/loop_impl.h"

namespace weir::net {

namespace {

// libuv reads it when the first work comes. It is ours to say, whatever the environment says.
void size_pool() {
  static const bool done =
      ::setenv("UV_THREADPOOL_SIZE", std::to_string(Loop::kPoolThreads).c_str(), 1) == 0;
  CHECK(done);
}

}  // namespace

Loop::Impl::Impl(Clock clock) : by_hand(clock == Clock::kByHand) {
  std::signal(SIGPIPE, SIG_IGN);
  size_pool();
  CHECK(uv_loop_init(&uv) == 0);
  uv.data = this;
  async.data = this;
  CHECK(uv_async_init(&uv, &async, [](uv_async_t* handle) {
          static_cast<Impl*>(handle->data)->on_async();
        }) == 0);
}

Loop::Impl::~Impl() {
  close_all();
  // Only now: until its destruction any thread may wake the loop.
  uv_close(as_handle(&async), nullptr);
  uv_run(&uv, UV_RUN_DEFAULT);
  CHECK(uv_loop_close(&uv) == 0);
  for (const HeldSignal& held : held_signals) ::close(held.fd);
}

uint64_t Loop::Impl::add_closer(std::function<void()> call) {
  closers.emplace(++next_closer, std::move(call));
  return next_closer;
}

uint64_t Loop::Impl::add_clock_watch(std::function<void()> call) {
  clock_watches.emplace(++next_clock_watch, std::move(call));
  return next_clock_watch;
}

void Loop::Impl::update_time() {
  if (by_hand)
    seen_ms = hand_ms.load(std::memory_order_acquire);
  else
    uv_update_time(&uv);
}

void Loop::Impl::run() {
  CHECK(!running && !ended);
  running = true;
  uv_run(&uv, UV_RUN_DEFAULT);  // Until on_async() sees `stopping`.
  close_all();
}

void Loop::Impl::on_async() {
  std::vector<std::function<void()>> taken;
  {
    const std::lock_guard lock(mutex);
    taken.swap(tasks);
  }
  if (ended) return;
  if (by_hand) {
    update_time();
    for (const auto& [id, call] : clock_watches) call();
  }
  for (std::function<void()>& task : taken) task();
  if (wake_call) wake_call();
  if (running && stopping.load(std::memory_order_acquire)) {
    running = false;
    uv_stop(&uv);
  }
}

// Closes every handle but `async`, and runs the loop until they are closed and no pool thread holds
// a work of ours.
void Loop::Impl::close_all() {
  if (ended) return;
  ended = true;
  for (auto& [id, call] : closers) call();
  for (Periodic& periodic : periodics) uv_close(as_handle(&periodic.timer), nullptr);
  for (Signal& signal : signals) uv_close(as_handle(&signal.handle), nullptr);
  for (HeldSignal& held : held_signals) uv_close(as_handle(&held.handle), nullptr);
  for (PoolWork& work : pool_work) uv_cancel(reinterpret_cast<uv_req_t*>(&work.request));
  uv_unref(as_handle(&async));
  uv_run(&uv, UV_RUN_DEFAULT);
  CHECK(pool_work.empty());
}

Loop::Loop(Clock clock) : impl_(std::make_unique<Impl>(clock)) {}
Loop::~Loop() = default;

void Loop::run() { impl_->run(); }

void Loop::wake() { uv_async_send(&impl_->async); }

void Loop::on_wake(std::function<void()> call) { impl_->wake_call = std::move(call); }

void Loop::post(std::function<void()> task) {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->tasks.push_back(std::move(task));
  }
  wake();
}

void Loop::stop() {
  impl_->stopping.store(true, std::memory_order_release);
  wake();
}

bool Loop::run_in_pool(std::function<void()> work, std::function<void()> done) {
  Impl& impl = *impl_;
  if (impl.ended || impl.pool_work.size() >= kPoolWorkMax) return false;
  impl.pool_work.emplace_back();
  Impl::PoolWork& item = impl.pool_work.back();
  item.loop = &impl;
  item.work = std::move(work);
  item.done = std::move(done);
  item.self = std::prev(impl.pool_work.end());
  item.request.data = &item;
  const int error = uv_queue_work(
      &impl.uv, &item.request,
      [](uv_work_t* request) { static_cast<Impl::PoolWork*>(request->data)->work(); },
      [](uv_work_t* request, int status) {
        auto* finished = static_cast<Impl::PoolWork*>(request->data);
        Impl* loop = finished->loop;
        const std::function<void()> call = std::move(finished->done);
        loop->pool_work.erase(finished->self);
        if (status == 0 && !loop->ended) call();
      });
  CHECK(error == 0);  // It fails only for a null function.
  return true;
}

size_t Loop::pool_work() const { return impl_->pool_work.size(); }

void Loop::every(uint64_t period_ms, std::function<void()> call) {
  CHECK(!impl_->ended);
  impl_->periodics.emplace_back();
  Impl::Periodic& periodic = impl_->periodics.back();
  periodic.call = std::move(call);
  CHECK(uv_timer_init(&impl_->uv, &periodic.timer) == 0);
  periodic.timer.data = &periodic;
  uv_timer_start(
      &periodic.timer, [](uv_timer_t* timer) { static_cast<Impl::Periodic*>(timer->data)->call(); },
      period_ms, period_ms);
}

void Loop::on_signal(int signal_number, std::function<void(int)> call) {
  CHECK(!impl_->ended);
  impl_->signals.emplace_back();
  Impl::Signal& signal = impl_->signals.back();
  signal.call = std::move(call);
  CHECK(uv_signal_init(&impl_->uv, &signal.handle) == 0);
  signal.handle.data = &signal;
  CHECK(uv_signal_start(
            &signal.handle,
            [](uv_signal_t* handle, int number) {
              static_cast<Impl::Signal*>(handle->data)->call(number);
            },
            signal_number) == 0);
}

namespace {

sigset_t set_of(int signal_number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal_number);
  return set;
}

}  // namespace

void hold_signal(int signal_number) {
  const sigset_t set = set_of(signal_number);
  CHECK(::pthread_sigmask(SIG_BLOCK, &set, nullptr) == 0);
}

void Loop::on_held_signal(int signal_number, std::function<void()> call) {
  CHECK(!impl_->ended);
  const sigset_t set = set_of(signal_number);
  impl_->held_signals.emplace_back();
  Impl::HeldSignal& held = impl_->held_signals.back();
  held.call = std::move(call);
  held.fd = ::signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
  CHECK(held.fd >= 0 && uv_poll_init(&impl_->uv, &held.handle, held.fd) == 0);
  held.handle.data = &held;
  CHECK(uv_poll_start(&held.handle, UV_READABLE, [](uv_poll_t* handle, int, int) {
          auto* ready = static_cast<Impl::HeldSignal*>(handle->data);
          signalfd_siginfo info{};
          if (::read(ready->fd, &info, sizeof info) == sizeof info) ready->call();
        }) == 0);
}

uint64_t Loop::now_ms() const { return impl_->now_ms(); }

void Loop::advance_clock(uint64_t ms) {
  CHECK(impl_->by_hand);
  impl_->hand_ms.fetch_add(ms, std::memory_order_release);
  wake();
}

}  // namespace weir::net
