#include "base/background_thread.h"

#include <pthread.h>
#include <sys/resource.h>

#include <utility>

namespace weir {

namespace {

// A third of the weight of an ordinary thread where the two compete for a processor: little enough
// not to slow down those that others wait for, enough to come to an end on a busy machine.
constexpr int kNiceness = 5;

}  // namespace

BackgroundThread::BackgroundThread(const char* name) : thread_([this] { serve(); }) {
  (void)::pthread_setname_np(thread_.native_handle(), name);
}

BackgroundThread::~BackgroundThread() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  bell_.notify_one();
  thread_.join();
}

void BackgroundThread::run(std::function<void()> task) {
  {
    const std::lock_guard lock(mutex_);
    tasks_.push_back(std::move(task));
  }
  bell_.notify_one();
}

void BackgroundThread::serve() {
  (void)::setpriority(PRIO_PROCESS, 0, kNiceness);  // Of this thread alone, on Linux.
  std::unique_lock lock(mutex_);
  while (true) {
    bell_.wait(lock, [this] { return ending_ || !tasks_.empty(); });
    if (ending_) return;
    std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    task = {};
    lock.lock();
  }
}

}  // namespace weir
