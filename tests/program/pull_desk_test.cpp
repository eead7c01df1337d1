// What a server is told of pulls and deletions that no hub is asked for. Those that are fetched:
// tests/e2e/ollama_test.py, against a hub on loopback.
#include "program/pull_desk.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <vector>

namespace weir {
namespace {

// The caller's thread: what is posted runs when it is asked to.
class Posts {
 public:
  std::function<void(std::function<void()>)> post() {
    return [this](std::function<void()> call) {
      const std::lock_guard lock(mutex_);
      calls_.push_back(std::move(call));
      bell_.notify_all();
    };
  }
  // Waits for the next one, and runs it.
  void run() {
    std::function<void()> call;
    {
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(
          bell_.wait_for(lock, std::chrono::seconds(10), [this] { return !calls_.empty(); }));
      call = std::move(calls_.front());
      calls_.erase(calls_.begin());
    }
    call();
  }

 private:
  std::mutex mutex_;
  std::condition_variable bell_;
  std::vector<std::function<void()>> calls_;
};

std::function<std::vector<std::string>()> serves(std::vector<std::string> paths) {
  return [paths = std::move(paths)] { return paths; };
}

class PullDeskTest : public testing::Test {
 protected:
  PullDeskTest() {
    options.offline = true;  // Every pull ends with an error, without a network.
    ::setenv("HF_HUB_CACHE", folder.c_str(), 1);
  }
  ~PullDeskTest() override {
    ::unsetenv("HF_HUB_CACHE");
    std::filesystem::remove_all(folder);
  }
  api::HubDesk::Done note() {
    return [this](const Result<void>& result) { ended.push_back(result); };
  }

  Options options;
  Posts posts;
  std::vector<Result<void>> ended;
  const std::string folder =
      (std::filesystem::temp_directory_path() / ("weir_pull_desk_" + std::to_string(::getpid())))
          .string();
};

TEST_F(PullDeskTest, NamesThatAreNoneAreRefusedAtOnce) {
  PullDesk desk(options, serves({}), posts.post());
  desk.pull("llama3.2", {}, note());
  desk.pull("a/b/../c", {}, note());
  desk.remove("llama3.2", note());
  ASSERT_EQ(ended.size(), 3u);
  EXPECT_EQ(ended[0].error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ended[1].error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ended[2].error().code, ErrorCode::kNotFound);
}

TEST_F(PullDeskTest, AnErrorOfThePullEndsIt) {
  PullDesk desk(options, serves({}), posts.post());
  desk.pull("org/name", {}, note());
  EXPECT_TRUE(ended.empty());
  posts.run();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_FALSE(ended[0].has_value());
}

TEST_F(PullDeskTest, WhatIsEndedByItsCallerSaysNothing) {
  PullDesk desk(options, serves({}), posts.post());
  desk.pull("org/name", {}, note())();
  desk.pull("org/other", {}, note());
  while (ended.empty()) posts.run();
  EXPECT_EQ(ended.size(), 1u);
}

TEST_F(PullDeskTest, OnlySomeWait) {
  PullDesk desk(options, serves({}), posts.post());
  for (size_t i = 0; i < PullDesk::kOpenMax; ++i) desk.pull("org/name", {}, note());
  EXPECT_TRUE(ended.empty());
  desk.pull("org/name", {}, note());
  desk.remove("org/name", note());
  ASSERT_EQ(ended.size(), 2u);
  for (const Result<void>& each : ended) EXPECT_EQ(each.error().code, ErrorCode::kOverloaded);
}

TEST_F(PullDeskTest, WhatIsServedIsNotDeleted) {
  const std::string model = folder + "/models--org--name";
  std::filesystem::create_directories(model + "/blobs");
  PullDesk desk(options, serves({"", model + "/snapshots/x"}), posts.post());
  desk.remove("org/name", note());
  posts.run();
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended[0].error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(std::filesystem::exists(model));
  desk.remove("org/other", note());
  posts.run();
  EXPECT_EQ(ended[1].error().code, ErrorCode::kNotFound);
}

TEST_F(PullDeskTest, NothingIsToldWhenItHasGone) {
  {
    PullDesk desk(options, serves({}), posts.post());
    desk.pull("org/name", {}, note());
    desk.remove("org/name", note());
  }
  // Whatever was posted by then.
  posts.post()([] {});
  posts.run();
  EXPECT_TRUE(ended.empty());
}

}  // namespace
}  // namespace weir
