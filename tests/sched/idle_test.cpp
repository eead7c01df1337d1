// What an engine does that has nothing to compute.
#include <gtest/gtest.h>

#include <chrono>

#include "base/file.h"
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

// The server's: experts give back memory while no request comes.
TEST(Idle, AStreamedModelShedsMemoryWithoutARequest) {
  const auto files = ModelFiles::open(WEIR_SOURCE_DIR "/models/weir-tiny-moe");
  ASSERT_TRUE(files) << files.error().message;
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  ThreadTeam team(1, /*pin=*/false);
  auto model = model::Model::load(
      *files, {.rows_max = 64, .context_max = 128, .stream_experts = true}, ops, team);
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
