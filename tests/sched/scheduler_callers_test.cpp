// Shares between callers: places, pages, steps and prompts' turns; and that callers that ask for
// little hardly notice one that asks for everything.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <vector>

#include "sched/scheduler_world.h"

namespace weir::sched {
namespace {

constexpr uint64_t kGreedy = 1, kModest = 2;

int32_t rows_of(const Step& step, uint64_t caller) {
  int32_t rows = 0;
  for (const Slice& slice : step.slices)
    if (slice.seq->share != nullptr && slice.seq->share->caller == caller) rows += slice.count;
  return rows;
}

int64_t running_of(const World& world, uint64_t caller) {
  return std::ranges::count_if(world.open().running(), [caller](const Sequence* seq) {
    return seq->share->caller == caller;
  });
}

TEST(Callers, AFreePlaceGoesToTheOneWithTheFewestRunning) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 3}});
  Sequence* const chat = world.submit(10, 50, 0, kGreedy);
  world.submit(10, 500, 0, kGreedy);
  world.submit(10, 500, 0, kModest);
  world.next();
  world.submit(5, 5, 0, kGreedy);
  world.submit(5, 5, 0, kGreedy);
  Sequence* const note = world.submit(300, 5, 0, 3);
  world.end(chat);
  world.next();
  EXPECT_EQ(note->state, Sequence::State::kRunning);
}

TEST(Callers, OneThatHasEveryPlaceGivesOneUp) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 8}});
  std::vector<Sequence*> flood;
  for (int i = 0; i < 20; ++i) flood.push_back(world.submit(10, 500, 0, kGreedy));
  world.next();
  world.next();
  Sequence* const note = world.submit(40, 5, 0, kModest);
  EXPECT_EQ(tokens_of(world.next(), note), 40);
  EXPECT_EQ(flood[7]->state, Sequence::State::kWaiting);  // The last one that ran.
  for (int i = 0; i < 10; ++i) world.next();
  EXPECT_EQ(note->request, nullptr);
  EXPECT_EQ(world.open().preemptions(), 1u);
  EXPECT_EQ(running_of(world, kGreedy), 8);
}

TEST(Callers, PlacesComeToBeEqualAndStaySo) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 12}, .page_count = 4000});
  for (int i = 0; i < 30; ++i) world.submit(10, 400, 0, kGreedy);
  world.next();
  for (int i = 0; i < 30; ++i) world.submit(10, 400, 0, kModest);
  world.submit(10, 400, 0, 3);
  for (int i = 0; i < 4; ++i) world.next();
  EXPECT_EQ(running_of(world, 3), 1);
  EXPECT_GE(running_of(world, kGreedy), 5);
  EXPECT_GE(running_of(world, kModest), 5);
  const uint64_t preemptions = world.open().preemptions();
  EXPECT_LE(preemptions, 7u);
  for (int i = 0; i < 200; ++i) world.next();
  EXPECT_EQ(world.open().preemptions(), preemptions);
}

TEST(Callers, APlaceIsNotTakenFromABetterPriority) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 4}});
  for (int i = 0; i < 6; ++i) world.submit(10, 100, -1, kGreedy);
  world.next();
  Sequence* const note = world.submit(40, 5, 0, kModest);
  for (int i = 0; i < 20; ++i) world.next();
  EXPECT_EQ(note->state, Sequence::State::kWaiting);
}

TEST(Callers, OneThatHasAllPagesGivesThemUp) {
  World world({.limits = {}, .page_count = 40});
  for (int i = 0; i < 6; ++i) world.submit(8 * kPage, 2 * kPage, 0, kGreedy);
  for (int i = 0; i < 3; ++i) world.next();
  ASSERT_EQ(running_of(world, kGreedy), 4);
  Sequence* const note = world.submit(5 * kPage, 5, 0, kModest);
  EXPECT_EQ(tokens_of(world.next(), note), 5 * kPage);
  EXPECT_EQ(running_of(world, kGreedy), 3);
}

// Each needs a page more while none is free: the newest is not the one to give way.
TEST(Callers, WhenPagesRunOutTheOneWithMostGivesThemBack) {
  World world({.limits = {}, .page_count = 40});
  for (int i = 0; i < 3; ++i) world.submit(8 * kPage, 16 * kPage, 0, kGreedy);
  world.next();
  Sequence* const note = world.submit(4 * kPage, 12 * kPage, 0, kModest);
  for (int32_t steps = 0; world.open().preemptions() == 0; ++steps) {
    ASSERT_LT(steps, 2000);
    world.next();
  }
  EXPECT_EQ(note->preemptions, 0);
  EXPECT_EQ(note->state, Sequence::State::kRunning);
}

TEST(Callers, GeneratedTokensOfOneAreHeldToATileOrTheRowsOfTheOthers) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 128}, .page_count = 8000});
  std::vector<Sequence*> flood;
  for (int i = 0; i < 100; ++i) flood.push_back(world.submit(10, 1000, 0, kGreedy));
  for (int i = 0; i < 3; ++i) world.next();
  EXPECT_EQ(world.next().token_count, 100);  // Alone it has all.
  std::vector<Sequence*> chats;
  for (uint64_t caller = 0; caller < 4; ++caller)
    chats.push_back(world.submit(20, 1000, 0, kModest + caller));
  world.next();
  std::map<const Sequence*, int> last;
  for (int step_number = 0; step_number < 50; ++step_number) {
    const Step& step = world.next();
    EXPECT_EQ(rows_of(step, kGreedy), 16);
    for (const Sequence* chat : chats) EXPECT_EQ(tokens_of(step, chat), 1);
    for (const Slice& slice : step.slices) {
      if (last.contains(slice.seq)) {
        EXPECT_LE(step_number - last[slice.seq], 7);  // 100 in 16.
      }
      last[slice.seq] = step_number;
    }
  }
  EXPECT_EQ(last.size(), 104u);  // All of its answers go on.
  for (uint64_t i = 0; i < 26; ++i) world.submit(20, 1000, 0, 100 + i);
  world.next();
  world.next();
  EXPECT_EQ(rows_of(world.next(), kGreedy), 30);
}

// A question waits for the step that computes it.
TEST(Callers, GeneratedTokensOfOneAreHeldWhileAnothersPromptIsComputed) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 128}, .page_count = 8000});
  for (int i = 0; i < 128; ++i) world.submit(40, 1000, 0, kGreedy);
  for (int i = 0; i < 8; ++i) world.next();
  Sequence* const question = world.submit(70, 10, 0, kModest);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, question), 70);
  EXPECT_LE(step.token_count, 70 + 70 / 4 + 1 + StepShares::kRowsLeast);
}

TEST(Callers, OneThatWasHeldIsSoForAWhileAfterTheOthersHaveEnded) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 128}, .page_count = 8000});
  for (int i = 0; i < 100; ++i) world.submit(10, 1000, 0, kGreedy);
  for (int i = 0; i < 3; ++i) world.next();
  Sequence* const chat = world.submit(20, 5, 0, kModest);
  while (chat->request != nullptr) world.next();
  int32_t held = 0;
  while (world.next().token_count == 16) ASSERT_LT(++held, 20);
  EXPECT_GE(held, Shares::kLinger - 2);
  EXPECT_EQ(world.next().token_count, 100);
}

// It comes while those of another are being computed, which has been alone, and may have credit
// yet.
TEST(Callers, APromptGoesBeforeThoseOfOneThatHasHadEverything) {
  for (const int steps_before : {4, 10}) {
    World world({.limits = {.step_tokens_max = 512, .running_max = 256}, .page_count = 8000});
    for (int i = 0; i < 256; ++i) world.submit(40, 1000, 0, kGreedy);
    for (int i = 0; i < steps_before; ++i) EXPECT_EQ(world.next().token_count, 512);
    Sequence* const question = world.submit(70, 10, 0, kModest);
    const Step& step = world.next();
    EXPECT_EQ(tokens_of(step, question), 70);
    EXPECT_LE(step.token_count, steps_before == 4 ? 512 : 70 + 70 / 4 + 1 + StepShares::kRowsLeast);
  }
}

TEST(Callers, GeneratedTokensOfAWorsePriorityHoldNobody) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 128}, .page_count = 8000});
  for (int i = 0; i < 50; ++i) world.submit(10, 1000, 0, kGreedy);
  world.submit(10, 1000, 1, kModest);
  for (int i = 0; i < 3; ++i) world.next();
  EXPECT_EQ(rows_of(world.next(), kGreedy), 50);
  world.submit(10, 1000, 0, 3);
  world.next();
  EXPECT_EQ(rows_of(world.next(), kGreedy), 16);
}

TEST(Callers, LongPromptsAgainAndAgainAreHeldToTheRowsOfTheOthers) {
  World world({.limits = {}, .page_count = 4000});
  Sequence* const chat = world.submit(10, 1000, 0, kModest);
  world.next();
  int64_t first_steps = 0;
  for (int i = 0; i < 5; ++i) {
    world.submit(1000, 1, 0, kGreedy);
    world.submit(1000, 1, 0, kGreedy);
    first_steps += world.next().prefill_tokens;
  }
  EXPECT_GE(first_steps, Shares::kCredit);  // An ordinary question is not held up.
  for (int i = 0; i < 10; ++i) world.next();
  for (int i = 0; i < 100; ++i) {
    const Step& step = world.next();
    EXPECT_EQ(tokens_of(step, chat), 1);
    EXPECT_EQ(step.prefill_tokens, 16);
  }
  // Another's question is computed at once.
  Sequence* const question = world.submit(400, 10, 0, 3);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, question), 400);
  EXPECT_LE(step.prefill_tokens, 400 + 400 / 4 + 1);
}

TEST(Callers, ARowThatIsScoredCountsAsTwo) {
  World world({.limits = {}, .page_count = 4000});
  Sequence* const chat = world.submit(10, 1000, 0, kModest);
  world.next();
  for (int i = 0; i < 5; ++i) {
    Sequence* const scored = world.submit(1000, 1, 0, kGreedy);
    scored->request->prompt_log = std::make_unique<TokenLog>(999, 0);
    world.next();
  }
  for (int i = 0; i < 10; ++i) world.next();
  for (int i = 0; i < 50; ++i) {
    const Step& step = world.next();
    EXPECT_EQ(tokens_of(step, chat), 1);
    EXPECT_EQ(step.prefill_tokens, StepShares::kRowsLeast / StepShares::kScoredRow);
  }
}

TEST(Callers, OfPromptsOfCallersInDebtEachHasItsTurn) {
  World world({.limits = {}, .page_count = 4000});
  world.submit(10, 5000, 0, kModest);
  for (int i = 0; i < 3; ++i) {
    world.submit(6000, 1, 0, kGreedy);
    world.submit(6000, 1, 0, 3);
    world.next();
  }
  for (int i = 0; i < 60; ++i) world.next();
  int64_t of_greedy = 0, of_other = 0;
  for (int i = 0; i < 200; ++i) {
    const Step& step = world.next();
    EXPECT_EQ(step.prefill_tokens, 16);
    of_greedy += rows_of(step, kGreedy);
    of_other += rows_of(step, 3);
  }
  EXPECT_NEAR(static_cast<double>(of_greedy), static_cast<double>(of_other), 200);
}

TEST(Callers, ASlabHasLittleOfACallerInDebtWhileOthersPromptsWait) {
  World world({.limits = {.step_tokens_max = 64, .running_max = 16, .slab_tokens_max = 1024},
               .page_count = 4000});
  world.submit(3000, 1, 0, kGreedy);
  world.submit(3000, 1, 0, kGreedy);
  world.submit(8, 1, 0, 4);  // Two callers: what one has is counted.
  for (int i = 0; i < 5; ++i) {
    world.next();
    EXPECT_GT(world.slab().prefill_tokens, 0);
  }
  Sequence* const question = world.submit(100, 1, 0, kModest);
  world.next();
  const Step& slab = world.slab();
  EXPECT_EQ(tokens_of(slab, question), 100);
  EXPECT_EQ(slab.prefill_tokens, 100 + 1024 / 8);
}

// --- Random simulation.

struct Crowd {
  explicit Crowd(uint32_t seed)
      : rng(seed),
        page_count(seed % 2 == 0 ? 2000 : 40),
        world({.limits = {.step_tokens_max = 96,
                          .running_max = 6,
                          .queue_max = 48,
                          .prompts_differ_from = World::differ_from(seed / 2)},
               .page_count = page_count,
               .cache = seed % 5 != 0}) {}

  uint32_t random(uint32_t n) { return rng() % n; }

  void submit() {
    const uint64_t caller = random(3) == 0 ? 1 + random(4) : kGreedy;
    const auto length = static_cast<int32_t>(1 + random(random(4) == 0 ? 400 : 60));
    const auto fits = world.scheduler().tokens_max() - length;
    world.submit(length, std::min(fits, 1 + static_cast<int32_t>(random(60))),
                 static_cast<int32_t>(random(8) == 0), caller);
    ++arrivals;
  }

  // A caller is left out only if the step is full, or others have rows in it or had some just now,
  // or for a prompt that ends in it.
  void check_work(const Step& step, int32_t prefill_tokens_max) {
    if (world.open().idle()) return;
    ASSERT_GT(step.token_count, 0);
    std::set<uint64_t> callers;
    for (const auto list : {world.open().running(), world.open().waiting()})
      for (const Sequence* seq : list) callers.insert(seq->share->caller);
    alone_for = callers.size() > 1 ? 0 : alone_for + 1;
    if (callers.size() == 1 && alone_for <= Shares::kLinger + 2) return;
    if (step.prefill_tokens >= prefill_tokens_max || step.token_count >= 90) return;
    if (std::ranges::any_of(step.slices, [](const Slice& slice) {
          return slice.sample && slice.first < slice.seq->prefill_end;
        }))
      return;
    for (const Sequence* seq : world.open().running()) {
      if (tokens_of(step, seq) > 0) continue;
      const bool others = std::ranges::any_of(
          step.slices, [seq](const Slice& slice) { return slice.seq->share != seq->share; });
      ASSERT_TRUE(others);
    }
  }

  void run() {
    for (int32_t steps = 0; arrivals < 60 || !world.open().idle(); ++steps) {
      ASSERT_LT(steps, 20000) << "a sequence waits for ever";
      while (arrivals < 60 && open() < 40 && random(2) == 0) submit();
      const Sequence* const oldest =
          world.open().running().empty() ? nullptr : world.open().running().front();
      const int32_t prefill_tokens_max = random(4) == 0 ? 20 : 1 << 20;
      const Step& step = world.next(prefill_tokens_max, random(2) == 0);
      ASSERT_FALSE(testing::Test::HasFatalFailure());
      ASSERT_LE(step.token_count, 96);
      if (oldest != nullptr) {
        ASSERT_NE(oldest->state, Sequence::State::kWaiting);
      }
      check_work(step, prefill_tokens_max);
    }
    world.next();
    world.next();
    ASSERT_EQ(world.memory().held(), 0);
    // By the number of arrivals, however many steps there are.
    if (page_count == 2000) {
      ASSERT_LE(world.open().preemptions(), static_cast<uint64_t>(arrivals));
    }
  }

  size_t open() const { return world.open().running().size() + world.open().waiting().size(); }

  std::mt19937 rng;
  const int32_t page_count;
  World world;
  int32_t arrivals = 0;
  int32_t alone_for = 0;  // Steps with one caller.
};

TEST(Callers, RandomLoadOfSeveralKeepsTheInvariantsAndServesEverybody) {
  uint64_t with_pages = 0, without = 0;
  for (uint32_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Crowd crowd(seed);
    crowd.run();
    if (HasFatalFailure()) return;
    (crowd.page_count == 2000 ? with_pages : without) += crowd.world.open().preemptions();
  }
  EXPECT_GT(with_pages, 300u);
  EXPECT_GT(without, 300u);
}

// --- Beside a greedy one.

// Eight callers ask now and then and are answered; the time of a step is that of its rows and of
// the weights that it reads, which weigh as much as 16 rows. Of their waits and gaps the 99th of a
// hundred.
struct Modest {
  struct Waits {
    double first_token = 0, gap = 0;
  };
  enum class Greed : uint8_t { kNone, kChoices, kShortPrompts, kLongPrompts };

  Modest() : world({.limits = {}, .page_count = 20000, .checked = false}) {}

  static double p99(std::vector<double>& values) {
    std::ranges::sort(values);
    return values[values.size() * 99 / 100];
  }

  void feed(Greed greed) {
    std::erase_if(greedy, [](const Sequence* seq) { return seq->request == nullptr; });
    const auto keep = [&](size_t count, int32_t prompt, int32_t output) {
      while (greedy.size() < count) greedy.push_back(world.submit(prompt, output, 0, kGreedy));
    };
    if (greed == Greed::kChoices) keep(300, 20, 1900);
    if (greed == Greed::kShortPrompts) keep(256, 30, 1);
    if (greed == Greed::kLongPrompts) keep(4, 8000, 1);
  }

  Waits run(Greed greed) {
    struct Chat {
      Sequence* seq = nullptr;
      int32_t seen = 0;
      double since = 0;
    };
    std::vector<Chat> chats(8);
    std::vector<double> firsts, gaps;
    std::mt19937 rng(7);
    double now = 0;
    for (int32_t i = 0; i < 300; ++i) {  // It was there first.
      feed(greed);
      world.next();
    }
    for (int32_t step_number = 0; step_number < 10000; ++step_number) {
      feed(greed);
      for (size_t i = 0; i < chats.size(); ++i)
        if (!chats[i].seq && rng() % 400 == 0)
          chats[i] = {world.submit(static_cast<int32_t>(50 + rng() % 400),
                                   static_cast<int32_t>(20 + rng() % 100), 0, 100 + i),
                      0, now};
      const Step& step = world.next();
      now += step.token_count == 0 ? 0 : 16 + step.token_count;
      for (Chat& chat : chats) {
        if (!chat.seq) continue;
        const bool sampled = std::ranges::any_of(
            step.slices, [&](const Slice& slice) { return slice.seq == chat.seq && slice.sample; });
        if (sampled) {
          (chat.seen++ == 0 ? firsts : gaps).push_back(now - chat.since);
          chat.since = now;
        }
        if (chat.seq->length == chat.seq->limit) chat.seq = nullptr;
      }
    }
    return {p99(firsts), p99(gaps)};
  }

  World world;
  std::vector<Sequence*> greedy;
};

TEST(Callers, ModestOnesHardlyNoticeAGreedyOne) {
  using enum Modest::Greed;
  const Modest::Waits alone = Modest().run(kNone);
  for (const Modest::Greed greed : {kChoices, kShortPrompts, kLongPrompts}) {
    const Modest::Waits beside = Modest().run(greed);
    EXPECT_LE(beside.first_token, 3 * alone.first_token) << static_cast<int>(greed);
    EXPECT_LE(beside.gap, 3 * alone.gap) << static_cast<int>(greed);
  }
}

}  // namespace
}  // namespace weir::sched
