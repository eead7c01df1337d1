// Progress: a count that one thread moves on while it works, for another that watches whether it
// gets on.
//
// Threads: the worker attaches it and moves it on; any may look.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/ring.h"

namespace weir {

class Progress {
 public:
  uint32_t count() const { return count_.load(std::memory_order_relaxed); }  // It wraps.
  void move_on() { count_.store(count() + 1, std::memory_order_relaxed); }

  // While it lives, note_progress() of the thread that made it moves this on.
  class Scope {
   public:
    explicit Scope(Progress& progress);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
  };

 private:
  alignas(kCacheLineBytes) std::atomic<uint32_t> count_{0};
};

// Said from within long work, such as at each barrier of a step. Costs nothing where nothing is
// attached.
void note_progress();

}  // namespace weir
