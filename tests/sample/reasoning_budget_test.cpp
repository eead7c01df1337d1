// An answer's reasoning ends after exactly as many tokens as are allowed.
#include "sample/reasoning_budget.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "sample/sampler_draws.h"

namespace weir::sample {
namespace {

using Tokens = std::vector<int32_t>;

// Words of a small vocabulary; the markers are tokens, and can be spelled by others too.
constexpr auto kWords = std::to_array<std::string_view>(
    {"a", "b", "<think>", "</think>", "<", "/", "think", ">", "\n", "enough", "\xc3", "!"});
constexpr int32_t kVocab = std::ssize(kWords);
constexpr int32_t kOpen = 2, kClose = 3, kEnough = 9;

ReasoningLimit limit(int32_t tokens_max, bool begun, bool anywhere = false) {
  return {.tokens_max = tokens_max,
          .open = "<think>",
          .close = "</think>",
          .begun = begun,
          .anywhere = anywhere,
          .closing = {kEnough, kClose},
          .text_of = [](int32_t token) { return kWords[static_cast<size_t>(token)]; }};
}

// After how many of these tokens the end is forced; -1: never.
int forced_after(const ReasoningLimit& limit, const Tokens& tokens) {
  ReasoningBudget budget(&limit);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (!budget.closing().empty()) return static_cast<int>(i);
    budget.add(tokens[i]);
  }
  return budget.closing().empty() ? -1 : static_cast<int>(tokens.size());
}

TEST(ReasoningBudget, CountsTheTokensBetweenTheMarkers) {
  const Tokens letters(20, 0);
  EXPECT_EQ(forced_after(limit(5, true), letters), 5);
  EXPECT_EQ(forced_after(limit(0, true), letters), 0);
  EXPECT_EQ(forced_after(limit(5, false), letters), -1);  // It does not reason.
  EXPECT_EQ(forced_after(limit(2, false), {8, kOpen, 0, 0, 0}), 4);
  EXPECT_EQ(forced_after(limit(0, false), {kOpen, 0}), 1);
  EXPECT_EQ(forced_after(limit(3, false), {kOpen, 0, 0, kClose, 0, 0, 0}), -1);
  EXPECT_EQ(forced_after(limit(3, false), {0, kOpen, 0, 0, 0, 0}), -1);  // Not at the beginning.
  // Markers spelled by several tokens.
  EXPECT_EQ(forced_after(limit(2, false), {4, 6, 7, 0, 1, 0}), 5);
  EXPECT_EQ(forced_after(limit(9, true), {0, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0}), -1);
  EXPECT_EQ(forced_after(limit(9, true), {0, 4, 4, 5, 6, 7, 0, 0, 0, 0, 0, 0, 0, 0}), -1);
}

TEST(ReasoningBudget, IsOneForAllOfAnAnswersReasoning) {
  EXPECT_EQ(forced_after(limit(3, false, true), {kOpen, 0, 0, kClose, 1, kOpen, 0, 0}), 7);
  ReasoningLimit bound = limit(1, true, true);
  ReasoningBudget budget(&bound);
  for (const int32_t token : {0, kEnough, kClose, 1}) budget.add(token);
  EXPECT_TRUE(budget.closing().empty());
  budget.add(kOpen);  // Nothing is left of it.
  EXPECT_EQ(budget.closing().size(), 2u);
}

// Rows that want token 0 for ever.
Tokens answer(const SamplingParams& params, int32_t tokens, bool logprobs,
              Continuation* last = nullptr) {
  const kernels::Ops ops = plain_ops();
  SamplerScratch scratch(kVocab);
  Sampler sampler(params, Tokens{1}, kVocab, tokens);
  Tokens output;
  while (std::ssize(output) < tokens) {
    std::vector<float> row(kVocab);
    row[0] = 30;
    const SampledToken sampled =
        sampler.sample(row, static_cast<int32_t>(output.size()), logprobs, ops, scratch);
    output.push_back(sampled.chosen.token);
    output.insert(output.end(), sampled.forced.begin(), sampled.forced.end());
    if (last) *last = sampled.continuation;
    if (logprobs) {
      EXPECT_TRUE(sampled.forced.empty());
      EXPECT_LE(sampled.chosen.logprob, 0);
    }
  }
  return output;
}

TEST(ReasoningBudget, ForcesItsEndIntoTheSamplersTokens) {
  for (const bool logprobs : {false, true}) {
    SamplingParams params;
    params.reasoning = std::make_shared<const ReasoningLimit>(limit(3, true));
    EXPECT_EQ(answer(params, 8, logprobs), (Tokens{0, 0, 0, kEnough, kClose, 0, 0, 0}));
    params.reasoning = std::make_shared<const ReasoningLimit>(limit(0, true));
    EXPECT_EQ(answer(params, 4, logprobs), (Tokens{kEnough, kClose, 0, 0}));
    // No more than the answer may have.
    params.reasoning = std::make_shared<const ReasoningLimit>(limit(3, true));
    EXPECT_EQ(answer(params, 4, logprobs), (Tokens{0, 0, 0, kEnough}));
  }
}

TEST(ReasoningBudget, ForcesMoreTokensThanAStepTakes) {
  ReasoningLimit bound = limit(2, true);
  bound.closing.assign(3 * kForcedTokensMax, kEnough);
  bound.closing.push_back(kClose);
  Tokens expected = {0, 0};
  expected.insert(expected.end(), bound.closing.begin(), bound.closing.end());
  expected.push_back(0);
  SamplingParams params;
  params.reasoning = std::make_shared<const ReasoningLimit>(bound);
  EXPECT_EQ(answer(params, static_cast<int32_t>(expected.size()), false), expected);
}

TEST(ReasoningBudget, LeavesTheRandomNumbersOfTheAnswerAlone) {
  const kernels::Ops ops = plain_ops();
  SamplerScratch scratch(kVocab);
  SamplingParams params;
  params.seed = 11;
  Sampler free(params, Tokens{1}, kVocab, 40);
  params.reasoning = std::make_shared<const ReasoningLimit>(limit(4, true));
  SamplingParams with = params;
  Sampler bound(with, Tokens{1}, kVocab, 40);
  for (int32_t i = 0; i < 40; ++i) {
    std::vector<float> row = random_row(kVocab, static_cast<uint32_t>(i), 1);
    std::vector<float> copy = row;
    row[kClose] = copy[kClose] = -30;
    const int32_t token = free.sample(row, i, false, ops, scratch).chosen.token;
    const int32_t other = bound.sample(copy, i, false, ops, scratch).chosen.token;
    if (i < 4 || i > 5) {
      EXPECT_EQ(token, other) << i;
    }
  }
}

}  // namespace
}  // namespace weir::sample
