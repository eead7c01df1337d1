#include "base/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>

#include "base/cgroup.h"
#include "base/check.h"
#include "base/progress.h"
#include "base/trace.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir {

namespace {

// Denormals slow fused multiply-adds by an order of magnitude and carry no information in
// inference: flush them to zero, in results and operands.
void flush_denormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
}

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

}  // namespace

int ThreadTeam::usable_cores() {
  const int allowed = allowed_cores();
  const double quota = cgroup_cores();
  // Rounded up: with 1.5 cores' time two threads finish sooner than one.
  return quota > 0 ? std::clamp(static_cast<int>(std::ceil(quota)), 1, allowed) : allowed;
}

ThreadTeam::ThreadTeam(int members)
    : members_(members), shares_(std::make_unique<Counter[]>(2 * static_cast<size_t>(members))) {
  CHECK(members >= 1);
  flush_denormals();
  for (int member = 1; member < members; ++member) {
    threads_.emplace_back([this, member] {
      pthread_setname_np(pthread_self(), ("weir-team-" + std::to_string(member)).c_str());
      flush_denormals();
      work(member);
    });
  }
}

ThreadTeam::~ThreadTeam() {
  stopping_.store(true, std::memory_order_release);
  launch_.move_on();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run_erased(Erased call, void* fn) {
  note_progress();
  work_.value.store(0, std::memory_order_relaxed);
  // Those of the other phase are 0: their owners have reset them at the latest barrier, if ever.
  for (int member = 0; member < members_; ++member)
    shares(phase_.count())[member].value.store(0, std::memory_order_relaxed);
  if (members_ == 1) return call(fn, 0);
  call_ = call;
  fn_ = fn;
  const uint32_t joined = joined_.count();
  finished_.value.store(0, std::memory_order_relaxed);
  launch_.move_on();
  call(fn, 0);
  const trace::Scope wait(trace::Kind::kWait, "join");
  joined_.wait(joined);
}

void ThreadTeam::work(int member) {
  for (uint32_t seen = 0;; ++seen) {
    await_launch(seen);
    if (stopping_.load(std::memory_order_acquire)) return;
    call_(fn_, member);
    if (finished_.value.fetch_add(1, std::memory_order_acq_rel) == members_ - 2) joined_.move_on();
  }
}

void ThreadTeam::await_launch(uint32_t seen) {
  const trace::Scope wait(trace::Kind::kWait, "idle");
  launch_.wait(seen);
}

bool ThreadTeam::claim_share(int member, int32_t blocks, int32_t& share, int32_t& block) {
  Counter* const counters = shares(phase_.count());
  for (int i = 0; i < members_; ++i) {
    share = member + i < members_ ? member + i : member + i - members_;
    std::atomic<int32_t>& next = counters[share].value;
    // Looked at first: what is empty need not move from core to core.
    if (next.load(std::memory_order_relaxed) >= blocks) continue;
    block = next.fetch_add(1, std::memory_order_relaxed);
    if (block < blocks) return true;
  }
  return false;
}

void ThreadTeam::barrier(int member) {
  note_progress();
  if (members_ == 1) {
    work_.value.store(0, std::memory_order_relaxed);
    shares_[0].value.store(0, std::memory_order_relaxed);
    return;
  }
  const trace::Scope wait(trace::Kind::kWait, "barrier");
  const uint32_t phase = phase_.count();
  shares(phase + 1)[member].value.store(0, std::memory_order_relaxed);
  if (arrived_.value.fetch_add(1, std::memory_order_acq_rel) == members_ - 1) {
    arrived_.value.store(0, std::memory_order_relaxed);
    work_.value.store(0, std::memory_order_relaxed);
    phase_.move_on();
    return;
  }
  phase_.wait(phase);
}

}  // namespace weir
