#include "api/access/refusal_turns.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "api/recorded_responder.h"

namespace weir::api {
namespace {

class RefusalTurnsTest : public ::testing::Test {
 protected:
  std::shared_ptr<RecordedResponder> refuse(uint64_t caller) {
    auto responder = std::make_shared<RecordedResponder>();
    turns_.respond(caller, responder, 429, {{"x-request-id", "req_1"}}, "full");
    return responder;
  }
  std::vector<std::shared_ptr<RecordedResponder>> refuse_many(uint64_t caller, int32_t count) {
    std::vector<std::shared_ptr<RecordedResponder>> responders;
    for (int32_t i = 0; i < count; ++i) responders.push_back(refuse(caller));
    return responders;
  }
  static int32_t answered(const std::vector<std::shared_ptr<RecordedResponder>>& responders) {
    int32_t count = 0;
    for (const auto& responder : responders) {
      EXPECT_LE(responder->answers, 1);
      count += responder->answers;
    }
    return count;
  }

  Counter held_;
  RefusalTurns turns_{held_};
};

constexpr int32_t kAtOnce = RefusalTurns::kAtOnce;

TEST_F(RefusalTurnsTest, GiveEachCallerSomeATick) {
  auto many = refuse_many(1, 3 * kAtOnce);
  EXPECT_EQ(answered(many), kAtOnce);
  EXPECT_EQ(many.front()->status, 429);
  EXPECT_EQ(many.front()->values("x-request-id"), std::vector<std::string>{"req_1"});
  EXPECT_EQ(many.front()->body, "full");
  EXPECT_EQ(refuse(2)->answers, 1) << "another caller has turns of its own";
  EXPECT_EQ(held_.value(), static_cast<uint64_t>(2 * kAtOnce));
  turns_.tick();
  EXPECT_EQ(answered(many), 2 * kAtOnce);
  EXPECT_EQ(many[static_cast<size_t>(2 * kAtOnce) - 1]->answers, 1) << "in order";
  EXPECT_EQ(refuse(1)->answers, 0) << "this tick's are given";
  turns_.tick();
  EXPECT_EQ(answered(many), 3 * kAtOnce);
  turns_.tick();
  EXPECT_EQ(turns_.held(), 0u);
  EXPECT_EQ(refuse(1)->answers, 1);
}

TEST_F(RefusalTurnsTest, KeepNobodyForLong) {
  const auto many = refuse_many(1, 20 * kAtOnce);
  for (int32_t tick = 0; tick < RefusalTurns::kTicksMax; ++tick) turns_.tick();
  EXPECT_EQ(answered(many), 20 * kAtOnce);
  EXPECT_EQ(turns_.held(), 0u);
}

TEST_F(RefusalTurnsTest, HoldABoundedNumber) {
  const auto many = refuse_many(1, kAtOnce + static_cast<int32_t>(RefusalTurns::kHeldMax) + 5);
  EXPECT_EQ(turns_.held(), RefusalTurns::kHeldMax);
  EXPECT_EQ(answered(many), kAtOnce + 5);
  EXPECT_EQ(many[static_cast<size_t>(kAtOnce) + 4]->answers, 1) << "the longest wait ends";
}

TEST_F(RefusalTurnsTest, ForgetClientsThatHaveLeft) {
  const auto many = refuse_many(1, 2 * kAtOnce);
  for (const auto& responder : many) responder->gone = true;
  turns_.tick();
  EXPECT_EQ(turns_.held(), 0u);
  EXPECT_EQ(answered(many), kAtOnce);
  EXPECT_EQ(refuse(1)->answers, 1) << "they have no turn";
}

TEST_F(RefusalTurnsTest, EndWithTheServer) {
  const auto many = refuse_many(1, 3 * kAtOnce);
  turns_.end();
  EXPECT_EQ(answered(many), 3 * kAtOnce);
  EXPECT_EQ(answered(refuse_many(1, 3 * kAtOnce)), 3 * kAtOnce);
}

}  // namespace
}  // namespace weir::api
