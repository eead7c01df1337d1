// What an engine does that has nothing to compute.
#include <gtest/gtest.h>

#include <chrono>

#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/model.h"
#include "sched/engine_runner.h"
#include "sched/fake_model.h"
#include "ssd/expert_store.h"

namespace weir::sched {
namespace {

using namespace std::chrono_literals;

// A test that waits for what never comes shall fail, not hang.
template <class F>
bool eventually(const F& holds) {
  const auto end = std::chrono::steady_clock::now() + 20s;
  while (!holds() && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
  return holds();
}

RunnerOptions options_with(std::function<void()> on_idle) {
  RunnerOptions options;
  options.engine = {.step_tokens_max = 64, .running_max = 4, .queue_max = 8};
  options.engine.on_idle = std::move(on_idle);
  options.page_count = 16;
  return options;
}

TEST(Idle, EachWakeIsFollowedByALook) {
  FakeModel model;
  std::atomic<int> calls{0};
  std::atomic<std::thread::id> thread;
  EngineRunner runner(model, kernels::ops_for(kernels::detect_isa()), options_with([&] {
                        thread = std::this_thread::get_id();
                        ++calls;
                      }));
  ASSERT_TRUE(eventually([&] { return calls > 0; })) << "before it sleeps at first";
  for (int i = 0; i < 100; ++i) {
    const int before = calls;
    runner.engine().wake();
    ASSERT_TRUE(eventually([&] { return calls > before; })) << i;
  }
  EXPECT_NE(thread.load(), std::this_thread::get_id());
  std::this_thread::sleep_for(50ms);
  const int before = calls;
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(calls, before) << "it sleeps otherwise";
}

// An engine of pages of 4 KiB, and what it keeps.
class Keeping {
 public:
  explicit Keeping(const kv::PageKeeper::Times& times)
      : runner_(model_, test_ops(), options(times)) {}

  // Runs a prompt of 10 pages that begin with `first`; returns how many of its tokens were known.
  int32_t ask(int32_t first) {
    std::vector<int32_t> prompt(10 * kv::kPageTokens, 1);
    prompt[0] = first;
    Request request(prompt, {}, 1, false);
    request.arrived = Clock::now();
    EXPECT_TRUE(runner_.handle().submit(&request));
    runner_.wait(request);
    EXPECT_TRUE(has_answer(request, reference_answer(model_, request)));
    return request.cached_tokens;
  }
  double pages_taken() { return runner_.handle().stats().kv_taken.value() / 4096; }
  Engine& engine() { return runner_.engine(); }
  int rests() const { return rests_; }

 private:
  RunnerOptions options(const kv::PageKeeper::Times& times) {
    RunnerOptions made = options_with({});
    made.page_count = 64;
    made.engine.keep = times;
    made.engine.on_rest = [this] { ++rests_; };
    return made;
  }

  std::atomic<int> rests_{0};
  FakeModel model_{{.kv_width = 16}};
  EngineRunner runner_;
};

TEST(Idle, FreePagesGoBackAndAPrefixStaysUntilItsTime) {
  Keeping keeping({.free = 20ms, .cached = 2s});
  const Clock::time_point begin = Clock::now();
  EXPECT_EQ(keeping.ask(5), 0);
  EXPECT_GE(keeping.pages_taken(), 10);
  // Of ten pages and an answer's nine are cached: the last token is always computed.
  ASSERT_TRUE(eventually([&] { return keeping.pages_taken() <= 10; }));
  if (Clock::now() - begin < 1s) {
    EXPECT_EQ(keeping.ask(5), 9 * kv::kPageTokens);
  }
  ASSERT_TRUE(eventually([&] { return keeping.pages_taken() == 0; })) << "its time has come";
  EXPECT_GE(Clock::now() - begin, 2s);
  EXPECT_EQ(keeping.ask(5), 0);
}

TEST(Idle, APrefixIsKeptForEverWhereNoTimeIsSaid) {
  Keeping keeping({.free = 1ms, .cached = 0ms});
  EXPECT_EQ(keeping.ask(5), 0);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(keeping.ask(5), 9 * kv::kPageTokens);
}

TEST(Idle, WhereMemoryIsShortTheOldestPrefixesGoFirst) {
  Keeping keeping({.free = 1h, .cached = 2h});
  for (const int32_t first : {5, 6, 7}) keeping.ask(first);
  const double before = keeping.pages_taken();
  EXPECT_GE(before, 30);
  keeping.engine().shed_memory();  // A quarter of 30 pages, and all that are free.
  ASSERT_TRUE(eventually([&] { return keeping.pages_taken() <= 22; })) << keeping.pages_taken();
  EXPECT_EQ(keeping.ask(7), 9 * kv::kPageTokens);
  EXPECT_EQ(keeping.ask(6), 9 * kv::kPageTokens);
  EXPECT_LE(keeping.ask(5), 2 * kv::kPageTokens);
  for (int i = 0; i < 40; ++i) keeping.engine().shed_memory();
  ASSERT_TRUE(eventually([&] {
    keeping.engine().shed_memory();
    return keeping.pages_taken() == 0;
  }));
}

TEST(Idle, RestsOnceAfterItHasBegunAndAfterEachWork) {
  Keeping keeping({.free = 10ms, .cached = 0ms});
  ASSERT_TRUE(eventually([&] { return keeping.rests() == 1; }));
  for (int i = 2; i <= 4; ++i) {
    keeping.ask(i);
    ASSERT_TRUE(eventually([&] { return keeping.rests() == i; })) << i;
  }
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(keeping.rests(), 4);
}

// The server's: experts give back memory while no request comes.
TEST(Idle, AStreamedModelShedsMemoryWithoutARequest) {
  const auto card = card::ModelCard::open_folder(WEIR_SOURCE_DIR "/models/weir-tiny-moe");
  ASSERT_TRUE(card) << card.error().message;
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  ThreadTeam team(1);
  auto model = model::Model::load(
      *card, {.rows_max = 64, .context_max = 128, .stream_experts = true}, ops, team);
  ASSERT_TRUE(model) << model.error().message;
  auto disk = ssd::Disk::create({.uring = false});
  ASSERT_TRUE(disk);
  const Result<void> opened = (*model)->open_experts(
      std::move(*disk), {.memory = 4 << 20, .sequences_max = sequences_max(8, 4)});
  ASSERT_TRUE(opened) << opened.error().message;
  ssd::ExpertStore& store = *(*model)->experts();
  RunnerOptions options = options_with([&store] { store.adjust_memory(); });
  EngineRunner runner(**model, ops, options);
  const auto planned = static_cast<double>(store.plan().slots);
  ASSERT_TRUE(eventually([&] {
    runner.engine().wake();
    return store.stats().slots_usable.value() == planned;
  })) << "memory comes while nobody asks";
  store.allow(50);
  runner.engine().wake();
  ASSERT_TRUE(eventually([&] { return store.stats().slots_shed.value() >= planned / 2; }));
  EXPECT_EQ(store.stats().steps.value(), 0u);
  store.allow(100);
  runner.engine().wake();
  EXPECT_TRUE(eventually([&] { return store.stats().slots_shed.value() == 0; }));
}

}  // namespace
}  // namespace weir::sched
