// Who is prepared next, and what is dropped: on threads that the test plays itself, with work that
// costs what it says. Nothing is timed.
#include "api/preparation.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <utility>
#include <vector>

namespace weir::api {
namespace {

using namespace std::chrono_literals;

// Of all threads together, so that a test may spend it.
Preparation::Interrupt::Duration spent{};
Preparation::Interrupt::Duration thread_time() { return spent; }

// What was given to a lane's threads, until the test lets it run.
struct FakeLane {
  struct Piece {
    std::function<void()> work, done;
  };
  std::deque<Piece> pieces;
  bool closed = false;

  Preparation::Lane lane() {
    return [this](std::function<void()> work, std::function<void()> done) {
      if (closed) return false;
      pieces.push_back({std::move(work), std::move(done)});
      return true;
    };
  }
  Piece take() {
    Piece piece = std::move(pieces.front());
    pieces.pop_front();
    return piece;
  }
  void run_one() {
    const Piece piece = take();
    piece.work();
    piece.done();
  }
  void run_all() {
    while (!pieces.empty()) run_one();
  }
};

struct Fixture {
  explicit Fixture(Preparation::Limits limits_in = {}) : limits(limits_in) {}

  // Its name is noted when it works, is done, or is refused.
  uint64_t add(uint64_t caller, const std::string& name,
               Preparation::Interrupt::Duration cost = 1ms) {
    Preparation::Job job;
    job.caller = caller;
    job.work = [this, name, cost] {
      spent += cost;
      worked.push_back(name);
    };
    return add(std::move(job), name);
  }
  // One whose grammar takes long: it is compiled where it may take any time.
  uint64_t add_grammar(uint64_t caller, const std::string& name) {
    Preparation::Job job;
    job.caller = caller;
    job.work = [this, name, interrupt = job.interrupt.get()] {
      worked.push_back(name + (interrupt->limited() ? "?" : "!"));
      if (interrupt->limited()) interrupt->postpone();
      spent += interrupt->limited() ? 10ms : 500ms;
    };
    return add(std::move(job), name);
  }
  uint64_t add(Preparation::Job job, const std::string& name) {
    job.done = [this, name] { done.push_back(name); };
    job.refuse = [this, name](const Expiry& refusal) {
      refused.push_back(name);
      error = refusal.error;
    };
    return preparation.add(std::move(job));
  }

  static Preparation::Limits timed(Preparation::Limits limits) {
    limits.thread_time = &thread_time;
    return limits;
  }

  using Names = std::vector<std::string>;
  const Preparation::Limits limits;
  FakeLane pool, background;
  Gauge gauge;
  Preparation preparation{timed(limits), pool.lane(), background.lane(), gauge};
  Names worked, done, refused;
  Error error;
};

Preparation::Limits one_thread() {
  Preparation::Limits limits;
  limits.threads = limits.threads_of_one_max = 1;
  return limits;
}

using Names = Fixture::Names;

TEST(Preparation, GivesThePoolNoMoreThanItHasThreads) {
  Fixture f;
  for (int i = 0; i < 20; ++i) f.add(static_cast<uint64_t>(i % 2), std::to_string(i));
  EXPECT_EQ(f.pool.pieces.size(), 5u);
  EXPECT_EQ(f.preparation.count(), 20u);
  EXPECT_EQ(f.gauge.value(), 20);
  f.pool.run_one();
  EXPECT_EQ(f.pool.pieces.size(), 5u) << "the next one follows";
  f.pool.run_all();
  EXPECT_EQ(f.done.size(), 20u);
  EXPECT_EQ(f.preparation.count(), 0u);
  EXPECT_EQ(f.gauge.value(), 0);
}

TEST(Preparation, OneCallerLeavesAThreadToTheRest) {
  Fixture f;
  for (int i = 0; i < 20; ++i) f.add(1, "greedy");
  EXPECT_EQ(f.pool.pieces.size(), 4u);
  f.add(2, "other");
  EXPECT_EQ(f.pool.pieces.size(), 5u);
  f.pool.pieces.back().work();
  EXPECT_EQ(f.worked, Names{"other"});
  f.pool.run_all();
}

TEST(Preparation, CallersShareTheTimeAndNotTheTurns) {
  Fixture f(one_thread());
  for (int i = 0; i < 3; ++i) f.add(1, "long", 10ms);
  for (int i = 0; i < 10; ++i) f.add(2, "short", 2ms);
  for (int i = 0; i < 7; ++i) f.pool.run_one();
  EXPECT_EQ(f.worked, (Names{"long", "short", "short", "short", "short", "short", "long"}));
  f.pool.run_all();
  EXPECT_EQ(f.done.size(), 13u);
}

TEST(Preparation, LongCompilationsWaitForOneAnotherAndForNobodyElse) {
  Fixture f(one_thread());
  for (int i = 0; i < 3; ++i) f.add_grammar(1, "g" + std::to_string(i));
  f.add(2, "plain");
  f.pool.run_all();
  EXPECT_EQ(f.worked, (Names{"g0?", "plain", "g1?", "g2?"}));
  EXPECT_EQ(f.done, Names{"plain"});
  EXPECT_EQ(f.background.pieces.size(), 1u) << "one at a time";
  EXPECT_EQ(f.preparation.count(), 3u);
  // Another caller's comes after the one that runs.
  f.add_grammar(3, "h");
  f.pool.run_all();
  f.worked.clear();
  f.background.run_all();
  EXPECT_EQ(f.worked, (Names{"g0!", "h!", "g1!", "g2!"}));
  EXPECT_EQ(f.done, (Names{"plain", "g0", "h", "g1", "g2"}));
  EXPECT_EQ(f.preparation.count(), 0u);
}

TEST(Preparation, CompilesLongerInThePoolWhileTheOtherLaneIsIdle) {
  Preparation::Limits limits = one_thread();
  limits.compile_alone_max = 70ms;
  limits.compile_max = 7ms;
  Fixture f(limits);
  std::vector<bool> alone;
  // Of CPU time that passes in the compilation itself.
  for (int i = 0; i < 2; ++i) {
    Preparation::Job job;
    job.work = [&, interrupt = job.interrupt.get()] {
      if (!interrupt->limited()) return;
      interrupt->begin();
      const auto begin = std::chrono::steady_clock::now();
      while (!interrupt->fired()) continue;
      alone.push_back(std::chrono::steady_clock::now() - begin >= 69ms);
    };
    f.add(std::move(job), std::to_string(i));
    f.pool.run_one();
  }
  EXPECT_TRUE(alone[0]);
  f.background.run_all();
  EXPECT_EQ(f.done, (Names{"0", "1"}));
}

TEST(Preparation, WorkWhoseClientHasLeftIsNotDone) {
  Fixture f(one_thread());
  f.add(1, "first");
  std::vector<uint64_t> ids;
  for (int i = 0; i < 127; ++i) ids.push_back(f.add(1, "gone"));
  for (const uint64_t id : ids) f.preparation.leave(id);
  EXPECT_EQ(f.preparation.count(), 1u) << "what they held is given back at once";
  f.pool.run_all();
  EXPECT_EQ(f.worked, Names{"first"});
  EXPECT_EQ(f.done, Names{"first"});
  EXPECT_TRUE(f.refused.empty());
  f.preparation.leave(ids.front());  // For the second time.
  f.preparation.leave(12345);
}

TEST(Preparation, WorkThatRunsIsToldThatItsClientHasLeft) {
  Fixture f(one_thread());
  const uint64_t id = f.add_grammar(1, "gone");
  f.pool.run_all();
  FakeLane::Piece running = f.background.take();
  f.preparation.leave(id);
  EXPECT_EQ(f.preparation.count(), 1u) << "it is held until its work has returned";
  running.work();
  EXPECT_EQ(f.worked, Names{"gone?"}) << "a thread that comes to it late does nothing";
  running.done();
  EXPECT_EQ(f.preparation.count(), 0u);

  // And one that leaves in the middle.
  Preparation::Job job;
  uint64_t left = 0;
  bool stopped = false;
  job.work = [&, interrupt = job.interrupt.get()] {
    f.preparation.leave(left);
    stopped = interrupt->stopped();
  };
  left = f.add(std::move(job), "leaves");
  f.pool.run_all();
  EXPECT_TRUE(stopped);
  EXPECT_TRUE(f.done.empty());
  EXPECT_TRUE(f.refused.empty());
  EXPECT_EQ(f.preparation.count(), 0u);
}

TEST(Preparation, WhatIsPostponedIsDroppedIfItsClientHasLeftMeanwhile) {
  Fixture f(one_thread());
  std::vector<uint64_t> ids;
  for (int i = 0; i < 3; ++i) ids.push_back(f.add_grammar(1, std::to_string(i)));
  f.pool.run_all();
  f.preparation.leave(ids[1]);
  f.background.run_all();
  EXPECT_EQ(f.done, (Names{"0", "2"}));
}

TEST(Preparation, WhenItIsFullTheGreediestCallerIsRefused) {
  Preparation::Limits limits = one_thread();
  limits.jobs_max = 6;
  Fixture f(limits);
  for (int i = 0; i < 6; ++i) f.add(1, "a" + std::to_string(i));
  f.add(1, "a6");
  EXPECT_EQ(f.refused, Names{"a6"}) << "it has most of them itself";
  f.add(2, "b0");
  EXPECT_EQ(f.refused, (Names{"a6", "a5"}));
  EXPECT_EQ(f.error.code, ErrorCode::kOverloaded);
  f.add(2, "b1");
  f.add(2, "b2");
  EXPECT_EQ(f.refused, (Names{"a6", "a5", "a4", "b2"})) << "two each wait: no more is taken away";
  EXPECT_EQ(f.preparation.count(), 6u);
  f.pool.run_all();
  EXPECT_EQ(f.done, (Names{"a0", "b0", "a1", "b1", "a2", "a3"}));
}

TEST(Preparation, NothingIsTakenWithoutRoomForAny) {
  Preparation::Limits limits;
  limits.jobs_max = 0;
  Fixture f(limits);
  f.add(1, "a");
  EXPECT_EQ(f.refused, Names{"a"});
}

TEST(Preparation, APoolThatTakesNothingRefuses) {
  Fixture f;
  f.pool.closed = true;
  f.add(1, "a");
  EXPECT_EQ(f.refused, Names{"a"});
  EXPECT_EQ(f.preparation.count(), 0u);
}

TEST(Preparation, TheEndAnswersEverybodyAtOnce) {
  Fixture f(one_thread());
  for (int i = 0; i < 3; ++i) f.add_grammar(1, "g" + std::to_string(i));
  f.pool.run_all();
  f.add(2, "runs");
  f.add(2, "waits");
  f.preparation.end(Error{ErrorCode::kUnavailable, "The end."});
  EXPECT_EQ(f.refused.size(), 5u);
  EXPECT_EQ(f.error.code, ErrorCode::kUnavailable);
  EXPECT_EQ(f.preparation.count(), 2u) << "a compilation, and what the pool has";
  f.add(3, "late");
  EXPECT_EQ(f.refused.back(), "late");
  f.worked.clear();
  f.pool.run_all();
  f.background.run_all();
  EXPECT_TRUE(f.worked.empty());
  EXPECT_TRUE(f.done.empty());
  EXPECT_EQ(f.preparation.count(), 0u);
}

TEST(Preparation, WhatHasWaitedTooLongIsRefused) {
  Fixture f(one_thread());
  const auto now = Preparation::Clock::now();
  const auto add = [&](const std::string& name, std::chrono::seconds age) {
    Preparation::Job job;
    job.arrived = now - age;
    job.work = [] {};
    f.add(std::move(job), name);
  };
  add("runs", 100s);
  add("old", 100s);
  add("young", 1s);
  f.preparation.expire([&](Preparation::Clock::time_point arrived) -> std::optional<Expiry> {
    if (now - arrived < 30s) return std::nullopt;
    return Expiry{Error{ErrorCode::kOverloaded, "Too late."}, {}};
  });
  EXPECT_EQ(f.refused, Names{"old"});
  f.pool.run_all();
  EXPECT_EQ(f.done, (Names{"runs", "young"}));
}

}  // namespace
}  // namespace weir::api
