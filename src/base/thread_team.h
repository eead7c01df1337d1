// ThreadTeam: the compute threads. run() executes one function on every member at once; inside it,
// members meet at barriers and claim blocks of work from counters that each barrier resets.
//
// Threads: the constructing thread is member 0 and the only one to call run(). Members spin for a
// while at a barrier or between runs, then sleep (gate.h).
//
// Work is claimed, not divided in advance: a static half loses half its speed as soon as another
// process takes one core. Where the order matters to caches, each member claims from a share of its
// own, and from the others' once that is empty.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "base/gate.h"
#include "base/ring.h"

namespace weir {

class ThreadTeam {
 public:
  // How many cores this process may use: affinity mask and cgroup quota, at least 1.
  static int usable_cores();

  explicit ThreadTeam(int members);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  int members() const { return members_; }

  // Calls fn(member) on every member, the caller being member 0; returns when all have returned.
  // Does not allocate.
  template <class F>
  void run(F&& fn) {
    run_erased([](void* f, int member) { (*static_cast<std::remove_reference_t<F>*>(f))(member); },
               const_cast<void*>(static_cast<const void*>(&fn)));
  }

  // Inside run(): waits until every member has called it. Everything written before is visible
  // after; the counters of work are 0 again.
  void barrier(int member);

  // Inside run(), between two barriers: the next block of work, 0, 1, 2, ...; the caller stops at
  // its own count of blocks.
  int32_t claim() { return work_.value.fetch_add(1, std::memory_order_relaxed); }

  // Claims work that lies in shares, one a member, of at most `blocks` blocks each: the next
  // block of the member's own share, or, when that is done, of another member's. False when none is
  // left. Counts apart from claim().
  bool claim_share(int member, int32_t blocks, int32_t& share, int32_t& block);

 private:
  using Erased = void (*)(void* fn, int member);
  struct alignas(kCacheLineBytes) Counter {
    std::atomic<int32_t> value{0};
  };

  // The counters of shares in this phase. Two sets take turns, so that each member can reset its
  // own for the next phase before it arrives at the barrier, when no member looks at it.
  Counter* shares(uint32_t phase) { return shares_.get() + (phase & 1) * size_t(members_); }

  void run_erased(Erased call, void* fn);
  void work(int member);
  // Returns when launch_ is no longer `seen`.
  void await_launch(uint32_t seen);

  const int members_;
  Erased call_ = nullptr;
  void* fn_ = nullptr;
  Gate launch_;       // Runs begun.
  Gate joined_;       // Runs that all workers have ended.
  Gate phase_;        // Barriers opened.
  Counter finished_;  // Workers done with the current run.
  Counter arrived_;   // Members at the current barrier.
  Counter work_;
  std::unique_ptr<Counter[]> shares_;  // [2][members]
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace weir
