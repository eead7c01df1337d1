// A stage: the engines that have work take turns by the team's time; an engine on it answers as it
// does alone, after other engines have come and gone.
#include "sched/stage.h"

#include <gtest/gtest.h>

#include <future>
#include <list>

#include "sched/random_load.h"

namespace weir::sched {
namespace {

using std::chrono::milliseconds;

// A clock of the tests' own: an actor that computes moves it on.
Stage::Clock::time_point g_now{};

// Computes for so long in a turn, as long as it has any.
class Busy final : public Actor {
 public:
  Busy(Clock::duration cost, int turns) : cost_(cost), left_(turns) {}

  bool take_turn(Actor*& waiting) override {
    if (unpublished_) publish_turn();
    if (left_ == 0) return false;
    if (waiting != nullptr) std::exchange(waiting, nullptr)->publish_turn();
    if (on_turn) on_turn();
    g_now += cost_;
    used_ += cost_;
    --left_;
    ++taken_;
    unpublished_ = true;
    return true;
  }
  void publish_turn() override { unpublished_ = false; }

  void add_turns(int count) { left_ += count; }
  int taken() const { return taken_; }
  bool unpublished() const { return unpublished_; }
  double used_s() const { return std::chrono::duration<double>(used_).count(); }
  std::function<void()> on_turn;

 private:
  const Clock::duration cost_;
  int left_;
  int taken_ = 0;
  Clock::duration used_{};
  bool unpublished_ = false;
};

TEST(Stage, TwoThatAreBusyShareTheTimeEquallyHoweverLongTheirTurnsAre) {
  Busy shorts(milliseconds(1), 1 << 20), longs(milliseconds(4), 1 << 20);
  Stage stage([] { return g_now; });
  stage.add(shorts);
  stage.add(longs);
  longs.on_turn = [&] {
    if (longs.taken() == 50) stage.stop();
  };
  stage.run();
  EXPECT_NEAR(shorts.used_s() / (shorts.used_s() + longs.used_s()), 0.5, 0.02);
}

TEST(Stage, OneThatWasIdleDoesNotMakeUpForIt) {
  Busy busy(milliseconds(1), 1 << 20), idle(milliseconds(1), 0);
  Stage stage([] { return g_now; });
  stage.add(busy);
  stage.add(idle);
  int most_in_a_row = 0, in_a_row = 0;
  busy.on_turn = [&] {
    in_a_row = 0;
    if (busy.taken() == 40) {
      idle.add_turns(100);
      stage.bell().ring();
    }
    if (busy.taken() == 120) stage.stop();
  };
  idle.on_turn = [&] { most_in_a_row = std::max(most_in_a_row, ++in_a_row); };
  stage.run();
  EXPECT_NEAR(idle.taken(), 80, 2);
  EXPECT_LE(most_in_a_row, 2);
}

TEST(Stage, WhatOneHasComputedIsPublishedInTheNextTurnOfAnother) {
  Busy a(milliseconds(1), 100), b(milliseconds(2), 100), c(milliseconds(3), 100);
  Stage stage([] { return g_now; });
  for (Busy* each : {&a, &b, &c}) {
    stage.add(*each);
    each->on_turn = [&] {
      EXPECT_FALSE(a.unpublished() || b.unpublished() || c.unpublished());
      if (a.taken() == 60) stage.stop();
    };
  }
  stage.run();
  EXPECT_NEAR(a.taken(), c.taken() * 3, 3);
}

TEST(Stage, ARestingOneHasATurnWhenTheBellRingsAndWhenItAskedForOne) {
  struct Looks final : Actor {
    bool take_turn(Actor*&) override {
      ++looks;
      return false;
    }
    Clock::time_point begin_rest() override { return Clock::now() + wait; }
    std::atomic<int> looks{0};
    Clock::duration wait = std::chrono::hours(1);
  };
  Looks patient, restless;
  restless.wait = milliseconds(2);
  Stage stage;
  stage.add(patient);
  stage.add(restless);
  std::thread thread([&] { stage.run(); });
  while (restless.looks < 20) std::this_thread::yield();
  const int before = patient.looks;
  EXPECT_LE(before, 3);
  stage.bell().ring();
  while (patient.looks == before) std::this_thread::yield();
  stage.remove(restless);
  const int last = restless.looks;
  std::this_thread::sleep_for(milliseconds(10));
  EXPECT_EQ(restless.looks, last);
  stage.stop();
  thread.join();
}

// Engines with models of their own, and one team.
class Company {
 public:
  struct Player {
    Player(Company& company, const FakeModelOptions& model_options, const EngineOptions& options)
        : model(model_options),
          executor(model, test_ops(), *company.team_),
          handle(options.queue_max, 1, company.stage_.bell()) {
      const kv::MemoryLoad load = {.running_max = options.running_max,
                                   .rows_max = options.step_tokens_max + model.slab_rows()};
      auto layout = kv::MemoryLayout::make(model.memory_needs(), kernels::FloatType::kF32);
      CHECK(layout.has_value());
      const std::vector<int32_t> counts = kv::page_counts(layout->groups(), 64, load);
      CHECK(executor
                .take_memory(std::move(*layout), counts,
                             {.running = options.running_max, .checkpoints = 16})
                .has_value());
      engine.emplace(options, executor, handle, [this] {
        wakes.fetch_add(1, std::memory_order_release);
        wakes.notify_all();
      });
    }

    FakeModel model;
    exec::CpuExecutor executor;
    EngineHandle handle;
    std::optional<Engine> engine;
    std::atomic<uint64_t> wakes{0};
  };

  explicit Company(int members) {
    std::promise<void> ready;
    thread_ = std::thread([&, members] {
      team_.emplace(members);
      ready.set_value();
      stage_.run();
    });
    ready.get_future().wait();
  }
  ~Company() {
    stage_.stop();
    thread_.join();
  }

  Player& hire(const FakeModelOptions& model, const EngineOptions& options) {
    const std::lock_guard lock(mutex_);
    Player& player = players_.emplace_back(*this, model, options);
    stage_.add(*player.engine);
    return player;
  }
  void dismiss(Player& player) {
    stage_.remove(*player.engine);
    player.engine->finish();
    player.engine.reset();
  }

  Stage& stage() { return stage_; }

 private:
  Stage stage_;
  std::optional<ThreadTeam> team_;
  std::thread thread_;
  std::mutex mutex_;
  std::list<Player> players_;
};

void check_answers(Company::Player& player, const LoadOptions& load) {
  Requests requests = random_load(load, player.model.spec().vocab_size);
  std::mt19937 rng(load.seed + 1000);
  for (const auto& request : requests) {
    while (!player.handle.submit(request.get())) std::this_thread::yield();
    if (load.cancel_one_in > 0 && rng() % static_cast<unsigned>(load.cancel_one_in) == 0)
      player.handle.cancel(request.get());
  }
  for (const auto& request : requests)
    while (!request->log.finished()) {
      const uint64_t seen = player.wakes.load(std::memory_order_acquire);
      if (!request->log.finished()) player.wakes.wait(seen, std::memory_order_acquire);
    }
  for (const auto& request : requests)
    ASSERT_TRUE(has_answer(*request, reference_answer(player.model, *request)));
}

TEST(Stage, EnginesAnswerAsTheyDoAloneWhileOthersComeAndGo) {
  for (uint32_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Company company(1 + static_cast<int>(seed % 3));
    const EngineOptions options = runner_options(1, 64, seed % 2 == 0).engine;
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < 3; ++i)
      threads.emplace_back([&, i] {
        FakeModelOptions model;
        model.rows_max = 48;
        model.slab_rows = i == 1 ? 96 : 0;
        model.states = i == 2;
        for (uint32_t life = 0; life < 3; ++life) {
          Company::Player& player = company.hire(model, options);
          check_answers(player, {.seed = 100 * seed + 10 * i + life,
                                 .requests = 30,
                                 .cancel_one_in = life == 1 ? 5 : 0});
          company.dismiss(player);
        }
      });
    for (std::thread& thread : threads) thread.join();
  }
}

// The one that goes is in the middle of its answers.
TEST(Stage, AnEngineThatLeavesEndsWhatItHasAndTheOtherGoesOn) {
  Company company(2);
  const EngineOptions options = runner_options(1, 64, true).engine;
  Company::Player& stays = company.hire({}, options);
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    Company::Player& goes = company.hire({}, options);
    Requests requests = random_load({.seed = seed, .requests = 10, .output_max = 1000}, 48);
    for (const auto& request : requests) {
      const Result<void> submitted = goes.handle.submit(request.get());
      ASSERT_TRUE(submitted) << submitted.error().message;
    }
    std::this_thread::sleep_for(milliseconds(seed % 4));
    company.dismiss(goes);
    for (const auto& request : requests) EXPECT_TRUE(request->log.finished());
    auto late = make_request({1, 2}, 3);
    EXPECT_EQ(goes.handle.submit(late.get()).error().code, ErrorCode::kUnavailable);
    check_answers(stays, {.seed = seed, .requests = 5});
  }
  company.dismiss(stays);
}

}  // namespace
}  // namespace weir::sched
