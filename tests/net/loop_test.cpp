// Loop: wake-ups and tasks from other threads, pool work, periods, signals, and a clean end.
#include "net/loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <memory>
#include <thread>
#include <vector>

namespace weir::net {
namespace {

TEST(Loop, StopsAtOnceIfToldBeforeItRuns) {
  Loop loop;
  loop.stop();
  loop.run();
}

TEST(Loop, IsDestroyedWithoutHavingRun) {
  Loop loop;
  loop.every(1, [] {});
  loop.on_signal(SIGUSR2, [](int) {});
  loop.post([] {});
}

TEST(Loop, RunsPostedTasksInOrderOnItsThread) {
  Loop loop;
  std::vector<int> order;
  std::thread::id ran_on;
  std::thread poster([&] {
    for (int i = 0; i < 1'000; ++i)
      loop.post([&order, &ran_on, i] {
        order.push_back(i);
        ran_on = std::this_thread::get_id();
      });
    loop.stop();
  });
  loop.run();
  poster.join();
  ASSERT_EQ(order.size(), 1'000u);
  for (int i = 0; i < 1'000; ++i) EXPECT_EQ(order[static_cast<size_t>(i)], i);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
}

TEST(Loop, NoWakeIsLostThoughTheyMerge) {
  Loop loop;
  std::atomic<int> produced{0};
  int seen = 0;
  constexpr int kLast = 100'000;
  loop.on_wake([&] {
    seen = produced.load();
    if (seen == kLast) loop.stop();
  });
  std::thread producer([&] {
    for (int i = 1; i <= kLast; ++i) {
      produced.store(i);
      loop.wake();
    }
  });
  loop.run();  // Would never end if the wake after the last store were lost.
  producer.join();
  EXPECT_EQ(seen, kLast);
  loop.wake();  // Harmless after the end.
  loop.post([] { FAIL(); });
}

TEST(Loop, PoolWorkRunsElsewhereAndItsEndOnTheLoop) {
  Loop loop;
  std::thread::id worked_on, done_on;
  loop.post([&] {
    EXPECT_TRUE(loop.run_in_pool([&] { worked_on = std::this_thread::get_id(); },
                                 [&] {
                                   done_on = std::this_thread::get_id();
                                   loop.stop();
                                 }));
  });
  loop.run();
  EXPECT_NE(worked_on, std::this_thread::get_id());
  EXPECT_EQ(done_on, std::this_thread::get_id());
}

TEST(Loop, PoolWorkIsBounded) {
  Loop loop;
  std::atomic<int> worked{0};
  std::atomic<bool> release{false};
  int done = 0, refused = 0;
  for (size_t i = 0; i < Loop::kPoolWorkMax + 5; ++i) {
    const bool taken = loop.run_in_pool(
        [&] {
          while (!release) std::this_thread::yield();
          ++worked;
        },
        [&] {
          if (++done == static_cast<int>(Loop::kPoolWorkMax)) loop.stop();
        });
    if (!taken) ++refused;
  }
  EXPECT_EQ(loop.pool_work(), Loop::kPoolWorkMax);
  EXPECT_EQ(refused, 5);
  release = true;
  loop.run();
  EXPECT_EQ(worked, static_cast<int>(Loop::kPoolWorkMax));
  EXPECT_EQ(loop.pool_work(), 0u);
}

TEST(Loop, StopDropsPoolWorkThatHasNotBegun) {
  auto held = std::make_shared<int>(1);  // What a `done` holds is released, too.
  std::atomic<int> worked{0};
  {
    Loop loop;
    for (int i = 0; i < 100; ++i)
      loop.run_in_pool(
          [&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
            ++worked;
          },
          [held] { FAIL() << "called after stop()"; });
    loop.stop();
    loop.run();
  }
  EXPECT_LT(worked, 100);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Loop, CallsPeriodicallyUntilStopped) {
  Loop loop;
  int calls = 0;
  const uint64_t begin = loop.now_ms();
  loop.every(5, [&] {
    if (++calls == 4) loop.stop();
  });
  loop.run();
  EXPECT_EQ(calls, 4);
  EXPECT_GE(loop.now_ms() - begin, 19u);
}

TEST(Loop, CallsForASignalInsteadOfTheDefaultAction) {
  Loop loop;
  int got = 0;
  loop.on_signal(SIGTERM, [&](int number) {
    got = number;
    loop.stop();
  });
  loop.post([] { std::raise(SIGTERM); });
  loop.run();
  EXPECT_EQ(got, SIGTERM);
}

TEST(Loop, GetsAHeldSignalWheneverItCameAndNobodyElseDoes) {
  hold_signal(SIGUSR1);  // Its default action would end this process.
  std::raise(SIGUSR1);   // To this thread: others of this process have not inherited it.
  {
    Loop loop;
    int calls = 0;
    loop.on_held_signal(SIGUSR1, [&] {
      if (++calls == 2) return loop.stop();
      std::raise(SIGUSR1);
    });
    loop.run();
    EXPECT_EQ(calls, 2);
    std::raise(SIGUSR1);
  }
  std::raise(SIGUSR1);
}

}  // namespace
}  // namespace weir::net
