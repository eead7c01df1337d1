// Adapters by name, number and scale: which one a request gets, and what is refused.
#include "api/serving/adapters.h"

#include <gtest/gtest.h>

#include <memory>

namespace weir::api {
namespace {

// Nothing is computed with them here: addresses will do.
AdapterWeights weights(const int& at, int64_t bytes = 10, bool scales = true) {
  return {.weights = std::shared_ptr<const model::Adapter>(
              std::shared_ptr<void>(), reinterpret_cast<const model::Adapter*>(&at)),
          .bytes = bytes,
          .scales = scales};
}

constexpr Adapters::Limits kLimits = {.count_max = 3, .bytes_max = 100, .in_step_max = 2};

class AdaptersTest : public testing::Test {
 protected:
  AdaptersTest() {
    EXPECT_TRUE(adapters.add("a", "/a", weights(first), 1));
    EXPECT_TRUE(adapters.add("b", "/b", weights(second, 10, /*scales=*/false), 2));
  }
  std::string error(const Result<ChosenAdapter>& chosen) const {
    return chosen ? "" : chosen.error().message;
  }

  const int first = 0, second = 0;
  Adapters adapters{kLimits, {}};
};

TEST_F(AdaptersTest, AreChosenByTheModelsName) {
  EXPECT_EQ(adapters.choose("a", {})->weights, adapters.find("a")->loaded.weights);
  EXPECT_EQ(adapters.choose("b", {})->name, "b");
  EXPECT_EQ(adapters.choose("", {})->weights, nullptr);
  EXPECT_EQ(adapters.choose("model", {})->weights, nullptr);
  EXPECT_FALSE(adapters.find("c"));
}

TEST_F(AdaptersTest, AreChosenByNumberAndScale) {
  using Scales = std::vector<AdapterScale>;
  EXPECT_EQ(adapters.choose("", Scales{{0, 0.5}})->name, "a");
  EXPECT_EQ(adapters.choose("", Scales{{0, 0.5}})->scale, 0.5f);
  EXPECT_EQ(adapters.choose("", Scales{{0, 0}, {1, 1}})->name, "b");
  EXPECT_EQ(adapters.choose("", Scales{})->weights, nullptr);
  EXPECT_EQ(adapters.choose("a", Scales{{0, 2}})->scale, 2.0f);
  const auto refused = [&](const char* model, const Scales& scales, const char* part) {
    const std::string message = error(adapters.choose(model, scales));
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  refused("", {{5, 1}}, "found 5");
  refused("", {{0, 1}, {1, 1}}, "found several");
  refused("", {{0, 101}}, "from -100 to 100");
  refused("", {{1, 0.5}}, "0 or 1");
  refused("b", {{0, 1}}, "found another");
}

TEST_F(AdaptersTest, HaveAScaleForRequestsThatAskForNone) {
  ASSERT_TRUE(adapters.set_defaults({{0, 0.25}, {1, 0}}));
  EXPECT_EQ(adapters.default_scale(0), 0.25);
  EXPECT_EQ(adapters.default_scale(1), 0);
  EXPECT_EQ(adapters.choose("", {})->scale, 0.25f);
  EXPECT_EQ(adapters.choose("b", {})->name, "b");
  EXPECT_FALSE(adapters.set_defaults({{0, 1}, {1, 1}}));
  EXPECT_EQ(adapters.default_scale(0), 0.25) << "an error changes nothing";
  ASSERT_TRUE(adapters.remove("a"));
  EXPECT_EQ(adapters.choose("", {})->weights, nullptr);
}

TEST_F(AdaptersTest, ShareNothingThatIsRememberedOfPrompts) {
  const uint64_t key = adapters.choose("a", {})->key;
  EXPECT_NE(key, 0u);
  EXPECT_NE(key, adapters.choose("b", {})->key);
  EXPECT_NE(key, adapters.choose("", std::vector<AdapterScale>{{0, 0.5}})->key);
  EXPECT_EQ(adapters.choose("", {})->key, 0u);
  ASSERT_TRUE(adapters.remove("a"));
  ASSERT_TRUE(adapters.add("a", "/a", weights(first), 3));
  EXPECT_NE(key, adapters.choose("a", {})->key) << "the same files, loaded again";
}

TEST_F(AdaptersTest, AreAsManyAndAsLargeAsThereIsRoomFor) {
  EXPECT_EQ(adapters.add("a", "/x", weights(first), 1).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(adapters.add("", "/x", weights(first), 1).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(adapters.add("c", "/x", weights(first, 81), 1).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(adapters.load("c", "/x", 1).error().code, ErrorCode::kForbidden) << "without a loader";
  ASSERT_TRUE(adapters.add("c", "/c", weights(first, 80), 1));
  EXPECT_EQ(adapters.add("d", "/d", weights(first, 0), 1).error().code, ErrorCode::kOverloaded);
  EXPECT_EQ(adapters.remove("x").error().code, ErrorCode::kNotFound);
  EXPECT_EQ(adapters.list().size(), 3u);
}

TEST(Adapters, AreLoadedWithinTheMemoryThatIsLeft) {
  const int at = 0;
  int64_t offered = 0;
  Adapters adapters(kLimits, [&](const std::string& path, int64_t bytes_max) {
    offered = bytes_max;
    return path == "bad" ? Result<AdapterWeights>(fail(ErrorCode::kInvalid, "bad"))
                         : Result<AdapterWeights>(weights(at, 60));
  });
  ASSERT_TRUE(adapters.load("a", "good", 1));
  EXPECT_EQ(offered, 100);
  EXPECT_EQ(adapters.load("b", "bad", 1).error().message, "bad");
  EXPECT_EQ(offered, 40);
  EXPECT_FALSE(adapters.find("b"));
}

}  // namespace
}  // namespace weir::api
