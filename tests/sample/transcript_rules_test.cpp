// Rules of transcripts, beside another implementation of them, in Python, on random logits; and case by
// case.
#include "sample/transcript_rules.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include "kernels/cpu_ops.h"
#include "sample/sampler.h"

namespace weir::sample {
namespace {

constexpr int32_t kVocab = 60, kBegin = 40, kEnd = 33;

const kernels::Ops& ops() { return kernels::ops_for(kernels::Isa::kScalar); }

TranscriptRules rules() {
  return {.suppressed = {3, 7, 38},
          .suppressed_first = {5, 33},
          .timestamp_begin = kBegin,
          .no_timestamps = 39,
          .end_of_text = kEnd,
          .initial_max = 6};
}

// The tokens that may come after these.
std::vector<int32_t> allowed(const TranscriptRules& rules, const std::vector<int32_t>& history,
                             std::vector<float> logits) {
  TranscriptState state(rules);
  for (const int32_t token : history) state.add(token);
  state.apply(logits, ops());
  std::vector<int32_t> tokens;
  for (int32_t i = 0; i < std::ssize(logits); ++i)
    if (logits[static_cast<size_t>(i)] > -std::numeric_limits<float>::infinity())
      tokens.push_back(i);
  return tokens;
}

std::vector<int32_t> range(int32_t begin, int32_t end) {
  std::vector<int32_t> tokens(static_cast<size_t>(end - begin));
  std::iota(tokens.begin(), tokens.end(), begin);
  return tokens;
}

// No timestamp is likely by itself, nor are all together.
std::vector<float> texts_likely() {
  std::vector<float> logits(kVocab, -20.0f);
  logits[10] = logits[kEnd] = 5;
  return logits;
}

uint64_t scatter(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

std::vector<float> random_logits(uint64_t number) {
  std::vector<float> logits;
  for (uint64_t i = 0; i < kVocab; ++i) {
    const bool text = i < kBegin;
    logits.push_back(static_cast<float>(scatter(number * 1000 + i) % 4096) / 256.0f -
                     (text && number % 2 == 1 ? 4.0f : 0.0f) +
                     (text && number % 3 == 0 ? 2.0f : 0.0f));
  }
  return logits;
}

std::vector<int32_t> random_history(uint64_t number) {
  std::vector<int32_t> history(scatter(number * 7 + 99) % 7);
  uint64_t last = kBegin;
  for (size_t i = 0; i < history.size(); ++i) {
    const uint64_t random = scatter(number * 31 + i);
    if (random % 3 == 0) last = std::min<uint64_t>(kVocab - 1, last + random / 3 % 4);
    history[i] = static_cast<int32_t>(random % 3 == 0 ? last : random / 3 % kEnd);
  }
  return history;
}

// The numbers on the right are those of a program in Python that was written from the description of
// the rules, not from this code.
TEST(TranscriptRules, AgreeWithAnotherImplementationOnRandomLogits) {
  uint64_t hash = 0;
  size_t left = 0, only_times = 0, only_text = 0;
  for (uint64_t number = 0; number < 4000; ++number) {
    const std::vector<int32_t> tokens =
        allowed(rules(), random_history(number), random_logits(number));
    for (const int32_t token : tokens) hash = scatter(hash ^ static_cast<uint64_t>(token + 1));
    hash = scatter(hash ^ 0x777);
    left += tokens.size();
    only_times += !tokens.empty() && tokens.front() >= kBegin;
    only_text += !tokens.empty() && tokens.back() < kBegin;
  }
  EXPECT_EQ(left, 97386u);
  EXPECT_EQ(only_times, 2794u);
  EXPECT_EQ(only_text, 526u);
  EXPECT_EQ(hash, 0xb26b9542e8715c6eu);
}

TEST(TranscriptRules, BeginWithATimestampThatIsNotLate) {
  EXPECT_EQ(allowed(rules(), {}, texts_likely()), range(kBegin, kBegin + 7));
  TranscriptRules anywhere = rules();
  anywhere.initial_max = -1;
  EXPECT_EQ(allowed(anywhere, {}, texts_likely()), range(kBegin, kVocab));
}

TEST(TranscriptRules, KeepPairsAndOrder) {
  const auto after = [](const std::vector<int32_t>& history) {
    const std::vector<int32_t> tokens = allowed(rules(), history, texts_likely());
    std::array<int32_t, 3> found = {0, 0, kVocab};  // Of text, of timestamps, the least of these.
    for (const int32_t token : tokens) {
      ++found[token < kBegin ? 0 : 1];
      if (token >= kBegin) found[2] = std::min(found[2], token);
    }
    return found;
  };
  const int32_t all = kBegin - 4;  // Without those that are suppressed.
  EXPECT_EQ(after({kBegin}), (std::array<int32_t, 3>{all, 0, kVocab}));
  EXPECT_EQ(after({kBegin, 10}), (std::array<int32_t, 3>{all, kVocab - kBegin - 1, kBegin + 1}));
  // The end of a stretch: the same time, a later one, or the end.
  EXPECT_EQ(after({kBegin, 10, 45}),
            (std::array<int32_t, 3>{kBegin - kEnd - 2, kVocab - 45, 45}));
  EXPECT_EQ(after({kBegin, 10, 45, 45}), (std::array<int32_t, 3>{all, 0, kVocab}));
  EXPECT_EQ(after({kBegin, 10, 45, 45, 11}), (std::array<int32_t, 3>{all, kVocab - 46, 46}));
}

TEST(TranscriptRules, PreferTimestampsThatAreLikelierTogetherThanAnyText) {
  std::vector<float> logits(kVocab, -20.0f);
  logits[10] = 1;
  for (int32_t i = 50; i < 54; ++i) logits[static_cast<size_t>(i)] = 0;  // ln 4 = 1.39.
  EXPECT_EQ(allowed(rules(), {kBegin, 10}, logits), range(kBegin + 1, kVocab));
  logits[10] = 1.5f;
  EXPECT_EQ(allowed(rules(), {kBegin, 10}, logits).front(), 0);
}

TEST(TranscriptRules, WithoutTimestampsSuppressTokensAlone) {
  TranscriptRules plain = rules();
  plain.timestamp_begin = -1;
  std::vector<int32_t> first = range(0, kVocab), later = first;
  std::erase_if(later, [](int32_t token) { return token == 3 || token == 7 || token == 38; });
  std::erase_if(first, [](int32_t token) {
    return token == 3 || token == 7 || token == 38 || token == 5 || token == 33;
  });
  EXPECT_EQ(allowed(plain, {}, random_logits(1)), first);
  EXPECT_EQ(allowed(plain, {45, 45, 45}, random_logits(1)), later);
}

// Numbers of files that do not fit the vocabulary change nothing, nor do they reach beyond a row.
TEST(TranscriptRules, TakeAnyNumbers) {
  for (const int32_t number : {-5, -1, 0, kVocab - 1, kVocab, 1 << 30}) {
    const TranscriptRules odd = {.suppressed = {number, -7, 1 << 30},
                                 .suppressed_first = {number},
                                 .timestamp_begin = number,
                                 .no_timestamps = number,
                                 .end_of_text = number,
                                 .initial_max = number};
    for (const std::vector<int32_t>& history :
         {std::vector<int32_t>{}, {0}, {kVocab - 1}, {0, kVocab - 1}, {kVocab - 1, kVocab - 1}})
      EXPECT_LE(allowed(odd, history, random_logits(3)).size(), size_t{kVocab});
  }
}

TEST(TranscriptRules, AreWhatLogProbabilitiesAreOf) {
  SamplingParams params;
  params.temperature = 0;
  params.transcript = std::make_shared<TranscriptRules>(TranscriptRules{.suppressed = {0, 1}});
  Sampler sampler(params, {}, 4, 1);
  SamplerScratch scratch(4);
  std::vector<float> logits = {9, std::nanf(""), 2, 2};
  const SampledToken token = sampler.sample(logits, 0, /*want_logprob=*/true, ops(), scratch);
  EXPECT_EQ(token.chosen.token, 2);
  EXPECT_NEAR(token.chosen.logprob, -std::log(2.0), 1e-6);
}

}  // namespace
}  // namespace weir::sample
