// Pulls with a desk that does what the test says.
#include "api/models/model_pulls.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

namespace weir::api {
namespace {

class Desk final : public HubDesk {
 public:
  std::function<void()> pull(const std::string& name, Progress progress, Done done) override {
    if (refuses) {
      done(fail(ErrorCode::kOverloaded, "too many"));
      return [] {};
    }
    open[name] = {std::move(progress), std::move(done)};
    return [this, name] { open.erase(name); };
  }
  void remove(const std::string&, Done done) override { done({}); }

  struct Open {
    Progress progress;
    Done done;
  };
  std::map<std::string, Open> open;
  bool refuses = false;
};

struct ModelPullsTest : testing::Test {
  std::string heard;
  Desk desk;
  ModelPulls pulls{&desk, [this](const PullStatus& status) {
                     heard += status.name + " " + std::to_string(static_cast<int>(status.state)) +
                              " " + std::to_string(status.bytes_done) + "/" +
                              std::to_string(status.bytes) + status.failure + "\n";
                   }};
};

TEST_F(ModelPullsTest, TellOfTheirProgressAndTheirEnd) {
  ASSERT_TRUE(pulls.begin("org/a"));
  ASSERT_TRUE(pulls.begin("org/a"));  // It runs already.
  ASSERT_TRUE(pulls.begin("org/b"));
  desk.open["org/a"].progress({.bytes = 10, .bytes_done = 4});
  EXPECT_EQ(pulls.list().size(), 2u);
  EXPECT_EQ(pulls.list()[0].bytes_done, 4);
  desk.open["org/a"].done({});
  desk.open["org/b"].done(fail(ErrorCode::kIo, "disk full"));
  EXPECT_TRUE(pulls.list().empty());
  EXPECT_EQ(heard, "org/a 0 0/0\norg/b 0 0/0\norg/a 0 4/10\norg/a 1 4/10\norg/b 2 0/0disk full\n");
}

TEST_F(ModelPullsTest, WhatIsRefusedHasNotBegun) {
  desk.refuses = true;
  const Result<void> begun = pulls.begin("org/a");
  ASSERT_FALSE(begun);
  EXPECT_EQ(begun.error().code, ErrorCode::kOverloaded);
  EXPECT_TRUE(pulls.list().empty());
  EXPECT_EQ(heard, "");
  ModelPulls without(nullptr, [](const PullStatus&) {});
  EXPECT_EQ(without.begin("org/a").error().code, ErrorCode::kUnsupported);
}

TEST_F(ModelPullsTest, EndWhenThatIsOrdered) {
  ASSERT_TRUE(pulls.begin("org/a"));
  EXPECT_FALSE(pulls.stop("org/b"));
  EXPECT_TRUE(pulls.stop("org/a"));
  EXPECT_TRUE(desk.open.empty());
  EXPECT_EQ(heard, "org/a 0 0/0\norg/a 2 0/0The pull was ended.\n");
  ASSERT_TRUE(pulls.begin("org/b"));
  heard.clear();
  pulls.stop_all();
  EXPECT_TRUE(desk.open.empty());
  EXPECT_EQ(heard, "");
}

}  // namespace
}  // namespace weir::api
