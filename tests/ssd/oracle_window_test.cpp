// The oracle's window: Belady's policy on what was sampled, and what the sample says of the whole.
#include "ssd/oracle_window.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>

#include "ssd/replay.h"

namespace weir::ssd {
namespace {

// One layer, one demand a visit.
void record(OracleWindow& window, std::span<const int32_t> experts, bool counted = true) {
  for (const int32_t expert : experts) {
    window.begin_visit();
    window.record({.layer = 0, .expert = expert}, false, counted);
  }
}

OracleWindow small_window() { return OracleWindow(1, 8, 1, std::array{0}); }

TEST(OracleWindow, KeepsWhatIsNeededSoonest) {
  OracleWindow window = small_window();
  EXPECT_EQ(window.replay(std::array{2}).demands, 0);
  // In turns, which LRU never finds in two slots. The last is not seen yet.
  for (int i = 0; i < 40; ++i) record(window, std::array{0, 1, 2});
  record(window, std::array{0});
  const OracleWindow::Rates rates = window.replay(std::array{2});
  EXPECT_EQ(rates.demands, 90);
  EXPECT_EQ(rates.found, 0);
  EXPECT_EQ(rates.oracle, 60) << "two are kept, one passes by";
  EXPECT_EQ(window.replay(std::array{3}).oracle, 90);
  EXPECT_EQ(window.replay(std::array{0}).oracle, 0);
  EXPECT_EQ(window.replay(std::array{0}).ratio(), 0);
}

TEST(OracleWindow, CountsNoDemandOfAPromptButKeepsWhatItBrings) {
  OracleWindow window = small_window();
  record(window, std::array{7, 7, 7, 7});
  for (int i = 0; i < 30; ++i) {
    record(window, std::array{i % 6}, false);
    record(window, std::array{i % 6});
  }
  record(window, std::array{0});
  const OracleWindow::Rates rates = window.replay(std::array{1});
  EXPECT_EQ(rates.demands, 24);
  EXPECT_EQ(rates.oracle, 24) << "brought by the prompt before";
}

TEST(OracleWindow, ForgetsWhatIsOld) {
  OracleWindow window = small_window();
  for (uint32_t i = 0; i < OracleWindow::kDemandsMax; ++i) record(window, std::array{1});
  for (uint32_t i = 0; i < OracleWindow::kDemandsMax / 2; ++i) record(window, std::array{2, 3});
  record(window, std::array{2});
  const OracleWindow::Rates rates = window.replay(std::array{1});
  EXPECT_EQ(rates.demands, OracleWindow::kDemandsMax * 3 / 4);
  EXPECT_EQ(rates.oracle, rates.demands / 2);
}

TEST(OracleWindow, ClassesHaveTheirOwnSlots) {
  OracleWindow window(2, 4, 1, std::array{0, 1});
  EXPECT_EQ(window.share(), 1);
  for (int i = 0; i < 101; ++i)
    for (const int32_t layer : {0, 1}) {
      window.begin_visit();
      window.record({.layer = layer, .expert = i % 2}, true, true);
    }
  const OracleWindow::Rates rates = window.replay(std::array{2, 0});
  EXPECT_EQ(rates.oracle * 2, rates.demands + 1);
  EXPECT_EQ(rates.found, rates.demands);
  EXPECT_NEAR(rates.ratio(), 2, 0.02);
}

// Six of 48 layers, 400 tokens: within 0.02 of the ratio that knows all of it.
TEST(OracleWindow, ASampleSaysWhatTheWholeDoes) {
  const measure::RoutingParams params;
  const measure::RoutingModel model(params, 1);
  const std::vector<Visit> visits = visits_of(modelled_trace(model, 21, 64, 64, 400));
  const std::vector<int32_t> classes(static_cast<size_t>(params.layers), 0);
  for (const double residency : {0.1, 0.2, 0.4}) {
    const int32_t slots = static_cast<int32_t>(residency * params.layers * params.experts);
    OracleWindow window(params.layers, params.experts, params.top_k, classes);
    EXPECT_EQ(window.share(), 1.0 / 8);
    const double ours =
        EwmaReplay(params.layers, params.experts, slots).run(visits, &window).rate();
    const double belady = RankedReplay(slots, true).run(visits).rate();
    EXPECT_NEAR(window.replay(std::span(&slots, 1)).ratio(), ours / belady, 0.02) << residency;
  }
}

// All layers of a small model: what is left is how the window begins.
TEST(OracleWindow, ASmallModelIsReplayedWhole) {
  measure::RoutingParams params;
  params.layers = 6;
  const measure::RoutingModel model(params, 3);
  const std::vector<Visit> visits = visits_of(modelled_trace(model, 5, 0, 1, 600));
  const std::vector<int32_t> classes(static_cast<size_t>(params.layers), 0);
  for (const int32_t slots : {60, 150, 300}) {
    OracleWindow window(params.layers, params.experts, params.top_k, classes);
    EXPECT_EQ(window.share(), 1);
    const double ours =
        EwmaReplay(params.layers, params.experts, slots).run(visits, &window).rate();
    const OracleWindow::Rates rates = window.replay(std::span(&slots, 1));
    EXPECT_NEAR(rates.ratio(), ours / RankedReplay(slots, true).run(visits).rate(), 0.015) << slots;
    EXPECT_LE(rates.found, rates.oracle) << slots;
  }
}

TEST(OracleWindow, MayBeReadWhileItIsWritten) {
  OracleWindow window = small_window();
  std::atomic<bool> stop{false};
  std::thread leader([&] {
    for (int i = 0; !stop.load(std::memory_order_relaxed); ++i) {
      window.begin_visit();
      window.record({.layer = 0, .expert = i % 8}, true, true);
    }
  });
  for (int seen = 0; seen < 50;) {
    const OracleWindow::Rates rates = window.replay(std::array{4});
    if (rates.demands > 0) ++seen;
    EXPECT_EQ(rates.found, rates.demands);
    // In turns of eight: four are kept, four pass by.
    EXPECT_NEAR(static_cast<double>(rates.oracle), static_cast<double>(rates.demands) / 2, 8);
  }
  stop.store(true, std::memory_order_relaxed);
  leader.join();
}

}  // namespace
}  // namespace weir::ssd
