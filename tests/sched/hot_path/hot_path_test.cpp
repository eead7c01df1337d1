// The hot path takes no lock and allocates nothing: this binary replaces malloc, operator new and
// the locking functions of pthread by ones that count, and runs 1,000 steps of 32 streams. Apart
// from the other tests, because it changes the whole process; not built under sanitizers, which
// replace the same functions.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "sched/engine_runner.h"
#include "sched/fake_model.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<int64_t> allocations{0};
std::atomic<int64_t> locks{0};
// Of the engine and its team.
thread_local bool hot_thread = false;

void count(std::atomic<int64_t>& counter) {
  if (hot_thread && counting.load(std::memory_order_relaxed))
    counter.fetch_add(1, std::memory_order_relaxed);
}

// The function that ours stands before.
template <class F>
F* next_function(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" {

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* memory);

void* malloc(size_t bytes) {
  count(allocations);
  return __libc_malloc(bytes);
}
void* calloc(size_t n, size_t bytes) {
  count(allocations);
  return __libc_calloc(n, bytes);
}
void* realloc(void* memory, size_t bytes) {
  count(allocations);
  return __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  count(allocations);
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  count(allocations);
  *memory = __libc_memalign(alignment, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  if (memory != nullptr) count(allocations);
  __libc_free(memory);
}

int pthread_mutex_lock(pthread_mutex_t* mutex) {
  static auto* next = next_function<decltype(pthread_mutex_lock)>("pthread_mutex_lock");
  count(locks);
  return next(mutex);
}
int pthread_mutex_trylock(pthread_mutex_t* mutex) {
  static auto* next = next_function<decltype(pthread_mutex_trylock)>("pthread_mutex_trylock");
  count(locks);
  return next(mutex);
}
int pthread_rwlock_rdlock(pthread_rwlock_t* lock) {
  static auto* next = next_function<decltype(pthread_rwlock_rdlock)>("pthread_rwlock_rdlock");
  count(locks);
  return next(lock);
}
int pthread_rwlock_wrlock(pthread_rwlock_t* lock) {
  static auto* next = next_function<decltype(pthread_rwlock_wrlock)>("pthread_rwlock_wrlock");
  count(locks);
  return next(lock);
}

}  // extern "C"

// operator new calls malloc; these make sure that it is ours.
void* operator new(size_t bytes) {
  if (void* memory = malloc(bytes)) return memory;
  std::abort();
}
void operator delete(void* memory) noexcept { free(memory); }
void operator delete(void* memory, size_t) noexcept { free(memory); }

namespace weir::sched {
namespace {

constexpr int32_t kStreams = 32;
constexpr int64_t kWarmUpSteps = 200;
constexpr int64_t kCountedSteps = 1000;

class HotPath : public testing::TestWithParam<int> {};

TEST(HotPathCounters, SeeAllocationsAndLocks) {
  hot_thread = true;
  allocations = locks = 0;
  counting = true;
  std::vector<int> vector(10);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  counting = false;
  hot_thread = false;
  EXPECT_GE(allocations, 1);
  EXPECT_EQ(locks, 1);
}

TEST_P(HotPath, TakesNoLockAndAllocatesNothing) {
  FakeModel model;
  struct Window {
    uint64_t wakes = 0;
    int64_t rows = 0;
  };
  Window begin, end;
  RunnerOptions options;
  options.members = GetParam();
  options.page_count = 2000;
  EngineRunner runner(model, test_ops(), options);
  model.on_forward = [](int) { hot_thread = true; };
  int64_t decode_steps = 0;
  model.on_batch = [&](const model::Batch& batch) {
    if (std::ssize(batch.slices) != kStreams) return;
    const Window now{.wakes = runner.handle().stats().wakes.value(), .rows = model.rows()};
    ++decode_steps;
    if (decode_steps == kWarmUpSteps) {
      begin = now;
      counting = true;
    } else if (decode_steps == kWarmUpSteps + kCountedSteps) {
      counting = false;
      end = now;
    }
  };
  allocations = locks = 0;
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < kStreams; ++i) {
    sample::SamplingParams params;
    params.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    params.seed = static_cast<uint64_t>(i);
    params.top_logprobs = i % 4;
    params.repetition_penalty = i % 3 == 0 ? 1.1f : 1.0f;
    requests.push_back(
        std::make_unique<Request>(std::vector<int32_t>{1, 2, i % 40}, params, 1500, i % 2 == 0));
    requests.back()->arrived = Clock::now();
    ASSERT_TRUE(runner.handle().submit(requests.back().get()));
  }
  for (const auto& request : requests) runner.wait(*request);
  runner.stop();
  EXPECT_GE(decode_steps, kWarmUpSteps + kCountedSteps);
  EXPECT_EQ(end.rows - begin.rows, kCountedSteps * kStreams);
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(locks, 0);
  EXPECT_LE(end.wakes - begin.wakes, static_cast<uint64_t>(kCountedSteps));
  EXPECT_GE(end.wakes - begin.wakes, static_cast<uint64_t>(kCountedSteps) - 1);
  for (const auto& request : requests)
    EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
}

INSTANTIATE_TEST_SUITE_P(Members, HotPath, testing::Values(1, 2, 3));

}  // namespace
}  // namespace weir::sched
