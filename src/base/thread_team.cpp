#include "base/thread_team.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/check.h"
#include "base/trace.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace weir {

namespace {

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#endif
}

// About 100 us of spinning: a condition variable's wake costs 11-23 us, so sleeping sooner would
// slow a decode step; spinning longer would burn a core that serves nobody.
constexpr int kSpinsBeforeSleep = 4000;
// A barrier that has not opened after this many pauses (about 20 us) waits for a member that has
// lost its core: give ours away.
constexpr int kSpinsBeforeYield = 800;

// Denormals slow fused multiply-adds by an order of magnitude and carry no information in
// inference: flush them to zero, in results and operands.
void flush_denormals() {
#if defined(__x86_64__)
  _mm_setcsr(_mm_getcsr() | 0x8040u);
#endif
}

std::vector<int> allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (int i = 0; i < CPU_SETSIZE; ++i)
      if (CPU_ISSET(i, &set)) cores.push_back(i);
  }
  return cores;
}

// Cores that the cgroup's quota amounts to, or 0 for no limit.
int quota_cores() {
  double quota = -1, period = 0;
  if (std::FILE* v2 = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    if (std::fscanf(v2, "%lf %lf", &quota, &period) != 2) quota = -1;  // "max 100000".
    std::fclose(v2);
  } else {
    std::FILE* q = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "r");
    std::FILE* p = std::fopen("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "r");
    if (q && p && (std::fscanf(q, "%lf", &quota) != 1 || std::fscanf(p, "%lf", &period) != 1))
      quota = -1;
    if (q) std::fclose(q);
    if (p) std::fclose(p);
  }
  return quota > 0 && period > 0 ? std::max(1, static_cast<int>(std::ceil(quota / period))) : 0;
}

void pin_to(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)pthread_setaffinity_np(pthread_self(), sizeof set, &set);  // Advice: refusal is no error.
}

}  // namespace

int ThreadTeam::usable_cores() {
  const int allowed = std::max<int>(1, static_cast<int>(allowed_cores().size()));
  const int quota = quota_cores();
  return quota > 0 ? std::min(allowed, quota) : allowed;
}

ThreadTeam::ThreadTeam(int members, bool pin) : members_(members) {
  CHECK(members >= 1);
  const std::vector<int> cores = allowed_cores();
  const bool pinned = pin && static_cast<int>(cores.size()) >= members;
  if (pinned) pin_to(cores[0]);
  flush_denormals();
  for (int member = 1; member < members; ++member) {
    threads_.emplace_back([this, member, pinned, cores] {
      pthread_setname_np(pthread_self(), ("weir-team-" + std::to_string(member)).c_str());
      if (pinned) pin_to(cores[static_cast<size_t>(member)]);
      flush_denormals();
      work(member);
    });
  }
}

ThreadTeam::~ThreadTeam() {
  stopping_.store(true, std::memory_order_release);
  launch_.value.fetch_add(1, std::memory_order_acq_rel);
  launch_.value.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run_erased(Erased call, void* fn) {
  if (members_ == 1) {
    work_.value.store(0, std::memory_order_relaxed);
    call(fn, 0);
    return;
  }
  call_ = call;
  fn_ = fn;
  work_.value.store(0, std::memory_order_relaxed);
  finished_.value.store(0, std::memory_order_relaxed);
  // Sequentially consistent with work()'s announcement: either we see the sleeper or it sees us.
  launch_.value.fetch_add(1, std::memory_order_seq_cst);
  if (sleeping_.value.load(std::memory_order_seq_cst) > 0) launch_.value.notify_all();
  call(fn, 0);
  const trace::Scope wait(trace::Kind::kWait, "join");
  for (int spins = 0; finished_.value.load(std::memory_order_acquire) != members_ - 1; ++spins) {
    relax();
    if (spins > kSpinsBeforeYield) sched_yield();
  }
}

void ThreadTeam::await_launch(uint32_t seen) {
  const trace::Scope wait(trace::Kind::kWait, "idle");
  int spins = 0;
  while (launch_.value.load(std::memory_order_acquire) == seen) {
    relax();
    if (++spins < kSpinsBeforeSleep) continue;
    sleeping_.value.fetch_add(1, std::memory_order_seq_cst);
    launch_.value.wait(seen, std::memory_order_seq_cst);
    sleeping_.value.fetch_sub(1, std::memory_order_seq_cst);
  }
}

void ThreadTeam::work(int member) {
  uint32_t seen = 0;
  while (true) {
    await_launch(seen);
    seen = launch_.value.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) return;
    call_(fn_, member);
    finished_.value.fetch_add(1, std::memory_order_release);
  }
}

void ThreadTeam::barrier() {
  if (members_ == 1) {
    work_.value.store(0, std::memory_order_relaxed);
    return;
  }
  const trace::Scope wait(trace::Kind::kWait, "barrier");
  const uint32_t phase = phase_.value.load(std::memory_order_relaxed);
  if (arrived_.value.fetch_add(1, std::memory_order_acq_rel) == members_ - 1) {
    arrived_.value.store(0, std::memory_order_relaxed);
    work_.value.store(0, std::memory_order_relaxed);
    phase_.value.store(phase + 1, std::memory_order_release);
    return;
  }
  for (int spins = 0; phase_.value.load(std::memory_order_acquire) == phase; ++spins) {
    relax();
    if (spins > kSpinsBeforeYield) sched_yield();
  }
}

}  // namespace weir
