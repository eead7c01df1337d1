// What drafts may take of a step: nothing that anything else needs.
#include "sched/decode_planner.h"

#include <gtest/gtest.h>

#include <memory>
#include <numeric>
#include <vector>

#include "sched/sequence_pool.h"

namespace weir::sched {
namespace {

// Sequences that run, past their prompts, with drafts.
struct Decoders {
  Decoders(const Limits& limits, int32_t page_count)
      : memory(std::vector<kv::PageGroup>{{.pages = page_count}}, /*cache=*/false),
        open(limits, memory),
        sequences(limits.queue_max * 2, 1 << 10, 1) {}

  Sequence* submit(int32_t prompt_length, int32_t drafts, uint64_t caller) {
    std::vector<int32_t> prompt(static_cast<size_t>(prompt_length));
    std::iota(prompt.begin(), prompt.end(), 1);
    requests.push_back(
        std::make_unique<Request>(std::move(prompt), sample::SamplingParams(), 40, false));
    requests.back()->caller = caller;
    Sequence* seq = sequences.take(requests.back().get());
    seq->drafts = seq->drafts_bound = drafts;
    open.submit(seq);
    return seq;
  }

  // Its prompt is computed, and its first token is known.
  Sequence* decoder(int32_t prompt_length, int32_t drafts, uint64_t caller = 0) {
    Sequence* seq = submit(prompt_length, drafts, caller);
    admission.admit();
    EXPECT_EQ(seq->state, Sequence::State::kRunning);
    memory.grow(seq->memory, prompt_length);
    requests.back()->log.append({.token = 5}, {});
    seq->computed = prompt_length;
    seq->known = seq->length = prompt_length + 1;
    return seq;
  }

  const Step& plan() {
    step.clear();
    open.begin_plan();
    planner.plan(step, open.limits.step_tokens_max);
    return step;
  }
  int32_t drafts() const {
    return std::accumulate(step.slices.begin(), step.slices.end(), 0,
                           [](int32_t sum, const Slice& slice) { return sum + slice.drafts; });
  }

  kv::SequenceMemory memory;
  OpenSequences open;
  Admission admission{open};
  DecodePlanner planner{open, admission};
  SequencePool sequences;
  std::vector<std::unique_ptr<Request>> requests;
  Step step;
};

TEST(DecodePlanner, GivesDraftsAllRoomWhileThereAreNoPrompts) {
  Decoders world({.step_tokens_max = 64, .running_max = 8}, 100);
  for (int i = 0; i < 3; ++i) world.decoder(10, 15);
  EXPECT_EQ(world.planner.rows_expected(), 48);
  EXPECT_EQ(world.plan().token_count, 48);
  EXPECT_EQ(world.drafts(), 45);
}

TEST(DecodePlanner, LeavesPromptsNearlyAllRoomThatDraftsCouldHave) {
  for (const bool running : {false, true}) {
    Decoders world({.step_tokens_max = 64, .running_max = 8}, 100);
    for (int i = 0; i < 6; ++i) world.decoder(10, 15);
    Sequence* const prompt = world.submit(500, 15, 0);
    if (running) world.admission.admit();
    EXPECT_EQ(prompt->prefilling(), running);
    const int32_t rows = 6 + (running ? 57 : 58) / 32;
    EXPECT_EQ(world.planner.rows_expected(), rows);
    EXPECT_EQ(world.plan().token_count, rows);
  }
}

TEST(DecodePlanner, DoesNotLeaveRoomForPromptsThatFindNoPlace) {
  Decoders world({.step_tokens_max = 64, .running_max = 2}, 100);
  for (int i = 0; i < 2; ++i) world.decoder(10, 15);
  world.submit(500, 15, 0);
  EXPECT_EQ(world.plan().token_count, 32);
}

TEST(DecodePlanner, LeavesOutDraftsBeforeItLeavesOutSequencesOfACallerThatHasMost) {
  Decoders world({.step_tokens_max = 256, .running_max = 32}, 400);
  world.decoder(10, 0, /*caller=*/1);
  for (int i = 0; i < 5; ++i) world.decoder(10, 15, /*caller=*/2);
  const Step& step = world.plan();
  EXPECT_EQ(step.slices.size(), 6u);
  EXPECT_EQ(step.token_count, 1 + StepShares::kRowsLeast);
  EXPECT_EQ(world.drafts(), StepShares::kRowsLeast - 5);
  for (const Slice& slice : step.slices) EXPECT_TRUE(slice.sample);
}

// Each has one page, and there is none for more than its 32 tokens.
TEST(DecodePlanner, GivesUpDraftsBeforeASequenceGivesWay) {
  Decoders world({.step_tokens_max = 64, .running_max = 8}, 2);
  for (int i = 0; i < 2; ++i) world.decoder(20, 15);
  const Step& step = world.plan();
  EXPECT_EQ(step.slices.size(), 2u);
  EXPECT_EQ(world.drafts(), 0);
  EXPECT_EQ(step.token_count, 2);
  EXPECT_EQ(world.open.preemptions(), 0u);
}

}  // namespace
}  // namespace weir::sched
