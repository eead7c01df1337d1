// The registry with a host that loads when the test says so, and a clock that the test moves.
#include "api/models/model_registry.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace weir::api {
namespace {

using Clock = ModelRegistry::Clock;
using std::chrono::seconds;

Clock::time_point g_now{};

// Each model needs what the test says; what it is asked is done by finish().
class FakeHost final : public ModelHost {
 public:
  int64_t room() const override { return room_bytes; }
  void open(size_t model, const LoadOptions& options, std::function<void(const Progress&)>,
            std::function<void(Result<int64_t>)> done) override {
    EXPECT_FALSE(pending_) << "two things at once";
    opened = model;
    last_options = options;
    calls.push_back("open " + std::to_string(model));
    pending_ = [this, model, done] {
      if (stopped_ == static_cast<int64_t>(model))
        return done(fail(ErrorCode::kCancelled, "stopped"));
      if (broken.contains(model)) return done(fail(ErrorCode::kConfig, "no such file"));
      done(need[model]);
    };
  }
  void load(size_t model, int64_t free, std::function<void(const Progress&)> progress,
            std::function<void(Result<std::shared_ptr<HostedModel>>)> done) override {
    EXPECT_FALSE(pending_) << "two things at once";
    EXPECT_EQ(opened, model);
    EXPECT_GE(free, need[model]);
    calls.push_back("load " + std::to_string(model));
    pending_ = [this, model, done, progress] {
      progress({.state = ModelState::kLoading, .percent = 50});
      if (stopped_ == static_cast<int64_t>(model))
        return done(fail(ErrorCode::kCancelled, "stopped"));
      auto hosted = std::make_shared<HostedModel>();
      hosted->bytes = need[model];
      hosted->config.context_max = 128;
      loaded.insert(model);
      done(hosted);
    };
  }
  void stop(size_t model) override { stopped_ = static_cast<int64_t>(model); }
  void unload(size_t model, std::function<void()> done) override {
    EXPECT_FALSE(pending_) << "two things at once";
    EXPECT_EQ(loaded.erase(model), 1u);
    calls.push_back("unload " + std::to_string(model));
    pending_ = std::move(done);
  }

  void look_again(std::function<void(Result<std::vector<KnownModel>>)> done) override {
    looks.push_back(std::move(done));
  }

  // Does what it was asked last; false: nothing.
  bool finish() {
    if (!pending_) return false;
    const auto call = std::exchange(pending_, nullptr);
    call();
    stopped_ = -1;
    return true;
  }
  void finish_all() {
    while (finish()) {
    }
  }
  bool busy() const { return pending_ != nullptr; }

  int64_t room_bytes = 20;
  std::map<size_t, int64_t> need;
  std::set<size_t> broken, loaded;
  size_t opened = 99;
  LoadOptions last_options;
  std::vector<std::string> calls;
  std::vector<std::function<void(Result<std::vector<KnownModel>>)>> looks;

 private:
  std::function<void()> pending_;
  int64_t stopped_ = -1;
};

class ModelRegistryTest : public ::testing::Test {
 protected:
  explicit ModelRegistryTest(double stay_s = 10)
      : limits_{.waiting_max = 2, .load_timeout_s = 300, .stay_s = stay_s, .now = [] {
                  return g_now;
                }} {
    g_now = Clock::time_point(seconds(1000));
    for (size_t i = 0; i < 4; ++i) host_.need[i] = 10;
  }

  void make(std::vector<KnownModel> entries) {
    registry_.emplace(
        std::move(entries), limits_, &host_,
        ModelRegistry::Hooks{.on_loaded = [this](size_t m, const auto&) { served_.insert(m); },
                             .on_added = [this] { ++added_; },
                             .on_unloading =
                                 [this](size_t m) {
                                   if (holds_.contains(m)) return false;
                                   return served_.erase(m) == 1;
                                 },
                             .on_freed = [this] { registry_->poll(); }});
  }
  void make_three() { make({{.id = "a"}, {.id = "b", .aliases = {"bee"}}, {.id = "c"}}); }

  // What comes of a lease, once it does.
  struct Asked {
    uint64_t waiter = 0;
    std::optional<Result<size_t>> result;
    ModelLease lease;
  };
  std::shared_ptr<Asked> ask(std::string_view name, bool autoload = true) {
    auto asked = std::make_shared<Asked>();
    asked->waiter = registry_->lease(name, autoload, [asked](Result<ModelLease> lease) {
      EXPECT_FALSE(asked->result.has_value());
      if (!lease) {
        asked->result = tl::unexpected(lease.error());
        return;
      }
      asked->result = lease->model();
      asked->lease = *std::move(lease);
    });
    registry_->check();
    return asked;
  }
  void use(std::string_view name) {
    const auto asked = ask(name);
    host_.finish_all();
    ASSERT_TRUE(asked->result && *asked->result) << name;
  }
  void after(int64_t s) {
    g_now += seconds(s);
    registry_->tick();
    registry_->check();
  }
  ModelState state(size_t model) { return registry_->status(model).state; }

  FakeHost host_;
  ModelRegistry::Limits limits_;
  std::set<size_t> served_, holds_;
  int added_ = 0;
  std::optional<ModelRegistry> registry_;
};

TEST_F(ModelRegistryTest, ALoadedModelIsLeasedAtOnceAndOthersWhenTheyAreLoaded) {
  make_three();
  const auto first = ask("bee");
  EXPECT_EQ(state(1), ModelState::kLoading);
  const auto second = ask("b");  // Shares its load.
  EXPECT_FALSE(first->result);
  host_.finish_all();
  ASSERT_TRUE(first->result && second->result);
  EXPECT_EQ(**first->result, 1u);
  EXPECT_EQ(host_.calls, (std::vector<std::string>{"open 1", "load 1"}));
  EXPECT_EQ(registry_->status(1).leases, 2);
  EXPECT_EQ(registry_->status(1).context_max, 128);
  const auto third = ask("b");
  EXPECT_TRUE(third->result);
}

TEST_F(ModelRegistryTest, NamesAreIdsAndAliasesAndTheEmptyOneIsTheFirstModels) {
  make({{.id = "a"}, {.id = "b", .aliases = {"bee"}}});
  EXPECT_EQ(*registry_->find("bee"), 1u);
  EXPECT_EQ(*registry_->find(""), 0u);
  const Error error = registry_->find("gpt-5").error();
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.kind, "model_not_found");
  EXPECT_EQ(error.message, "The model 'gpt-5' does not exist; this server has 'a', 'b'.");
  make({{.id = "a"}, {.id = "b", .any_name = true}});
  EXPECT_EQ(*registry_->find("gpt-5"), 1u);
}

TEST_F(ModelRegistryTest, TheIdleModelThatWasUsedLeastRecentlyGoesForAnother) {
  make_three();
  use("a");
  after(1);
  use("b");
  after(1);
  use("a");
  after(20);
  use("c");
  EXPECT_EQ(host_.loaded, (std::set<size_t>{0, 2}));
  EXPECT_EQ(served_, host_.loaded);
}

TEST_F(ModelRegistryTest, ALeasedModelNeverGoes) {
  make_three();
  const auto a = ask("a");
  host_.finish_all();
  const auto b = ask("b");
  host_.finish_all();
  const auto c = ask("c");
  host_.finish_all();
  EXPECT_EQ(state(2), ModelState::kQueued);
  after(9);
  EXPECT_EQ(state(0), ModelState::kLoaded);
  a->lease = {};  // Idle, and loaded for 9 s only.
  EXPECT_EQ(state(0), ModelState::kLoaded);
  after(1);
  host_.finish_all();
  ASSERT_TRUE(c->result && *c->result);
  EXPECT_EQ(host_.loaded, (std::set<size_t>{1, 2}));
}

TEST_F(ModelRegistryTest, AModelThatIsInTheWayForLongTakesNoMoreRequestsUntilItHasGone) {
  make_three();
  const auto a = ask("a");
  host_.finish_all();
  after(1);
  const auto b = ask("b");
  host_.finish_all();
  const auto c = ask("c");
  host_.finish_all();
  after(9);
  EXPECT_EQ(state(0), ModelState::kLoaded);
  after(1);
  EXPECT_EQ(state(0), ModelState::kDraining);  // The one that was loaded first.
  EXPECT_EQ(state(1), ModelState::kLoaded);
  const auto again = ask("a");
  EXPECT_FALSE(again->result);
  host_.finish_all();
  EXPECT_FALSE(c->result);
  EXPECT_TRUE(host_.loaded.contains(0));
  a->lease = {};
  host_.finish_all();
  EXPECT_TRUE(c->result && *c->result);
  EXPECT_FALSE(again->result);  // Its turn comes after.
  b->lease = {};
  after(10);
  host_.finish_all();
  ASSERT_TRUE(again->result && *again->result);
  EXPECT_EQ(host_.loaded, (std::set<size_t>{0, 2}));
}

TEST_F(ModelRegistryTest, AModelGoesWhenNothingOfItRunsAnyMore) {
  make_three();
  use("a");
  use("b");
  holds_ = {0, 1};
  after(10);
  const auto c = ask("c");
  host_.finish_all();
  EXPECT_EQ(state(0), ModelState::kDraining);
  EXPECT_EQ(host_.loaded.size(), 2u);
  holds_.clear();
  registry_->poll();
  host_.finish_all();
  EXPECT_TRUE(c->result && *c->result);
}

TEST_F(ModelRegistryTest, WhatCannotFitIsRefusedAtOnceWithItsNumbers) {
  make({{.id = "a", .pinned = true}, {.id = "b"}});
  host_.need[1] = 11;
  use("a");
  const auto b = ask("b");
  host_.finish_all();
  ASSERT_TRUE(b->result && !*b->result);
  EXPECT_EQ(b->result->error().code, ErrorCode::kInvalid);
  EXPECT_EQ(b->result->error().kind, "model_too_large");
  EXPECT_NE(b->result->error().message.find(" are pinned"), std::string::npos)
      << b->result->error().message;
  EXPECT_EQ(state(1), ModelState::kUnloaded);
  EXPECT_FALSE(registry_->status(1).failure.empty());
}

TEST_F(ModelRegistryTest, APinnedModelStaysAndALoadMayPinOne) {
  make({{.id = "a"}, {.id = "b"}, {.id = "c"}});
  registry_->load("a", {.pin = true}, [](const Result<void>& done) { EXPECT_TRUE(done); });
  host_.finish_all();
  use("b");
  after(1000);
  use("c");
  EXPECT_EQ(host_.loaded, (std::set<size_t>{0, 2}));
  registry_->shed();
  host_.finish_all();
  EXPECT_EQ(host_.loaded, (std::set<size_t>{0}));
}

TEST_F(ModelRegistryTest, IdleModelsGoAfterTheirTime) {
  make({{.id = "a", .idle_unload = 30}, {.id = "b"}});
  const auto a = ask("a");
  host_.finish_all();
  use("b");
  after(100);
  EXPECT_EQ(state(0), ModelState::kLoaded);  // In use.
  a->lease = {};
  EXPECT_GT(registry_->status(0).expires_at, 0);
  after(29);
  EXPECT_EQ(state(0), ModelState::kLoaded);
  after(1);
  host_.finish_all();
  EXPECT_EQ(state(0), ModelState::kUnloaded);
  EXPECT_EQ(state(1), ModelState::kLoaded);
}

TEST_F(ModelRegistryTest, KeepAliveCountsInPlaceOfTheTimeFromTheStart) {
  make({{.id = "a", .idle_unload = 30}});
  const auto a = ask("a");
  host_.finish_all();
  registry_->keep_alive(0, -1);
  a->lease = {};
  after(1000);
  EXPECT_EQ(state(0), ModelState::kLoaded);
  EXPECT_EQ(registry_->status(0).expires_at, 0);
  const auto again = ask("a");
  registry_->keep_alive(0, 0);
  EXPECT_EQ(state(0), ModelState::kLoaded);
  again->lease = {};  // The last one.
  host_.finish_all();
  EXPECT_EQ(state(0), ModelState::kUnloaded);
}

TEST_F(ModelRegistryTest, ALoadThatFailsIsToldToAllWhoWaitAndMayBeTriedAgain) {
  make_three();
  host_.broken = {0};
  const auto one = ask("a"), two = ask("a");
  host_.finish_all();
  for (const auto& asked : {one, two}) {
    ASSERT_TRUE(asked->result && !*asked->result);
    EXPECT_EQ(asked->result->error().code, ErrorCode::kIo);  // 500: not the client's fault.
    EXPECT_EQ(asked->result->error().message, "The model 'a' could not be loaded: no such file");
  }
  EXPECT_EQ(registry_->status(0).failure, "no such file");
  host_.broken.clear();
  use("a");
  EXPECT_EQ(registry_->status(0).failure, "");
}

TEST_F(ModelRegistryTest, WhoLeavesIsForgottenAndWhoWaitsTooLongIsToldSo) {
  make({{.id = "a", .pinned = true}, {.id = "b"}, {.id = "c"}});
  use("a");
  const auto b = ask("b");
  host_.finish_all();
  const auto leaves = ask("c");
  host_.finish_all();
  registry_->leave(leaves->waiter);
  EXPECT_EQ(state(2), ModelState::kUnloaded);
  const auto waits = ask("c");
  host_.finish_all();
  after(299);
  EXPECT_FALSE(waits->result);  // B drains, and its request takes its time.
  after(1);
  ASSERT_TRUE(waits->result && !*waits->result);
  EXPECT_EQ(waits->result->error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(state(2), ModelState::kUnloaded);
  EXPECT_FALSE(leaves->result);
}

TEST_F(ModelRegistryTest, SoManyModelsWaitAndNoMore) {
  make({{.id = "a"}, {.id = "b"}, {.id = "c"}});
  const auto a = ask("a"), b = ask("b"), c = ask("c");
  ASSERT_TRUE(c->result && !*c->result);
  EXPECT_EQ(c->result->error().code, ErrorCode::kUnavailable);
  host_.finish_all();
  EXPECT_TRUE(*a->result && *b->result);
}

TEST_F(ModelRegistryTest, WithoutAutoloadARequestLoadsNothing) {
  make_three();
  const auto a = ask("a", /*autoload=*/false);
  ASSERT_TRUE(a->result && !*a->result);
  EXPECT_EQ(a->result->error().kind, "model_not_loaded");
  EXPECT_TRUE(host_.calls.empty());
  registry_->load("a", {}, [](const Result<void>& done) { EXPECT_TRUE(done); });
  const auto comes = ask("a", /*autoload=*/false);  // Somebody has asked for it.
  host_.finish_all();
  EXPECT_TRUE(comes->result && *comes->result);
}

TEST_F(ModelRegistryTest, UnloadEndsLoadsAndIsRefusedOfWhatIsUsed) {
  make_three();
  std::vector<std::string> told;
  const auto tell = [&](const Result<void>& done) {
    told.push_back(done ? "done" : done.error().kind);
  };
  const auto a = ask("a");
  const auto b = ask("b");
  registry_->unload("b", false, tell);  // It waits only.
  registry_->unload("a", false, tell);  // It is being opened.
  host_.finish_all();
  EXPECT_EQ(told, (std::vector<std::string>{"done", "done"}));
  EXPECT_FALSE(*a->result);
  EXPECT_FALSE(*b->result);
  EXPECT_TRUE(host_.loaded.empty());
  told.clear();
  const auto used = ask("a");
  host_.finish_all();
  registry_->unload("a", false, tell);
  EXPECT_EQ(told, (std::vector<std::string>{"model_in_use"}));
  registry_->unload("a", true, tell);
  host_.finish_all();
  EXPECT_EQ(told.size(), 1u);
  used->lease = {};
  host_.finish_all();
  EXPECT_EQ(told, (std::vector<std::string>{"model_in_use", "done"}));
  EXPECT_EQ(state(0), ModelState::kUnloaded);
}

TEST_F(ModelRegistryTest, ListenersHearOfEachState) {
  make_three();
  std::vector<std::string> heard;
  const uint64_t listener = registry_->listen([&](ModelEvent event, const ModelStatus& status) {
    EXPECT_EQ(event, ModelEvent::kStatus);
    heard.push_back(status.id + " " + std::string(name_of(status.state)) +
                    (status.progress >= 0 ? " " + std::to_string(status.progress) : ""));
  });
  use("a");
  registry_->unload("a", false, [](const auto&) {});
  host_.finish_all();
  EXPECT_EQ(heard,
            (std::vector<std::string>{"a queued", "a loading", "a queued", "a loading",
                                      "a loading 50", "a loaded", "a draining", "a unloaded"}));
  registry_->forget(listener);
  use("a");
  EXPECT_EQ(heard.size(), 8u);
}

TEST_F(ModelRegistryTest, WhatComesIsFoundAndWhatGoesIsFoundNoMore) {
  make_three();
  const auto used = ask("b");
  host_.finish_all();
  use("a");
  std::vector<std::string> heard;
  registry_->listen([&](ModelEvent event, const ModelStatus& status) {
    if (event == ModelEvent::kRemoved) heard.push_back("removed " + status.id);
    if (event == ModelEvent::kReread) heard.push_back("reread");
  });
  int reread = 0;
  const auto count = [&](const Result<void>& done) { reread += done ? 1 : 100; };
  registry_->reread(count);
  registry_->reread(count);  // What it asks for may have come since the host has begun to look.
  ASSERT_EQ(host_.looks.size(), 1u);
  host_.looks[0](std::vector<KnownModel>{{.id = "a", .gone = true},
                                         {.id = "b", .gone = true},
                                         {.id = "c", .aliases = {"sea"}},
                                         {.id = "d"}});
  EXPECT_EQ(reread, 1);
  ASSERT_EQ(host_.looks.size(), 2u);
  host_.looks[1](fail(ErrorCode::kIo, "no such folder"));
  EXPECT_EQ(reread, 101);
  registry_->check();
  EXPECT_EQ(heard, (std::vector<std::string>{"removed a", "removed b", "reread"}));
  EXPECT_EQ(added_, 1);
  EXPECT_EQ(*registry_->find("d"), 3u);
  EXPECT_EQ(*registry_->find("sea"), 2u);
  EXPECT_EQ(*registry_->find(""), 2u);
  EXPECT_FALSE(registry_->find("a"));
  EXPECT_FALSE(registry_->find("b"));
  ASSERT_EQ(registry_->list().size(), 2u);
  EXPECT_EQ(registry_->list()[1].number, 3u);
  // What nobody uses has gone; what is used goes when it is not.
  host_.finish_all();
  EXPECT_EQ(state(0), ModelState::kUnloaded);
  EXPECT_EQ(state(1), ModelState::kDraining);
  used->lease = {};
  host_.finish_all();
  EXPECT_EQ(state(1), ModelState::kUnloaded);
  use("d");
  // And back again, under its number.
  registry_->reread(count);
  host_.looks.back()(
      std::vector<KnownModel>{{.id = "a"}, {.id = "b", .gone = true}, {.id = "c"}, {.id = "d"}});
  EXPECT_EQ(*registry_->find("a"), 0u);
  use("a");
}

TEST_F(ModelRegistryTest, AModelThatGoesWhileItIsLoadedIsNotServed) {
  make_three();
  const auto a = ask("a");
  const auto b = ask("b");  // It waits.
  ASSERT_TRUE(host_.busy());
  registry_->reread([](const auto&) {});
  host_.looks[0](
      std::vector<KnownModel>{{.id = "a", .gone = true}, {.id = "b", .gone = true}, {.id = "c"}});
  for (const auto& asked : {a, b}) {
    ASSERT_TRUE(asked->result && !*asked->result);
    EXPECT_EQ(asked->result->error().kind, "model_not_found");
  }
  host_.finish_all();
  EXPECT_TRUE(host_.loaded.empty());
  registry_->check();
}

TEST_F(ModelRegistryTest, ANameOfAnAdapterIsItsModels) {
  make({{.id = "a"}, {.id = "b", .adapters = {"sql"}}});
  EXPECT_EQ(*registry_->find("sql"), 1u);
}

// Requests of all kinds, in any order, with a check after each.
TEST_F(ModelRegistryTest, WhateverComesInWhateverOrderTheInvariantsHold) {
  for (uint32_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 rng(seed);
    host_ = FakeHost();
    served_.clear();
    for (size_t i = 0; i < 4; ++i) host_.need[i] = 4 + static_cast<int64_t>(rng() % 8);
    make({{.id = "a"},
          {.id = "b", .idle_unload = 7},
          {.id = "c"},
          {.id = "d", .pinned = rng() % 4 == 0}});
    std::vector<std::shared_ptr<Asked>> open;
    int answered = 0, leased = 0;
    const auto name = [&] { return std::string(1, static_cast<char>('a' + rng() % 4)); };
    for (int step = 0; step < 200; ++step) {
      switch (rng() % 8) {
        case 0:
        case 1:
          open.push_back(ask(name()));
          break;
        case 2:
          if (!open.empty()) {
            const auto& one = open[rng() % open.size()];
            registry_->leave(one->waiter);
            one->lease = {};
          }
          break;
        case 3:
          registry_->unload(name(), rng() % 2 == 0, [](const auto&) {});
          break;
        case 4:
          registry_->load(name(), {}, [](const auto&) {});
          break;
        case 5:
          after(static_cast<int64_t>(rng() % 20));
          break;
        default:
          host_.finish();
      }
      registry_->check();
      int64_t bytes = 0;
      for (const size_t model : host_.loaded) bytes += host_.need[model];
      ASSERT_LE(bytes, host_.room_bytes);
      for (const auto& one : open)
        if (one->lease) {
          ASSERT_TRUE(served_.contains(one->lease.model()));
        }
    }
    // All that still wait get their model in the end, but for one that is too large.
    for (int round = 0; round < 50; ++round) {
      host_.finish_all();
      for (const auto& one : open) one->lease = {};
      after(11);
    }
    for (const auto& one : open) {
      answered += one->result.has_value();
      leased += one->result && *one->result;
    }
    EXPECT_GT(answered, 0);
    EXPECT_GT(leased, 0);
    EXPECT_FALSE(host_.busy());
    open.clear();
  }
}

}  // namespace
}  // namespace weir::api
