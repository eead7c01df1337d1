// Reading the kernel's pressure files, and what is made of them.
#include "base/memory_pressure.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weir {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

class MemoryPressure : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(root_ + "/group"); }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& name, const std::string& text) {
    std::ofstream(root_ + "/" + name) << text;
  }
  double read() { return memory_pressure(root_ + "/machine", {root_ + "/membership", "", root_}); }
  const std::string root_ = testing::TempDir() + "memory_pressure_" + std::to_string(::getpid());
};

TEST_F(MemoryPressure, IsThatOfTheGroupElseOfTheMachine) {
  EXPECT_EQ(read(), -1);
  write("machine", "some avg10=3.25 avg60=1.00 avg300=0.20 total=5\nfull avg10=1.00 avg60=0.00\n");
  EXPECT_EQ(read(), 3.25);
  write("membership", "4:memory:/elsewhere\n0::/group\n");
  EXPECT_EQ(read(), 3.25);
  write("group/memory.pressure", "some avg10=41.50 avg60=1.00 avg300=0.20 total=5\n");
  EXPECT_EQ(read(), 41.5);
}

TEST_F(MemoryPressure, IsUnknownWhereTheFileSaysSomethingElse) {
  for (const char* text :
       {"", "some", "some avg10=", "some avg10=x", "full avg10=3 avg60=1", "17"}) {
    write("machine", text);
    EXPECT_EQ(read(), -1) << text;
  }
}

TEST(PressurePolicy, GivesAStepAtATimeWhileThereIsPressureAndTakesItBackWhenCalm) {
  PressurePolicy policy;
  const steady_clock::time_point begin = steady_clock::now();
  const auto after = [&](int s, double pressure) {
    return policy.observe(pressure, begin + seconds(s)) != PressureAdvice::kNothing;
  };
  EXPECT_FALSE(after(0, 0));
  EXPECT_FALSE(after(1, 10));
  EXPECT_TRUE(after(2, 10.1));
  EXPECT_EQ(policy.share(), 95);
  EXPECT_FALSE(after(3, 50)) << "the average does not know of the last step yet";
  EXPECT_TRUE(after(12, 50));
  EXPECT_EQ(policy.share(), 90);
  EXPECT_FALSE(after(13, -1));
  EXPECT_FALSE(after(60, 0));
  EXPECT_TRUE(after(65, 11)) << "pressure again";
  EXPECT_EQ(policy.share(), 85);
  EXPECT_FALSE(after(124, 0));
  EXPECT_TRUE(after(125, 0));
  EXPECT_FALSE(after(126, 0));
  EXPECT_TRUE(after(135, 0));
  EXPECT_TRUE(after(145, 0));
  EXPECT_EQ(policy.share(), 100);
  EXPECT_FALSE(after(200, 0));
}

TEST(PressurePolicy, KeepsHalfOfTheShareButAdvisesAsLongAsThePressureLasts) {
  PressurePolicy policy;
  const steady_clock::time_point begin = steady_clock::now();
  int times = 0;
  for (int s = 0; s < 1000; ++s)
    times += policy.observe(99, begin + seconds(s)) == PressureAdvice::kGiveBack ? 1 : 0;
  EXPECT_EQ(times, 100);
  EXPECT_EQ(policy.share(), 50);
}

}  // namespace
}  // namespace weir
