// Sampler against a straightforward reference in double precision: full sorts, no short cuts.
#include "sample/sampler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "sample/sampler_draws.h"

namespace weir::sample {
namespace {

struct History {
  std::vector<int32_t> prompt, output;
};

// The probability of each token, by the definitions; a token that a filter removes has 0.
std::vector<double> reference(const std::vector<float>& logits, const SamplingParams& p,
                              const History& history) {
  const size_t n = logits.size();
  std::vector<double> x(logits.begin(), logits.end());
  const size_t all = history.prompt.size() + history.output.size();
  const size_t last = p.repeat_last_n < 0 ? all : static_cast<size_t>(p.repeat_last_n);
  std::map<int32_t, int> seen, output;
  for (size_t i = all - std::min(last, all); i < all; ++i) {
    const bool of_prompt = i < history.prompt.size();
    const int32_t t = of_prompt ? history.prompt[i] : history.output[i - history.prompt.size()];
    ++seen[t];
    if (!of_prompt) ++output[t];
  }
  for (size_t t = 0; t < n; ++t) {
    const auto id = static_cast<int32_t>(t);
    const int count = output.contains(id) ? output.at(id) : 0;
    if (seen.contains(id))
      x[t] = x[t] > 0 ? x[t] / p.repetition_penalty : x[t] * p.repetition_penalty;
    if (count > 0) x[t] -= p.frequency_penalty * count + p.presence_penalty;
  }
  for (const auto& [token, bias] : p.logit_bias) x[static_cast<size_t>(token)] += bias;
  if (static_cast<int32_t>(history.output.size()) < p.min_tokens)
    for (const int32_t t : p.stop_token_ids) x[static_cast<size_t>(t)] = -kInfinity;

  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] > x[b]; });
  std::vector<double> prob(n);
  if (p.temperature == 0) {
    prob[order[0]] = 1;
    return prob;
  }
  const auto normalise = [&] {
    const double sum = std::accumulate(prob.begin(), prob.end(), 0.0);
    for (double& v : prob) v /= sum;
  };
  for (size_t t = 0; t < n; ++t) prob[t] = std::exp((x[t] - x[order[0]]) / p.temperature);
  if (p.top_k > 0)
    for (size_t i = static_cast<size_t>(p.top_k); i < n; ++i) prob[order[i]] = 0;
  normalise();
  if (p.top_p < 1) {
    double before = 0;
    for (const size_t t : order) {
      const double own = prob[t];
      if (before >= p.top_p) prob[t] = 0;
      before += own;
    }
    normalise();
  }
  for (double& v : prob)
    if (v < p.min_p * prob[order[0]]) v = 0;
  normalise();
  if (p.typical_p < 1) {
    double entropy = 0;
    for (const double v : prob)
      if (v > 0) entropy -= v * std::log(v);
    std::vector<size_t> typical(order);
    const auto distance = [&](size_t t) {
      return prob[t] > 0 ? std::abs(-std::log(prob[t]) - entropy) : 1e300;
    };
    std::stable_sort(typical.begin(), typical.end(),
                     [&](size_t a, size_t b) { return distance(a) < distance(b); });
    double before = 0;
    std::vector<double> kept(n);
    for (const size_t t : typical) {
      if (before < p.typical_p) kept[t] = prob[t];
      before += prob[t];
    }
    prob = kept;
    normalise();
  }
  return prob;
}

void expect_distribution(const std::vector<float>& row, const SamplingParams& params,
                         const std::string& what) {
  expect_draws(row, params, reference(row, params, {}), what);
}

TEST(Sampler, DrawsFromTheDistributionThatItsParametersDescribe) {
  for (const int32_t vocab : {5, 64, 257, 1500}) {
    const std::vector<float> row = random_row(vocab, static_cast<uint32_t>(vocab));
    const auto check = [&](const char* what, auto set) {
      SamplingParams params;
      params.seed = 42;
      set(params);
      expect_distribution(row, params, std::string(what) + " of " + std::to_string(vocab));
    };
    check("plain", [](SamplingParams&) {});
    check("hot", [](SamplingParams& p) { p.temperature = 1.7f; });
    check("cold", [](SamplingParams& p) { p.temperature = 0.3f; });
    check("top_k", [](SamplingParams& p) { p.top_k = 4; });
    check("top_k beyond the blocks", [](SamplingParams& p) { p.top_k = 200; });
    check("top_p", [](SamplingParams& p) { p.top_p = 0.8f; });
    check("top_p, flat", [](SamplingParams& p) {
      p.top_p = 0.97f;
      p.temperature = 2;
    });
    check("min_p", [](SamplingParams& p) { p.min_p = 0.05f; });
    check("min_p 1", [](SamplingParams& p) { p.min_p = 1; });
    check("typical_p", [](SamplingParams& p) { p.typical_p = 0.6f; });
    check("all filters", [](SamplingParams& p) {
      p.temperature = 1.3f;
      p.top_k = 50;
      p.top_p = 0.9f;
      p.min_p = 0.02f;
      p.typical_p = 0.8f;
    });
    check("bias", [](SamplingParams& p) { p.logit_bias = {{1, 9.0f}, {2, -100.0f}, {3, 4.0f}}; });
    check("min_tokens", [](SamplingParams& p) {
      p.min_tokens = 1'000'000;
      p.stop_token_ids = {0, 4};
    });
  }
}

TEST(Sampler, PenalisesAsTheReferenceDoesThroughoutASequence) {
  const kernels::Ops ops = plain_ops();
  constexpr int32_t kVocab = 40;
  SamplerScratch scratch(kVocab);
  for (uint32_t round = 0; round < 200; ++round) {
    SamplingParams params;
    params.temperature = 0;  // The reference's argmax shows each change of the logits.
    params.repetition_penalty = round % 3 == 0 ? 1 : 1 + static_cast<float>(round % 7) / 8;
    params.frequency_penalty = round % 2 ? 0.4f : -0.3f;
    params.presence_penalty = round % 5 ? 0.7f : 0;
    params.repeat_last_n = std::array{-1, 0, 1, 4, 12, 1000}[round / 5 % 6];
    params.stop_token_ids = {3};
    params.min_tokens = 6;
    History history{{1, 2, 3, 3, 9}, {}};
    Sampler sampler(params, history.prompt, kVocab, 30);
    for (int32_t i = 0; i < 30; ++i) {
      const std::vector<float> row = random_row(kVocab, round * 100 + static_cast<uint32_t>(i), 1);
      const std::vector<double> expected = reference(row, params, history);
      std::vector<float> logits = row;
      const int32_t token = sampler.sample(logits, i, false, ops, scratch).chosen.token;
      ASSERT_EQ(expected[static_cast<size_t>(token)], 1) << "round " << round << " position " << i;
      if (i < params.min_tokens) {
        ASSERT_NE(token, 3);
      }
      history.output.push_back(token);
    }
  }
}

TEST(Sampler, ReportsLogProbabilitiesOfTheRawDistribution) {
  const kernels::Ops ops = plain_ops();
  constexpr int32_t kVocab = 3001;
  SamplerScratch scratch(kVocab);
  const std::vector<float> row = random_row(kVocab, 5);
  double sum = 0;
  for (const float x : row) sum += std::exp(static_cast<double>(x));
  std::vector<int32_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return row[static_cast<size_t>(a)] > row[static_cast<size_t>(b)];
  });
  for (const float temperature : {0.0f, 0.7f}) {
    for (const int32_t top : {0, 1, 20}) {
      SamplingParams params;
      params.temperature = temperature;
      params.top_k = 5;
      params.top_logprobs = top;
      params.frequency_penalty = 1.5f;
      params.logit_bias = {{order[0], -50.0f}, {order[30], 6.0f}};
      Sampler sampler(params, {}, kVocab, 20);
      for (int32_t i = 0; i < 20; ++i) {
        std::vector<float> logits = row;
        const SampledToken sampled = sampler.sample(logits, i, true, ops, scratch);
        EXPECT_NEAR(sampled.chosen.logprob,
                    row[static_cast<size_t>(sampled.chosen.token)] - std::log(sum), 1e-5);
        ASSERT_EQ(sampled.top.size(), static_cast<size_t>(top));
        for (size_t k = 0; k < sampled.top.size(); ++k) {
          EXPECT_EQ(sampled.top[k].token, order[k]);
          EXPECT_NEAR(sampled.top[k].logprob, row[static_cast<size_t>(order[k])] - std::log(sum),
                      1e-5);
        }
      }
    }
  }
}

TEST(Sampler, ReportsTheTokensThatAreAskedForInTheirOrder) {
  const kernels::Ops ops = plain_ops();
  SamplingParams params;
  params.temperature = 0;
  params.reported = {3, 0};
  params.top_logprobs = 2;
  params.logit_bias = {{3, 50.0f}};  // Log-probabilities are those of the raw distribution.
  std::vector<float> logits = {1, 5, -2, 0.5f, 4};
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x});
  Sampler sampler(params, std::vector<int32_t>{1}, 5, 1);
  SamplerScratch scratch(5);
  const SampledToken token = sampler.sample(logits, 0, true, ops, scratch);
  EXPECT_EQ(token.chosen.token, 3);
  ASSERT_EQ(token.top.size(), 2u);
  EXPECT_EQ(token.top[0].token, 3);
  EXPECT_EQ(token.top[1].token, 0);
  EXPECT_NEAR(token.top[0].logprob, 0.5 - std::log(sum), 1e-6);
  EXPECT_NEAR(token.top[1].logprob, 1 - std::log(sum), 1e-6);
}

TEST(Sampler, GivesTheSameTokensForTheSameSeedAndOthersForAnother) {
  const kernels::Ops ops = plain_ops();
  constexpr int32_t kVocab = 500;
  SamplerScratch scratch(kVocab);
  const auto run = [&](uint64_t seed) {
    SamplingParams params;
    params.seed = seed;
    params.top_p = 0.95f;
    Sampler sampler(params, {}, kVocab, 50);
    std::vector<int32_t> tokens;
    for (int32_t i = 0; i < 50; ++i) {
      std::vector<float> logits = random_row(kVocab, static_cast<uint32_t>(i));
      tokens.push_back(sampler.sample(logits, i, false, ops, scratch).chosen.token);
    }
    return tokens;
  };
  EXPECT_EQ(run(1), run(1));
  EXPECT_NE(run(1), run(2));
  EXPECT_NE(run(1), run((uint64_t{1} << 40) + 1));
}

TEST(Sampler, TakesTheFirstOfEqualsAndExactlyTopK) {
  const kernels::Ops ops = plain_ops();
  SamplerScratch scratch(1000);
  SamplingParams params;
  params.temperature = 0;
  Sampler greedy(params, {}, 1000, 1);
  std::vector<float> row(1000, 1.5f);
  EXPECT_EQ(greedy.sample(row, 0, false, ops, scratch).chosen.token, 0);
  params.temperature = 1;
  params.top_k = 3;
  Sampler sampler(params, {}, 1000, 1000);
  for (int32_t i = 0; i < 1000; ++i) {
    std::vector<float> flat(1000, 1.5f);
    EXPECT_LT(sampler.sample(flat, i, false, ops, scratch).chosen.token, 3);
  }
}

TEST(Sampler, SurvivesRowsThatAreNotNumbers) {
  const kernels::Ops ops = plain_ops();
  constexpr int32_t kVocab = 130;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  SamplerScratch scratch(kVocab);
  std::vector<std::vector<float>> rows = {
      std::vector<float>(kVocab, kNan), std::vector<float>(kVocab, -kInfinity),
      std::vector<float>(kVocab, kInfinity), std::vector<float>(kVocab, 1e38f),
      std::vector<float>(kVocab, -3e38f)};
  rows.push_back(random_row(kVocab, 1));
  rows.back()[0] = kNan;
  rows.back()[77] = 50;
  rows.back()[129] = -kInfinity;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (int variant = 0; variant < 32; ++variant) {
      SamplingParams params;
      params.temperature = variant & 1 ? 1.0f : variant & 2 ? 1e-30f : 0.0f;
      params.top_k = variant & 4 ? 10 : 0;
      params.top_p = variant & 8 ? 0.9f : 1.0f;
      params.typical_p = variant & 16 ? 0.5f : 1.0f;
      params.min_p = variant & 2 ? 0.1f : 0;
      params.repetition_penalty = 1.1f;
      params.top_logprobs = variant % 3;
      Sampler sampler(params, std::vector<int32_t>{0, 5}, kVocab, 4);
      std::vector<float> logits = rows[r];
      const SampledToken sampled = sampler.sample(logits, 0, variant % 2 == 0, ops, scratch);
      ASSERT_GE(sampled.chosen.token, 0);
      ASSERT_LT(sampled.chosen.token, kVocab);
      EXPECT_EQ(sampled.continuation == Continuation::kNoNumbers, r < 3) << r;
      if (r + 1 == rows.size()) {
        EXPECT_EQ(sampled.chosen.token, 77);
      }
    }
    std::vector<float> logits = rows[r];
    EXPECT_EQ(score_token(logits, 5, {}, ops, scratch).has_numbers, r >= 3) << r;
  }
}

// What a mask or a ban leaves nothing of had numbers all the same.
TEST(Sampler, ARowOfWhichNothingIsAllowedIsNotOneWithoutNumbers) {
  const kernels::Ops ops = plain_ops();
  SamplerScratch scratch(8);
  SamplingParams params;
  params.temperature = 0;
  params.stop_token_ids = {0, 1, 2, 3, 4, 5, 6, 7};
  params.min_tokens = 4;
  Sampler sampler(params, {}, 8, 4);
  std::vector<float> logits(8, 1.0f);
  EXPECT_EQ(sampler.sample(logits, 0, false, ops, scratch).continuation, Continuation::kOpen);
  // One number is enough, wherever it is.
  logits.assign(8, std::numeric_limits<float>::quiet_NaN());
  logits.back() = -5;
  params.min_tokens = 0;
  const SampledToken token = sampler.sample(logits, 1, false, ops, scratch);
  EXPECT_EQ(token.continuation, Continuation::kOpen);
  EXPECT_EQ(token.chosen.token, 7);
}

TEST(Sampler, IgnoresIdsOutsideTheVocabulary) {
  const kernels::Ops ops = plain_ops();
  SamplerScratch scratch(10);
  SamplingParams params;
  params.temperature = 0;
  params.repetition_penalty = 2;
  params.logit_bias = {{-1, 5.0f}, {10, 5.0f}, {7, 100.0f}};
  params.stop_token_ids = {-5, 999, 3};
  params.min_tokens = 2;
  Sampler sampler(params, std::vector<int32_t>{-3, 12, 1 << 30}, 10, 2);
  std::vector<float> row(10, 0);
  EXPECT_EQ(sampler.sample(row, 0, true, ops, scratch).chosen.token, 7);
}

}  // namespace
}  // namespace weir::sample
