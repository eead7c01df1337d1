// BackgroundThread: one thread for work that is long and not urgent. It runs at a lower priority
// than the others, so that it takes little from them where all processors are busy.
//
// Threads: everything here belongs to one thread; tasks run on the other.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace weir {

class BackgroundThread {
 public:
  // `name`: at most 15 characters.
  explicit BackgroundThread(const char* name);
  // Waits for the task that runs. Those that have not begun are dropped.
  ~BackgroundThread();
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Tasks run one after the other, in this order.
  void run(std::function<void()> task);

 private:
  void serve();

  std::mutex mutex_;
  std::condition_variable bell_;
  std::deque<std::function<void()>> tasks_;  // Guarded by mutex_, as is `ending_`.
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace weir
