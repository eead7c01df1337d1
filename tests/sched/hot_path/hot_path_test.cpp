// The hot path takes no lock and allocates nothing: this binary replaces malloc, operator new and
// the locking functions of pthread by ones that count, and runs 1,000 steps of 32 streams. Apart
// from the other tests, because it changes the whole process; not built under sanitizers, which
// replace the same functions.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "card/default_model.h"
#include "card/model_card.h"
#include "sched/answer_drafts.h"
#include "sched/copy_drafts.h"
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
constexpr int64_t kWarmUpSteps = 150;

// Passes everything on; marks the threads that compute, and counts between two steps.
class WatchedModel final : public model::Model {
 public:
  WatchedModel(model::Model& model, const EngineStats*& stats, int64_t counted_steps)
      : model_(model), stats_(stats), counted_steps_(counted_steps) {
    spec_ = model.spec();
    options_ = model.options();
    needs_ = model.memory_needs();
    prompts_differ_from_ = model.prompts_differ_from();
  }

  model::ModelMemory memory() const override { return model_.memory(); }
  model::TokenWork token_work() const override { return model_.token_work(); }

  using Model::forward;
  void forward(const model::Forward& pass, int member) override {
    // A step takes microseconds: all streams are there before the first one is over.
    submitted_.wait(false);
    hot_thread = true;
    if (member == 0 && std::ssize(pass.batch.slices) == kStreams) watch();
    model_.forward(pass, member);
  }

  void all_are_submitted() {
    submitted_.store(true);
    submitted_.notify_all();
  }
  int64_t steps() const { return steps_; }
  uint64_t wakes() const { return wakes_; }

 private:
  void watch() {
    ++steps_;
    if (steps_ == kWarmUpSteps) {
      wakes_ = stats_->wakes.value();
      counting = true;
    } else if (steps_ == kWarmUpSteps + counted_steps_) {
      counting = false;
      wakes_ = stats_->wakes.value() - wakes_;
    }
  }

  model::Model& model_;
  const EngineStats*& stats_;
  const int64_t counted_steps_;
  std::atomic<bool> submitted_{false};
  int64_t steps_ = 0;
  uint64_t wakes_ = 0;
};

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

// Streams of every kind and of several callers, long enough to fill pages, which then enter the
// prefix cache.
std::vector<std::unique_ptr<Request>> make_streams(int32_t max_tokens) {
  std::vector<std::unique_ptr<Request>> requests;
  for (int32_t i = 0; i < kStreams; ++i) {
    sample::SamplingParams params;
    params.temperature = i % 2 == 0 ? 0.0f : 0.8f;
    params.seed = static_cast<uint64_t>(i);
    params.top_logprobs = i % 4;
    params.repetition_penalty = i % 3 == 0 ? 1.1f : 1.0f;
    if (i % 4 == 1) {
      params.dry_multiplier = 0.5f;
      params.xtc_probability = 0.5f;
      params.top_n_sigma = 2;
      params.dynatemp_range = 0.3f;
      params.repeat_last_n = 20;
    }
    if (i % 4 == 2)
      params.reasoning = std::make_shared<const sample::ReasoningLimit>(
          sample::ReasoningLimit{.tokens_max = 200,
                                 .open = "<",
                                 .close = ">",
                                 .begun = true,
                                 .closing = std::vector<int32_t>(10, 5),
                                 .text_of = [](int32_t) -> std::string_view { return "a"; }});
    requests.push_back(
        std::make_unique<Request>(std::vector<int32_t>{1, 2, i}, params, max_tokens, i % 2 == 0));
    requests.back()->arrived = Clock::now();
    requests.back()->caller = static_cast<uint64_t>(i) / 2;
  }
  return requests;
}

// `drafts`: all that there are in the texts are verified. So few of the fake model's are right that
// there are as many steps.
std::vector<std::unique_ptr<Request>> expect_quiet(model::Model& model, const kernels::Ops& ops,
                                                   int members, int64_t counted_steps,
                                                   bool drafts = false) {
  const EngineStats* stats = nullptr;
  WatchedModel watched(model, stats, counted_steps);
  RunnerOptions options;
  options.members = members;
  options.page_count = 2000;
  CopyDrafts copies;
  AnswerDrafts answers(2);
  if (drafts)
    options.engine.speculation = {
        .sources = {&copies, &answers}, .drafts_max = 3, .measured = false};
  EngineRunner runner(watched, ops, options);
  stats = &runner.handle().stats();
  allocations = locks = 0;
  auto requests = make_streams(static_cast<int32_t>(kWarmUpSteps + counted_steps) + 40);
  for (const auto& request : requests) {
    if (!drafts) break;
    request->text = std::make_unique<TextIndex>(int64_t{4} + request->max_tokens);
    request->text->append(request->prompt);
  }
  allocations = locks = 0;
  for (const auto& request : requests) EXPECT_TRUE(runner.handle().submit(request.get()));
  watched.all_are_submitted();
  for (const auto& request : requests) runner.wait(*request);
  runner.stop();
  EXPECT_GE(watched.steps(), kWarmUpSteps + counted_steps);
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(locks, 0);
  EXPECT_EQ(watched.wakes(), static_cast<uint64_t>(counted_steps));  // One a step.
  EXPECT_EQ(runner.handle().stats().drafts.value() > 0, drafts);
  return requests;
}

class HotPath : public testing::TestWithParam<int> {};

TEST_P(HotPath, TakesNoLockAndAllocatesNothing) {
  for (const FakeModelOptions& options :
       {FakeModelOptions(), FakeModelOptions{.windows = {40}}, FakeModelOptions{.states = true}}) {
    FakeModel model(options);
    for (const bool drafts : {false, true})
      for (const auto& request : expect_quiet(model, test_ops(), GetParam(), 1000, drafts))
        EXPECT_TRUE(has_answer(*request, reference_answer(model, *request)));
  }
}

TEST_P(HotPath, TakesNoLockAndAllocatesNothingWithARealModel) {
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  ThreadTeam team(GetParam());
  model::ModelOptions options;
  options.rows_max = 512;
  options.context_max = 1024;
  const auto run = [&](const Result<card::ModelCard>& card) {
    ASSERT_TRUE(card) << card.error().message;
    Result<std::unique_ptr<model::Model>> model = model::Model::load(*card, options, ops, team);
    ASSERT_TRUE(model.has_value()) << model.error().message;
    expect_quiet(**model, ops, GetParam(), 200);
  };
  run(card::ModelCard::open(card::default_model()));
  run(card::ModelCard::open_folder(WEIR_SOURCE_DIR "/tests/data/families/qwen3_next"));
}

INSTANTIATE_TEST_SUITE_P(Members, HotPath, testing::Values(1, 2));

}  // namespace
}  // namespace weir::sched
