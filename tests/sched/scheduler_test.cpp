// The scheduling policy for one caller: directed tests of each rule, and a random simulation.
#include "sched/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "sched/scheduler_world.h"
#include "sched/sequence_order.h"

namespace weir::sched {
namespace {

TEST(Scheduler, ALongPromptIsComputedInSlicesAndSamplesOnlyAtItsEnd) {
  World world;
  Sequence* seq = world.submit(1200, 4);
  std::vector<int32_t> counts;
  std::vector<bool> samples;
  while (seq->computed < 1200) {
    const Step& step = world.next();
    ASSERT_EQ(step.slices.size(), 1u);
    counts.push_back(step.slices[0].count);
    samples.push_back(step.slices[0].sample);
  }
  EXPECT_EQ(counts, (std::vector<int32_t>{512, 512, 176}));
  EXPECT_EQ(samples, (std::vector<bool>{false, false, true}));
}

TEST(Scheduler, DecodingSequencesGoFirstAndAPromptTakesTheRestOfTheBudget) {
  World world;
  Sequence* chat = world.submit(10, 50);
  world.next();
  Sequence* book = world.submit(4000, 50);
  const Step& step = world.next();
  ASSERT_EQ(step.slices.size(), 2u);
  EXPECT_EQ(step.slices[0].seq, chat);
  EXPECT_EQ(step.slices[0].count, 1);
  EXPECT_EQ(tokens_of(step, book), 511);
}

TEST(Scheduler, ACostModelMayCapThePromptTokensOfAStep) {
  World world;
  Sequence* chat = world.submit(10, 50);
  world.next();
  Sequence* book = world.submit(4000, 50);
  const Step& step = world.next(100);
  EXPECT_EQ(tokens_of(step, chat), 1);
  EXPECT_EQ(tokens_of(step, book), 100);
  EXPECT_EQ(step.prefill_tokens, 100);
}

TEST(Scheduler, ASequenceThatHasAllItsRowsIsNotPlannedAgain) {
  World world;
  Sequence* one = world.submit(10, 1);
  Sequence* two = world.submit(10, 2);
  EXPECT_EQ(world.next().token_count, 20);
  const Step& step = world.next();  // Nobody has seen the first step's tokens.
  EXPECT_EQ(tokens_of(step, one), 0);
  EXPECT_EQ(tokens_of(step, two), 1);
  EXPECT_TRUE(world.next().slices.empty());
  EXPECT_EQ(world.memory().held(), 0);
}

TEST(Scheduler, ThePromptWithTheFewestTokensLeftGoesFirst) {
  World world;
  Sequence* book = world.submit(3000, 4);
  EXPECT_EQ(tokens_of(world.next(), book), 512);
  Sequence* page = world.submit(600, 4);
  Sequence* note = world.submit(40, 4);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, note), 40);
  EXPECT_EQ(tokens_of(step, page), 64);  // The note's step stays short.
  EXPECT_EQ(tokens_of(step, book), 0);
  EXPECT_EQ(tokens_of(world.next(), page), 511);  // Beside the note's answer.
}

TEST(Scheduler, AFloodOfShortPromptsDelaysALongOneByItsPatienceOnly) {
  World world({.limits = {.step_tokens_max = 128, .running_max = 32}, .page_count = 4000});
  Sequence* book = world.submit(1000, 1);
  int64_t passed = 0;
  for (int32_t step_count = 0; book->computed < 1000; ++step_count) {
    ASSERT_LT(step_count, 1000);
    world.submit(100, 1);  // Two a step: more than the budget of 128.
    world.submit(90, 1);
    const Step& step = world.next();
    for (const Slice& slice : step.slices) passed += slice.seq != book ? slice.count : 0;
  }
  EXPECT_GT(passed, 1000);  // Short ones do go first, but not for ever: due, it has a quarter.
  EXPECT_LE(passed, (kPatience + 3) * 1000 + 2 * 128);
}

TEST(Scheduler, ALongPromptThatIsDueDoesNotKeepShortOnesWaiting) {
  World world({.limits = {.step_tokens_max = 128, .running_max = 32}, .page_count = 4000});
  Sequence* book = world.submit(2000, 1);
  book->passed_tokens = int64_t{kPatience} * 2000;
  while (book->computed < 2000) {
    Sequence* note = world.submit(60, 1);
    const Step& step = world.next();
    ASSERT_EQ(tokens_of(step, note), 60);
    ASSERT_GE(tokens_of(step, book), std::min(32, 2000 - book->computed));
    ASSERT_LE(tokens_of(step, book), 64);
  }
}

TEST(Scheduler, PromptsOfOneLengthFillAStep) {
  World world;
  for (int i = 0; i < 4; ++i) world.submit(200, 1);
  EXPECT_EQ(world.next().prefill_tokens, 512);
}

TEST(Scheduler, AdmitsWhenThePromptAndAShareOfTheOutputFit) {
  World world({.limits = {}, .page_count = 20});
  Sequence* first = world.submit(8 * kPage, 8 * kPage);   // Promised: 8 + 2 pages.
  Sequence* second = world.submit(8 * kPage, 9 * kPage);  // 8 + 3 do not fit beside them.
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, first), 8 * kPage);
  EXPECT_EQ(second->state, Sequence::State::kWaiting);
  world.end(first);
  EXPECT_EQ(tokens_of(world.next(), second), 8 * kPage);
}

// Else a sound that was encoded for others would have to be encoded again, at each look in vain.
TEST(Scheduler, ASequenceThatFindsNoBlocksTakesNoSlotFromASound) {
  World world({.limits = {}, .page_count = 10, .cross_slots = 1});
  kv::CrossSlots& slots = world.memory().cross();
  const kv::CrossKey known = {7, 7};
  const int32_t slot = slots.take(known);
  slots.set_filled(slot);
  slots.give_back(slot);
  Sequence* const text = world.submit(5 * kPage, 1 * kPage);
  world.next();
  Sequence* const hearing = world.submit_hearing(7 * kPage, 9);
  for (int i = 0; i < 3; ++i) world.next();
  ASSERT_EQ(hearing->state, Sequence::State::kWaiting);
  EXPECT_TRUE(slots.filled(slots.take(known)));
  slots.give_back(slot);
  world.end(text);
  world.next();
  EXPECT_EQ(hearing->state, Sequence::State::kRunning);
  EXPECT_EQ(hearing->memory.cross(), slot);
  EXPECT_FALSE(slots.filled(slot)) << "it is of another sound now";
}

TEST(Scheduler, ANewerPromptDoesNotOvertakeAnOlderOneThatWaitsForPages) {
  World world({.limits = {}, .page_count = 10});
  Sequence* chat = world.submit(5 * kPage, 1 * kPage);
  world.next();
  Sequence* book = world.submit(7 * kPage, 1 * kPage);
  Sequence* note = world.submit(5, 5);  // Would fit.
  for (int i = 0; i < 5; ++i) {
    const Step& step = world.next();
    EXPECT_EQ(tokens_of(step, book) + tokens_of(step, note), 0);
  }
  world.end(chat);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, book), 64);
  EXPECT_EQ(tokens_of(step, note), 5);
}

TEST(Scheduler, WhilePagesSufficeForAllTheShortestWaitingPromptGetsTheFreePlace) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 1}});
  Sequence* chat = world.submit(10, 50);
  world.next();
  Sequence* book = world.submit(900, 5);
  Sequence* note = world.submit(20, 5);
  world.end(chat);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, note), 20);
  EXPECT_EQ(tokens_of(step, book), 0);
}

TEST(Scheduler, WaitingForAPlaceMakesALongPromptDueToo) {
  World world({.limits = {.step_tokens_max = 128, .running_max = 1, .queue_max = 200}});
  world.submit(100, 1);
  Sequence* book = world.submit(1000, 1);
  int64_t passed = 0;
  for (int32_t step_count = 0; book->computed == 0; ++step_count) {
    ASSERT_LT(step_count, 200);
    world.submit(100, 1);
    for (const Slice& slice : world.next().slices)
      passed += slice.seq->arrival > book->arrival ? slice.count : 0;
  }
  EXPECT_GT(passed, 1000);
  EXPECT_LE(passed, kPatience * 1000 + 128);
}

// Each plan looks whether the oldest one fits, and takes what it finds in the cache for that.
TEST(Scheduler, APromptThatWaitsCountsItsCachedTokensOnce) {
  World world({.limits = {}, .page_count = 10});
  const std::vector<int32_t> prompt(4 * kPage + 1, 9);
  world.submit(prompt, 1);
  world.next();
  world.next();
  Sequence* chat = world.submit(4 * kPage, kPage);
  world.next();
  std::vector<int32_t> longer(prompt.begin(), prompt.end() - 1);
  longer.insert(longer.end(), 3 * kPage, 8);
  Sequence* book = world.submit(longer, kPage);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(tokens_of(world.next(), book), 0);
  world.end(chat);
  EXPECT_EQ(tokens_of(world.next(), book), 3 * kPage);
  EXPECT_EQ(book->matched_tokens, 4 * kPage);
}

// Two sequences fill the pool; the older needs one page more.
TEST(Scheduler, TheYoungestGivesItsPagesBackAndStaysOutOfThatStep) {
  World world({.limits = {}, .page_count = 9});
  Sequence* chat = world.submit(3 * kPage, 4 * kPage);
  Sequence* book = world.submit(4 * kPage - 20, 2 * kPage);
  Sequence* later = nullptr;
  int32_t steps = 0;
  while (world.open().preemptions() == 0) {
    ASSERT_LT(++steps, 200);
    const Step& step = world.next();
    if (world.open().preemptions() == 0) continue;
    ASSERT_EQ(step.slices.size(), 1u);
    EXPECT_EQ(step.slices[0].seq, chat);
    later = world.submit(1, 1);
  }
  EXPECT_EQ(book->state, Sequence::State::kWaiting);
  EXPECT_EQ(book->preemptions, 1);
  EXPECT_TRUE(book->memory.empty());
  EXPECT_EQ(tokens_of(world.next(), later), 0);  // An older one waits for pages.
  while (book->state == Sequence::State::kWaiting) world.next();
  EXPECT_GE(book->computed, 3 * kPage);  // Its full pages were in the cache, most of them still.
}

TEST(Scheduler, ThePromptsLastTokenIsAlwaysComputed) {
  World world;
  std::vector<int32_t> prompt(4 * kPage, 9);
  world.submit(prompt, 1);
  world.next();
  world.next();
  Sequence* again = world.submit(prompt, 1);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, again), kPage);
  EXPECT_EQ(again->matched_tokens, 3 * kPage);
  EXPECT_TRUE(step.slices[0].sample);
}

TEST(Scheduler, EqualPromptsSubmittedTogetherAreComputedOnce) {
  World world;
  std::vector<int32_t> prompt(20 * kPage + 5);
  std::iota(prompt.begin(), prompt.end(), 0);
  for (int i = 0; i < 16; ++i) world.submit(prompt, 3);
  int32_t prefill_tokens = 0;
  for (int i = 0; i < 12; ++i) prefill_tokens += world.next().prefill_tokens;
  EXPECT_TRUE(world.open().idle());
  EXPECT_EQ(prefill_tokens, 20 * kPage + 5 + 15 * 5);
}

TEST(Scheduler, OnlyEqualSaltsSharePages) {
  World world;
  const std::vector<int32_t> prompt(4 * kPage + 1, 9);
  Sequence* first = world.submit(prompt, 1, 1);
  Sequence* second = world.submit(prompt, 1, 2);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, first), 4 * kPage + 1);
  EXPECT_EQ(tokens_of(step, second), 4 * kPage + 1);
  EXPECT_EQ(world.submit(prompt, 1, 3)->matched_tokens, 0);
}

TEST(Scheduler, GeneratedTokensAreNoPromptsWhereArithmeticDiffers) {
  using From = std::optional<int32_t>;
  struct Case {
    From differ_from;
    int32_t pages;  // Of the first conversation that the second finds.
  };
  for (const Case& c :
       {Case{std::nullopt, 4}, Case{0, 2}, Case{3 * kPage, 3}, Case{8 * kPage, 4}}) {
    World world({.limits = {.prompts_differ_from = c.differ_from}});
    std::vector<int32_t> prompt(2 * kPage, 9);
    Sequence* first = world.submit(prompt, 3 * kPage);
    for (int i = 0; i < 3 * kPage + 2; ++i) world.next();
    ASSERT_EQ(first->request, nullptr);
    // The conversation goes on: what was generated is part of the next prompt.
    for (int32_t i = 2 * kPage; i < 5 * kPage; ++i) prompt.push_back(i % 7);
    Sequence* second = world.submit(prompt, 1);
    world.next();
    EXPECT_EQ(second->matched_tokens, c.pages * kPage);
  }
}

TEST(Scheduler, AShortPromptDoesNotWaitForALongOneThatComputesLater) {
  World world;
  std::vector<int32_t> book(3000);
  std::iota(book.begin(), book.end(), 0);
  std::vector<int32_t> note(book.begin(), book.begin() + 100);
  Sequence* long_one = world.submit(book, 1);
  Sequence* short_one = world.submit(note, 1);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, short_one), 100);
  EXPECT_EQ(tokens_of(step, long_one), 0);  // It needs the very page that the short one computes,
  EXPECT_EQ(tokens_of(world.next(), long_one), 512);
  EXPECT_EQ(long_one->computed, 3 * kPage + 512);  // and finds three of them in the next step.
}

TEST(Scheduler, WithoutACacheNothingIsShared) {
  World world({.limits = {}, .page_count = 100, .cache = false});
  const std::vector<int32_t> prompt(4 * kPage + 1, 9);
  world.submit(prompt, 1);
  world.submit(prompt, 1);
  EXPECT_EQ(world.next().prefill_tokens, 2 * (4 * kPage + 1));
  world.next();
  EXPECT_EQ(world.memory().pools()[0].free_count(), 100);
}

TEST(Scheduler, APriorityGoesBeforeArrivalAndLength) {
  World world({.limits = {.step_tokens_max = 512, .running_max = 1}});
  Sequence* chat = world.submit(10, 50);
  world.next();
  Sequence* note = world.submit(20, 1);
  Sequence* late = world.submit(30, 1, 7);
  Sequence* book = world.submit(900, 1, -1);
  world.end(chat);
  EXPECT_EQ(tokens_of(world.next(), book), 512);
  EXPECT_EQ(tokens_of(world.next(), book), 388);
  EXPECT_EQ(tokens_of(world.next(), note), 20);
  EXPECT_EQ(tokens_of(world.next(), late), 30);
}

TEST(Scheduler, OfPromptsThatRunThePriorityTakesTheBudgetFirst) {
  World world;
  Sequence* book = world.submit(4000, 1);
  EXPECT_EQ(tokens_of(world.next(), book), 512);
  Sequence* urgent = world.submit(5000, 1, -1);
  for (int i = 0; i < 9; ++i) EXPECT_EQ(tokens_of(world.next(), urgent), 512);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, urgent), 5000 - 9 * 512);
  EXPECT_EQ(tokens_of(step, book), 512 - (5000 - 9 * 512));
}

TEST(Scheduler, WhoComesLaterButFirstInPriorityIsNotPreempted) {
  World world({.limits = {}, .page_count = 9});
  Sequence* chat = world.submit(3 * kPage, 4 * kPage, 1);
  world.next();
  Sequence* urgent = world.submit(4 * kPage - 20, 2 * kPage, 0);
  for (int32_t steps = 0; world.open().preemptions() == 0; ++steps) {
    ASSERT_LT(steps, 200);
    world.next();
  }
  EXPECT_EQ(chat->state, Sequence::State::kWaiting);
  EXPECT_EQ(urgent->state, Sequence::State::kRunning);
  EXPECT_GT(urgent->arrival, chat->arrival);
  while (chat->request != nullptr) world.next();  // It is resumed.
  EXPECT_EQ(urgent->preemptions, 0);
}

TEST(Scheduler, NobodyIsAdmittedWhileAPriorityWaitsForPages) {
  World world({.limits = {}, .page_count = 10});
  Sequence* chat = world.submit(5 * kPage, 1 * kPage);
  world.next();
  Sequence* note = world.submit(5, 5);
  Sequence* urgent = world.submit(7 * kPage, 1 * kPage, -1);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(tokens_of(world.next(), note), 0);
  world.end(chat);
  const Step& step = world.next();
  EXPECT_EQ(tokens_of(step, urgent), 7 * kPage);
  EXPECT_EQ(tokens_of(step, note), 5);
}

TEST(Scheduler, WhatASlabSeesIsKeptUntilItsEnd) {
  World world({.limits = {.slab_tokens_max = 320}, .windows = {64}});
  world.submit(320, 50);
  world.submit(10, 50);
  world.next();
  world.begin_slab();
  EXPECT_EQ(world.memory().held_pages(1), 10 + 1);
  for (int i = 0; i < 3; ++i) {
    world.next();
    EXPECT_EQ(world.memory().held_pages(1), 10 + 1);
  }
  world.end_slab();
  world.next();
  EXPECT_EQ(world.memory().held_pages(1), 3 + 1);
}

// --- Random simulation.

struct Simulation {
  explicit Simulation(uint32_t seed)
      : rng(seed),
        priorities(seed % 3 == 0 ? 3 : 1),
        world({.limits = {.step_tokens_max = 96,
                          .running_max = 6,
                          .queue_max = 24,
                          .prompts_differ_from = World::differ_from(seed)},
               .page_count = 14 + static_cast<int32_t>(seed % 3) * 20,
               .windows = windows_of(seed),
               .cache = seed % 4 != 0}) {}

  static std::vector<int32_t> windows_of(uint32_t seed) {
    if (seed % 5 < 2) return {};
    return seed % 5 == 2 ? std::vector{40} : seed % 5 == 3 ? std::vector{100} : std::vector{70, 32};
  }

  uint32_t random(uint32_t n) { return rng() % n; }

  void submit() {
    // Few different tokens and few lengths of what is shared: prefixes coincide often.
    std::vector<int32_t> prompt(1 + random(260), 1);
    const size_t same = random(5) * 50;
    for (size_t i = same; i < prompt.size(); ++i)
      prompt[i] = 2 + static_cast<int32_t>(random(2) * 1000 + i);
    const auto fits = world.scheduler().tokens_max() - static_cast<int32_t>(prompt.size());
    if (fits < 1) return;
    const int32_t outputs = std::min(fits, 1 + static_cast<int32_t>(random(80)));
    const auto priority = static_cast<int32_t>(random(priorities));
    open.push_back(world.submit(std::move(prompt), outputs, random(8) == 0, priority));
  }

  // Of what waits and runs, as it was before a plan.
  struct Before {
    Sequence* seq = nullptr;
    bool waiting = false;
    bool prefilling = false;
    bool due = false;
  };

  std::vector<Before> look() const {
    std::vector<Before> before;
    for (const bool waiting : {false, true})
      for (Sequence* seq : waiting ? world.open().waiting() : world.open().running())
        before.push_back(
            {.seq = seq,
             .waiting = waiting,
             .prefilling = seq->prefilling() || waiting,
             .due = seq->passed_tokens >= int64_t{kPatience} * (seq->length - seq->computed)});
    return before;
  }

  // The oldest that was due, had pages and got nothing, has not been passed by a prompt after it,
  // unless it waits for a page that an equal prompt computes in this step.
  void check_fairness(const std::vector<Before>& before, const Step& step) const {
    for (const Before& b : before) {
      if (b.waiting || !b.prefilling || !b.due) continue;
      if (b.seq->state != Sequence::State::kRunning) continue;
      if (tokens_of(step, b.seq) > 0) return;
      bool equal = false, passed = false;
      for (const Slice& slice : step.slices) {
        const bool prompt = slice.count > 1 || slice.first < slice.seq->prefill_end;
        if (!prompt) continue;
        equal = equal || slice.seq->request->prompt[0] == b.seq->request->prompt[0];
        passed = passed || precedes(b.seq, slice.seq);
      }
      ASSERT_TRUE(equal || !passed);
    }
  }

  // Nobody was admitted past one before it for whom there are no pages.
  void check_admission(const std::vector<Before>& before, uint64_t preemptions) const {
    const auto waiting = world.open().waiting();
    if (waiting.empty()) return;
    const bool places = std::ssize(world.open().running()) < 6;
    for (const Before& b : before) {
      if (!b.waiting || b.seq->state != Sequence::State::kRunning) continue;
      ASSERT_EQ(preemptions, world.open().preemptions());
      if (places) {
        ASSERT_TRUE(precedes(b.seq, waiting.front()));
      }
    }
  }

  void run() {
    int32_t arrivals = 40;
    for (int32_t steps = 0; arrivals > 0 || !world.open().idle(); ++steps) {
      ASSERT_LT(steps, 20000) << "somebody waits for ever";
      while (arrivals > 0 && open.size() < 24 && random(3) == 0) {
        submit();
        --arrivals;
      }
      const std::vector<Before> before = look();
      const uint64_t preemptions = world.open().preemptions();
      const Sequence* oldest =
          world.open().running().empty() ? nullptr : world.open().running().front();
      const Step& step = world.next(random(4) == 0 ? 20 : 1 << 20, random(2) == 0);
      ASSERT_FALSE(testing::Test::HasFatalFailure());
      ASSERT_LE(step.token_count, 96);
      if (!world.open().idle()) {
        ASSERT_GT(step.token_count, 0);
      }
      if (oldest != nullptr) {
        ASSERT_NE(oldest->state, Sequence::State::kWaiting);
      }
      check_fairness(before, step);
      check_admission(before, preemptions);
      std::erase_if(open, [](const Sequence* seq) { return seq->request == nullptr; });
      if (random(12) == 0 && !open.empty()) {
        const auto gone = open.begin() + random(static_cast<uint32_t>(open.size()));
        world.end(*gone);
        open.erase(gone);
      }
    }
    world.next();
    world.next();
    world.open().check();
    ASSERT_EQ(world.memory().held(), 0);
    world.memory().forget_shared();
    for (const kv::PagePool& pool : world.memory().pools())
      ASSERT_EQ(pool.free_count(), pool.page_count());
  }

  static bool precedes(const Sequence* a, const Sequence* b) {
    return std::pair(a->priority, a->arrival) < std::pair(b->priority, b->arrival);
  }

  std::mt19937 rng;
  const uint32_t priorities;
  World world;
  std::vector<Sequence*> open;
};

TEST(Scheduler, RandomLoadKeepsTheInvariantsAndServesEverybody) {
  uint64_t preemptions = 0;
  for (uint32_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Simulation simulation(seed);
    simulation.run();
    if (HasFatalFailure()) return;
    preemptions += simulation.world.open().preemptions();
  }
  EXPECT_GT(preemptions, 500u);
}

}  // namespace
}  // namespace weir::sched
