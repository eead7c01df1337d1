// The controller in simulated time: steps of known cost, drafts that are right by chance.
#include "sched/draft_controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace weir::sched {
namespace {

constexpr int32_t kDraftsMost = 7;

// T(rows) / T(1) of three machines: bound by memory up to four rows, by arithmetic from the second
// on (measured with a 135M model on one core with AVX-512, and on two with AMX), and where rows are
// computed sixteen at a time (eight cores with AMX).
struct Machine {
  std::string name;
  std::vector<std::pair<double, double>> points;

  double seconds(int32_t rows) const {
    const auto above =
        std::ranges::find_if(points, [&](auto& point) { return point.first >= rows; });
    if (above == points.begin()) return points.front().second;
    const auto last = above == points.end() ? above - 1 : above, first = last - 1;
    return first->second +
           (rows - first->first) * (last->second - first->second) / (last->first - first->first);
  }
};

const std::array<Machine, 3> kMachines = {
    {{"bound by memory",
      {{1, 1},
       {2, 1},
       {3, 1},
       {4, 1.1},
       {5, 1.2},
       {6, 1.3},
       {8, 1.5},
       {12, 2.1},
       {16, 3.2},
       {32, 5.4}}},
     {"bound by arithmetic", {{1, 1}, {2, 1.12}, {4, 1.38}, {8, 2.1}, {16, 3.5}, {32, 6.8}}},
     {"rows in tiles",
      {{1, 1},
       {2, 1.05},
       {4, 1.25},
       {8, 1.9},
       {12, 2.2},
       {16, 2.8},
       {17, 4.6},
       {32, 4.8},
       {33, 6.8},
       {48, 7.2},
       {49, 7.9},
       {64, 8.1},
       {96, 11},
       {128, 13},
       {192, 18},
       {256, 24}}}}};

// How likely a draft of a stream is right in a step.
using Chance = std::function<double(int32_t stream, int32_t step)>;

struct World {
  const Machine& machine;
  int32_t streams = 1;
  Chance chance;
  int32_t steps = 6000;
  int32_t answer = 300;  // Tokens.
  // Where its source computes: of a draft, and of keeping up with a step. Its drafts are seldom
  // right where it has kept up with less than eight tokens.
  double draft_seconds = 0, follow_seconds = 0;
  // The first steps follow a prompt, and take half as long again; then one in so many is disturbed,
  // and takes twice to three times as long. 0: none.
  int32_t slow_steps = 0, disturbed = 0;
  double noise = 0.03;      // Of each step's time.
  bool two_speeds = false;  // The machine is slower by 30 % for 700 steps of 1,400.
  // One step in so many begins some steps that all are slower by 30 %: of 1 to 30. 0: none does.
  int32_t bursts = 0;
  uint32_t seed = 20261124;
};

// How much longer a step without drafts takes soon after one with them, as measured of four rows on
// an AMD Zen 5.
class Settling {
 public:
  double operator()(bool plain) {
    constexpr std::array kAfterDrafts = {1.06, 1.04, 1.02};
    since_ = plain ? std::min(since_ + 1, kAfterDrafts.size() + 1) : 0;
    return since_ == 0 || since_ > kAfterDrafts.size() ? 1 : kAfterDrafts[since_ - 1];
  }

 private:
  size_t since_ = 4;  // Steps with drafts; at first there were none.
};

// How much longer a step takes for what else the machine does.
class Slowness {
 public:
  explicit Slowness(const World& world) : world_(world), random_(world.seed + 1) {}

  double operator()(int32_t step) {
    double factor = world_.two_speeds && step / 700 % 2 == 1 ? 1.3 : 1;
    if (step < world_.slow_steps) factor *= 1.5;
    const uint32_t drawn = random_();
    if (burst_ == 0 && one_in(world_.bursts, drawn))
      burst_ = static_cast<int32_t>(drawn / 1000 % 30 + 1);
    if (burst_ > 0) factor *= 1.3, --burst_;
    if (one_in(world_.disturbed, drawn)) factor *= 2 + static_cast<double>(drawn % 1000) / 1000;
    return factor;
  }

 private:
  static bool one_in(int32_t many, uint32_t drawn) {
    return many > 0 && drawn % static_cast<uint32_t>(many) == 0;
  }

  const World& world_;
  std::mt19937 random_;
  int32_t burst_ = 0;  // Steps of it that are to come.
};

// Tokens a second with `fixed` drafts of each stream; -1: the controller's.
double tokens_per_second(const World& world, int32_t fixed) {
  std::mt19937 random(world.seed);
  const auto uniform = [&] { return std::uniform_real_distribution<double>(0, 1)(random); };
  const auto noise = [&] { return std::normal_distribution<double>(1, world.noise)(random); };
  DraftController controller(world.streams, world.streams, 1);
  std::array<Draft, kDraftsMost> drafts{};
  for (Draft& draft : drafts) draft.sureness = 4;
  std::vector<DraftChoice> choices(static_cast<size_t>(world.streams));
  std::vector<int32_t> room(choices.size(), kDraftsMost), answered(choices.size());
  std::vector<int32_t> followed(choices.size());
  const bool computes = world.draft_seconds > 0;
  double seconds = 0, tokens = 0;
  Settling settling;
  Slowness slowness(world);
  for (int32_t step = 0; step < world.steps; ++step) {
    if (fixed < 0)
      controller.begin_step({.certain_rows = world.streams, .sequences = world.streams});
    for (size_t i = 0; i < choices.size(); ++i)
      choices[i] = {.sequence = static_cast<int32_t>(i), .drafts = drafts};
    double drafting = 0;
    if (fixed < 0 && computes) {
      controller.ask(0, choices, room);
      int32_t made = 0;
      for (DraftChoice& choice : choices) {
        choice.drafts = std::span(drafts).first(static_cast<size_t>(choice.kept));
        made += choice.kept;
      }
      drafting = made * world.draft_seconds;
      if (made > 0) controller.note_drafting(0, made, drafting);
    }
    if (fixed < 0) controller.choose(choices);
    int32_t rows = world.streams;
    for (DraftChoice& choice : choices) {
      if (fixed >= 0) choice.kept = fixed;
      rows += choice.kept;
    }
    if (fixed > 0) drafting = world.streams * fixed * world.draft_seconds;
    double taken = world.machine.seconds(rows) * std::max(noise(), 0.8);
    taken *= settling(rows == world.streams) * slowness(step);
    int32_t given = 0;
    for (size_t i = 0; i < choices.size(); ++i) {
      int32_t right = 0;
      const double chance =
          (computes && followed[i] < 8 ? 0.3 : 1) * world.chance(static_cast<int32_t>(i), step);
      while (right < choices[i].kept && uniform() < chance) ++right;
      if (fixed < 0) controller.note_taken(choices[i], right);
      given += 1 + right;
      answered[i] += 1 + right;
      if (answered[i] < world.answer) continue;  // Another request has its place.
      answered[i] = 0;
      if (followed[i] > 0) followed[i] += 30;  // Its prompt.
      if (fixed < 0) controller.begin(static_cast<int32_t>(i));
    }
    double following = 0;
    if (computes) {
      const bool follows = fixed > 0 || (fixed < 0 && controller.keep_up(0) != exec::KeepUp::kNot);
      if (follows) following = world.follow_seconds;
      if (follows && fixed < 0) controller.note_keeping_up(0, world.follow_seconds, /*pure=*/true);
      for (int32_t& known : followed) known = follows ? known + 1 : 0;
    }
    if (fixed < 0) controller.end_step(rows, given, taken, /*pure=*/true);
    seconds += drafting + taken + following;
    tokens += given;
  }
  return tokens / seconds;
}

// Sums over worlds of seeds 1 to `seeds`: without drafts, the controller's, and of the number that
// is best, which may be none.
struct Speeds {
  double off = 0, chosen = 0, best = 0;
};

Speeds speeds_of(World world, uint32_t seeds) {
  Speeds speeds;
  std::array<double, kDraftsMost> fixed{};
  for (world.seed = 1; world.seed <= seeds; ++world.seed) {
    speeds.off += tokens_per_second(world, 0);
    speeds.chosen += tokens_per_second(world, -1);
    for (int32_t k = 1; k <= kDraftsMost; ++k)
      fixed[static_cast<size_t>(k - 1)] += tokens_per_second(world, k);
  }
  speeds.best = std::max(speeds.off, *std::ranges::max_element(fixed));
  return speeds;
}

struct Load {
  std::string name;
  Chance chance;
};

std::vector<Load> loads() {
  std::vector<Load> loads;
  for (const double chance : {0.1, 0.3, 0.5, 0.7, 0.9})
    loads.push_back({std::to_string(chance), [chance](int32_t, int32_t) { return chance; }});
  loads.push_back({"mixed", [](int32_t stream, int32_t) { return stream % 2 == 0 ? 0.9 : 0.1; }});
  loads.push_back({"jumps down", [](int32_t, int32_t step) { return step < 3000 ? 0.9 : 0.1; }});
  loads.push_back({"jumps up", [](int32_t, int32_t step) { return step < 3000 ? 0.1 : 0.9; }});
  return loads;
}

class DraftControllerLoads : public testing::TestWithParam<int32_t> {};

TEST_P(DraftControllerLoads, LoseLittleAndGainMostOfWhatThereIs) {
  const int32_t streams = GetParam();
  for (const Machine& machine : kMachines)
    for (const Load& load : loads()) {
      SCOPED_TRACE(machine.name + ", " + load.name);
      const World world{.machine = machine, .streams = streams, .chance = load.chance};
      const double off = tokens_per_second(world, 0);
      const double chosen = tokens_per_second(world, -1);
      double best = off;
      for (int32_t fixed = 1; fixed <= kDraftsMost; ++fixed)
        best = std::max(best, tokens_per_second(world, fixed));
      RecordProperty(machine.name + ", " + load.name, std::to_string(chosen / off));
      EXPECT_GE(chosen / off, 0.98);
      EXPECT_GE(chosen / best, streams == 1 ? 0.95 : 0.9) << best / off << " is possible";
    }
}

TEST_P(DraftControllerLoads, LoseLittleWhereStepsVaryAndTheMachineHasTwoSpeeds) {
  const int32_t streams = GetParam();
  for (const Machine& machine : kMachines)
    for (const Load& load : loads()) {
      SCOPED_TRACE(machine.name + ", " + load.name);
      World world{.machine = machine, .streams = streams, .chance = load.chance};
      world.noise = 0.08;
      world.two_speeds = true;
      const double kept = tokens_per_second(world, -1) / tokens_per_second(world, 0);
      RecordProperty("varied, " + machine.name + ", " + load.name, std::to_string(kept));
      EXPECT_GE(kept, streams == 32 ? 0.975 : 0.98);
    }
}

// Beside other programs, which take a part of the cores now and then for some steps.
TEST_P(DraftControllerLoads, LoseLittleWhereSomeStepsAfterAnotherAreSlow) {
  const int32_t streams = GetParam();
  for (const Machine& machine : kMachines)
    for (const Load& load : loads()) {
      SCOPED_TRACE(machine.name + ", " + load.name);
      World world{.machine = machine, .streams = streams, .chance = load.chance};
      world.noise = 0.08;
      world.bursts = 60;
      double off = 0, chosen = 0;
      for (world.seed = 1; world.seed <= 3; ++world.seed) {
        off += tokens_per_second(world, 0);
        chosen += tokens_per_second(world, -1);
      }
      RecordProperty("bursts, " + machine.name + ", " + load.name, std::to_string(chosen / off));
      EXPECT_GE(chosen / off, 0.98);
    }
}

// The first 500 steps of an engine on a busy machine: what is measured is wrong at first, and now
// and then.
TEST_P(DraftControllerLoads, LoseLittleInAShortTimeOnABusyMachine) {
  const int32_t streams = GetParam();
  for (const Machine& machine : kMachines)
    for (const Load& load : loads()) {
      SCOPED_TRACE(machine.name + ", " + load.name);
      const World world{.machine = machine,
                        .streams = streams,
                        .chance = load.chance,
                        .steps = 500,
                        .slow_steps = 5,
                        .disturbed = 25};
      const auto [off, chosen, best] = speeds_of(world, 12);
      RecordProperty("short, " + machine.name + ", " + load.name,
                     std::to_string(chosen / off) + " of " + std::to_string(best / off));
      EXPECT_GE(chosen / off, 0.98);
      EXPECT_GE(chosen / best, streams == 1 ? 0.85 : 0.75) << best / off << " is possible";
    }
}

INSTANTIATE_TEST_SUITE_P(Streams, DraftControllerLoads, testing::Values(1, 4, 8, 32));

// A source that takes time for a draft that is rarely right is asked for few.
TEST(DraftController, LosesLittleWhereDraftsTakeTime) {
  for (const double chance : {0.1, 0.5, 0.8})
    for (const double draft_seconds : {0.05, 0.2, 1.0}) {
      SCOPED_TRACE(std::to_string(chance) + " for " + std::to_string(draft_seconds));
      const World world{.machine = kMachines[1],
                        .streams = 2,
                        .chance = [chance](int32_t, int32_t) { return chance; },
                        .draft_seconds = draft_seconds};
      const double off = tokens_per_second(world, 0);
      EXPECT_GE(tokens_per_second(world, -1) / off, 0.98);
    }
}

// A source that keeps up with the texts costs little where its drafts do not pay, whatever it
// takes, also in an engine's first steps; where they pay it is found out.
TEST(DraftController, KeepsUpWithTextsWhereThatPays) {
  struct Source {
    double follow_seconds, draft_seconds;
  };
  for (const Machine& machine : kMachines)
    for (const Source& source : {Source{0.03, 0.03}, {0.1, 0.05}, {0.35, 0.2}, {1.5, 1}})
      for (const int32_t streams : {1, 4, 8})
        for (const double chance : {0.1, 0.3, 0.9}) {
          SCOPED_TRACE(machine.name + ", " + std::to_string(source.follow_seconds) + ", " +
                       std::to_string(streams) + ", " + std::to_string(chance));
          World world{.machine = machine,
                      .streams = streams,
                      .chance = [chance](int32_t, int32_t) { return chance; },
                      .draft_seconds = source.draft_seconds,
                      .follow_seconds = source.follow_seconds};
          const auto [off, chosen, best] = speeds_of(world, 4);
          EXPECT_GE(chosen / off, 0.99);
          EXPECT_GE(chosen / best, 0.9) << best / off << " is possible";
          world.steps = 300;
          world.slow_steps = 5;
          double short_off = 0, short_chosen = 0;
          for (world.seed = 1; world.seed <= 8; ++world.seed) {
            short_off += tokens_per_second(world, 0);
            short_chosen += tokens_per_second(world, -1);
          }
          EXPECT_GE(short_chosen / short_off, 0.98);
        }
}

// One stream among many that repeats itself is given drafts, the others are not.
TEST(DraftController, DraftsForTheOneStreamOfManyThatIsSure) {
  DraftController controller(8, 8, 1);
  std::array<Draft, kDraftsMost> sure{}, unsure{};
  for (Draft& draft : sure) draft.sureness = 7;
  for (Draft& draft : unsure) draft.sureness = 0;
  std::vector<DraftChoice> choices(8);
  const Machine& machine = kMachines[0];
  for (int32_t i = 0; i < 8; ++i) controller.begin(i);
  int32_t of_sure = 0, of_unsure = 0;  // Of the last 200 steps those in which they have drafts.
  for (int step = 0; step < 400; ++step) {
    controller.begin_step({.certain_rows = 8, .sequences = 8});
    for (int8_t i = 0; i < 8; ++i)
      choices[static_cast<size_t>(i)] = {.sequence = i, .drafts = i == 5 ? sure : unsure};
    controller.choose(choices);
    int8_t rows = 8, tokens = 8;
    for (DraftChoice& choice : choices) {
      rows += choice.kept;
      const int8_t right = choice.sequence == 5 ? choice.kept : 0;
      tokens += right;
      controller.note_taken(choice, right);
      if (step < 200 || choice.kept == 0) continue;
      ++(choice.sequence == 5 ? of_sure : of_unsure);
    }
    controller.end_step(rows, tokens, machine.seconds(rows), true);
  }
  EXPECT_GT(of_sure, 150);
  EXPECT_LT(of_unsure, 20);  // Trials.
}

// Answers of fewer tokens than a sequence is to have before a trial.
TEST(DraftController, FindsOutInShortAnswersThatDraftsPayAgain) {
  for (const int32_t streams : {1, 4})
    for (const double draft_seconds : {0.0, 0.05}) {
      SCOPED_TRACE(std::to_string(streams) + " streams, " + std::to_string(draft_seconds));
      const World world{.machine = kMachines[0],
                        .streams = streams,
                        .chance = [](int32_t, int32_t step) { return step < 2000 ? 0.02 : 0.9; },
                        .answer = 20,
                        .draft_seconds = draft_seconds};
      const double off = tokens_per_second(world, 0);
      double best = off;
      for (int32_t fixed = 1; fixed <= kDraftsMost; ++fixed)
        best = std::max(best, tokens_per_second(world, fixed));
      EXPECT_GE(tokens_per_second(world, -1) / best, 0.9) << best / off << " is possible";
    }
}

// Of a sequence whose text a source that computes has lost nothing is asked until there is text
// again; of others drafts go on.
TEST(DraftController, AsksNothingOfASequenceWhoseTextWasLost) {
  DraftController controller(2, 2, 1);
  std::array<Draft, kDraftsMost> drafts{};
  for (Draft& draft : drafts) draft.sureness = 7;
  controller.begin(0);
  controller.begin(1);
  std::array<int32_t, 2> asked{};  // In the step: of each.
  const auto run_step = [&](bool loses) {
    controller.begin_step({.certain_rows = 2, .sequences = 2});
    std::array<DraftChoice, 2> choices{};
    choices[1].sequence = 1;
    const std::array<int32_t, 2> room{4, 4};
    controller.ask(0, choices, room);
    for (size_t i = 0; i < 2; ++i) {
      asked[i] = choices[i].kept;
      choices[i].drafts = std::span(drafts).first(static_cast<size_t>(choices[i].kept));
    }
    controller.choose(choices);
    int32_t tokens = 2;
    for (const DraftChoice& choice : choices) {
      controller.note_taken(choice, choice.kept);
      tokens += choice.kept;
    }
    if (controller.keep_up(0) != exec::KeepUp::kNot) controller.note_keeping_up(0, 0.01, true);
    if (loses) controller.lose_text(0);
    controller.end_step(tokens, tokens, 1.0 + 0.01 * tokens, true);
  };
  for (int step = 0; step < 200; ++step) run_step(/*loses=*/false);
  for (int plain = 0; asked[0] == 0; ++plain) {
    ASSERT_LT(plain, 3) << "drafts that are always right are not asked for";
    run_step(/*loses=*/false);
  }
  run_step(/*loses=*/true);
  int32_t without = 0, of_other = 0;
  for (asked[0] = 0; asked[0] == 0 && without < 100; ++without) {
    run_step(/*loses=*/false);
    of_other += asked[1];
  }
  EXPECT_GE(without, 8);
  EXPECT_LT(without, 32);
  EXPECT_GT(of_other, 8);
}

// Steps beside prompts tell nothing of plain ones, and do not end drafts.
TEST(DraftController, DraftsBesidePromptsWithoutEnd) {
  DraftController controller(1, 1, 1);
  std::array<Draft, kDraftsMost> drafts{};
  for (Draft& draft : drafts) draft.sureness = 7;
  int plain = 0;
  for (int step = 0; step < 600; ++step) {
    controller.begin_step({.certain_rows = 1, .sequences = 1});
    if (step >= 100) plain += controller.plain() ? 1 : 0;
    DraftChoice choice{.drafts = drafts};
    controller.choose({&choice, 1});
    controller.note_taken(choice, choice.kept);
    controller.end_step(1 + choice.kept, 1 + choice.kept, 1.0 + 0.01 * choice.kept, step < 100);
  }
  EXPECT_LT(plain, 50);
}

TEST(DraftController, KeepsToTheBoundOfAStep) {
  DraftController controller(1, 1, 1);
  std::array<Draft, kDraftsMost> drafts{};
  for (Draft& draft : drafts) draft.sureness = 7;
  for (int step = 0; step < 300; ++step) {
    controller.begin_step({.certain_rows = 1, .sequences = 1, .drafts_max = 1});
    DraftChoice choice{.drafts = drafts};
    controller.choose({&choice, 1});
    ASSERT_LE(choice.kept, 1);
    controller.note_taken(choice, choice.kept);
    controller.end_step(1 + choice.kept, 1 + choice.kept, 1.0, true);
  }
}

TEST(RowCost, DrawsLinesBetweenWhatItKnows) {
  RowCost cost;
  EXPECT_EQ(cost.seconds(4), 0);
  cost.note(1, 1.0, 1);
  EXPECT_NEAR(cost.seconds(3), 1.3, 1e-9);  // Before anything is known of more rows.
  cost.note(5, 2.0, 2);
  EXPECT_NEAR(cost.seconds(3), 1.5, 1e-9);
  EXPECT_EQ(cost.known(5), 1);
  EXPECT_EQ(cost.known(3), 0);
  for (int i = 0; i < 50; ++i) cost.note(5, 3.0, 3 + i);
  EXPECT_NEAR(cost.seconds(5), 3.0, 1e-2);
  // One that was disturbed counts as half as much again at most.
  cost.note(5, 300.0, 53);
  EXPECT_LT(cost.seconds(5), 3.5);
  cost.note(100, 20.0, 54);
  EXPECT_GT(cost.seconds(60), cost.seconds(5));
  EXPECT_LT(cost.seconds(60), 20.0);
}

// A step of so many rows that comes once in a while says more than all those long before it.
TEST(RowCost, ForgetsWhatWasLongAgo) {
  RowCost cost;
  for (int i = 0; i < 3; ++i) cost.note(4, 2.4, i);
  cost.note(4, 1.5, 32);
  EXPECT_NEAR(cost.seconds(4), 2.1, 1e-9);
  for (int i = 2; i < 7; ++i) cost.note(4, 1.5, 32 * i);
  EXPECT_LT(cost.seconds(4), 1.6);
}

}  // namespace
}  // namespace weir::sched
