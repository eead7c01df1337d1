// DRY, XTC, top-n-sigma and the dynamic temperature: small rows worked out by hand, and a plain
// second implementation of llama.cpp's order.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <random>

#include "sample/dry_penalty.h"
#include "sample/filters.h"
#include "sample/philox.h"
#include "sample/sampler_draws.h"

namespace weir::sample {
namespace {

using Tokens = std::vector<int32_t>;

SamplingParams dry_params(float multiplier = 1, float base = 2, int32_t allowed = 2) {
  SamplingParams params;
  params.dry_multiplier = multiplier;
  params.dry_base = base;
  params.dry_allowed_length = allowed;
  params.dry_penalty_last_n = -1;
  return params;
}

std::vector<float> dry(const SamplingParams& params, const Tokens& prompt, const Tokens& output,
                       int32_t vocab) {
  SamplerScratch scratch(vocab);
  DryPenalty penalty(params, prompt, static_cast<int32_t>(output.size()));
  for (const int32_t token : output) penalty.add(token);
  std::vector<float> row(static_cast<size_t>(vocab));
  penalty.apply(row, scratch);
  return row;
}

// Every earlier position by itself: how long what ends there agrees with the end.
std::vector<float> plain_dry(const SamplingParams& params, Tokens tokens, int32_t vocab,
                             size_t free) {
  if (params.dry_penalty_last_n >= 0)
    tokens.erase(tokens.begin(),
                 tokens.end() - std::min<ptrdiff_t>(std::ssize(tokens), params.dry_penalty_last_n));
  std::map<int32_t, size_t> longest;
  for (size_t end = 1; end < tokens.size(); ++end) {
    size_t length = 0;
    while (length < end && tokens[end - 1 - length] == tokens[tokens.size() - 1 - length]) ++length;
    length = std::min(length, free);
    if (length < static_cast<size_t>(params.dry_allowed_length)) continue;
    size_t& known = longest[tokens[end]];
    known = std::max(known, length);
  }
  std::vector<float> row(static_cast<size_t>(vocab));
  for (const auto& [token, length] : longest)
    row[static_cast<size_t>(token)] -=
        params.dry_multiplier *
        std::pow(params.dry_base,
                 static_cast<float>(length) - static_cast<float>(params.dry_allowed_length));
  return row;
}

TEST(Dry, PenalisesWhatWouldGoOnWithARepetition) {
  // "1 2 3" has come before, followed by 4: three tokens agree, one more than are allowed.
  EXPECT_EQ(dry(dry_params(), {1, 2, 3, 4}, {1, 2, 3}, 6), (std::vector<float>{0, 0, 0, 0, -2, 0}));
  EXPECT_EQ(dry(dry_params(3), {1, 2, 3, 4}, {1, 2, 3}, 6),
            (std::vector<float>{0, 0, 0, 0, -6, 0}));
  // Two occurrences with two continuations; and one is longer.
  EXPECT_EQ(dry(dry_params(), {5, 1, 2, 3, 0, 1, 2, 4}, {5, 1, 2}, 6),
            (std::vector<float>{0, 0, 0, -2, -1, 0}));
  // Too short to count, and nothing to look at.
  EXPECT_EQ(dry(dry_params(), {2, 3, 1}, {2}, 6), std::vector<float>(6));
  EXPECT_EQ(dry(dry_params(), {1}, {}, 6), std::vector<float>(6));
  // Only the last four are searched.
  SamplingParams params = dry_params();
  params.dry_penalty_last_n = 4;
  EXPECT_EQ(dry(params, {1, 2, 3, 4}, {1, 2, 3}, 6), std::vector<float>(6));
  // However long it is, the penalty is a number.
  for (const float x : dry(dry_params(1, 10), Tokens(500, 3), Tokens(500, 3), 6))
    EXPECT_TRUE(std::isfinite(x));
}

TEST(Dry, DoesWhatAPlainSearchDoes) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const int32_t vocab = 2 + static_cast<int32_t>(random() % 5);
    Tokens prompt(random() % 40), output(random() % 40);
    for (Tokens* tokens : {&prompt, &output})
      for (int32_t& token : *tokens) token = static_cast<int32_t>(random()) & 0x7fff;
    for (Tokens* tokens : {&prompt, &output})
      for (int32_t& token : *tokens) token %= vocab;
    SamplingParams params = dry_params(0.5f, 1.25f, static_cast<int32_t>(random() % 4));
    if (round % 2) params.dry_penalty_last_n = static_cast<int32_t>(1 + random() % 60);
    Tokens all = prompt;
    all.insert(all.end(), output.begin(), output.end());
    size_t free = all.size();
    if (round % 3 == 0) {  // Token 0 breaks.
      auto breakers = std::make_shared<SequenceBreakers>();
      breakers->whole = {1};
      params.dry_breakers = breakers;
      free = static_cast<size_t>(std::find(all.rbegin(), all.rend(), 0) - all.rbegin());
    }
    const std::vector<float> expected = plain_dry(params, all, vocab, free);
    const std::vector<float> found = dry(params, prompt, output, vocab);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 1e-3 * std::abs(expected[i])) << "round " << round;
  }
}

TEST(Dry, StopsAtSequenceBreakers) {
  auto breakers = std::make_shared<SequenceBreakers>();
  breakers->whole = {1 << 3};
  breakers->rests = {{6, 7}, {6}};
  breakers->begun = {{5, 0}, {5, 1}};
  breakers->sort();
  const auto free = [&](const Tokens& tokens) {
    const auto breaker = breakers->find_last(tokens);
    return breaker ? tokens.size() - 1 - breaker->last : tokens.size();
  };
  EXPECT_EQ(free({}), 0u);
  EXPECT_EQ(free({1, 2}), 2u);
  EXPECT_EQ(free({1, 3, 1, 2}), 2u);
  EXPECT_EQ(free({3}), 0u);
  EXPECT_EQ(free({5, 6, 7, 1}), 1u);
  EXPECT_EQ(free({5, 6, 1, 1}), 2u);
  EXPECT_EQ(free({5, 1, 1}), 3u);
  EXPECT_EQ(free({1, 5}), 2u);
  SamplingParams params = dry_params();
  params.dry_breakers = breakers;
  EXPECT_EQ(dry(params, {3, 1, 2, 4, 3, 1, 2}, {}, 6), (std::vector<float>{0, 0, 0, 0, -1, 0}));
  EXPECT_EQ(dry(params, {1, 3, 2, 4, 1, 3, 2}, {}, 6), std::vector<float>(6));
}

// Every position by itself, from the end: how many of the last tokens no breaker is part of.
size_t plain_free(const SequenceBreakers& breakers, const Tokens& tokens) {
  for (size_t after = 0; after < tokens.size(); ++after) {
    const auto at = tokens.end() - 1 - static_cast<ptrdiff_t>(after);
    if (breakers.is_whole(*at)) return after;
    size_t longest = 0;
    for (const SequenceBreakers::Begun& begun : breakers.begun) {
      const Tokens& rest = breakers.rests[begun.rest];
      if (begun.token == *at && rest.size() <= after && rest.size() > longest &&
          std::equal(rest.begin(), rest.end(), at + 1))
        longest = rest.size();
    }
    if (longest > 0) return after - longest;
  }
  return tokens.size();
}

TEST(Dry, FindsBreakersAsAPlainSearchDoes) {
  std::mt19937 random(11);
  const auto below = [&](size_t n) { return random() % n; };
  size_t across = 0;
  for (int round = 0; round < 2000; ++round) {
    const auto vocab = static_cast<int32_t>(2 + below(4));
    const auto some = [&](size_t length) {
      Tokens tokens(length);
      for (int32_t& token : tokens) token = static_cast<int32_t>(below(vocab));
      return tokens;
    };
    SequenceBreakers unsorted;
    unsorted.whole = {below(3) == 0 ? 1u : 0u};
    for (size_t i = 0, n = 1 + below(6); i < n; ++i) unsorted.rests.push_back(some(1 + below(5)));
    for (size_t i = 0, n = below(9); i < n; ++i)
      unsorted.begun.push_back({static_cast<int32_t>(below(vocab)),
                                static_cast<uint32_t>(below(unsorted.rests.size()))});
    auto breakers = std::make_shared<SequenceBreakers>(unsorted);
    breakers->sort();
    SamplingParams params = dry_params(0.5f, 1.25f, static_cast<int32_t>(below(3)));
    if (round % 2) params.dry_penalty_last_n = static_cast<int32_t>(1 + below(30));
    params.dry_breakers = breakers;
    const Tokens prompt = some(below(30)), output = some(below(30));
    Tokens all = prompt;
    all.insert(all.end(), output.begin(), output.end());
    Tokens window = all;
    if (params.dry_penalty_last_n >= 0)
      window.erase(window.begin(), window.end() - std::min<ptrdiff_t>(std::ssize(window),
                                                                      params.dry_penalty_last_n));
    const size_t free = plain_free(unsorted, window);
    across += free < window.size() && unsorted.whole[0] == 0;
    const std::vector<float> expected = plain_dry(params, all, vocab, free);
    const std::vector<float> found = dry(params, prompt, output, vocab);
    for (size_t i = 0; i < expected.size(); ++i)
      ASSERT_NEAR(found[i], expected[i], 1e-3 * std::abs(expected[i])) << "round " << round;
    // At each length, not only at the last.
    std::optional<SequenceBreakers::Place> place;
    for (size_t n = 1; n <= all.size(); ++n) {
      const Tokens tokens(all.begin(), all.begin() + static_cast<ptrdiff_t>(n));
      place = breakers->find_next(tokens, place);
      ASSERT_EQ(place ? n - 1 - place->last : n, plain_free(unsorted, tokens)) << round;
    }
  }
  EXPECT_GT(across, 500u);
}

TEST(Xtc, KeepsTheLeastOfTheLikelyAndAllUnlikely) {
  const std::vector<float> row = {0.4f, 0.05f, 0.3f, 0.15f, 0.1f};
  const auto left = [&](float threshold) {
    std::vector<Candidate> candidates;
    for (const int32_t token : {3, 0, 2, 4, 1}) candidates.push_back({token, 0});
    const size_t n = exclude_top_choices(candidates, row, threshold);
    Tokens tokens;
    for (size_t i = 0; i < n; ++i) tokens.push_back(candidates[i].token);
    return tokens;
  };
  EXPECT_EQ(left(0.2f), (Tokens{3, 2, 4, 1}));  // Of 0 and 2, 2 stays.
  EXPECT_EQ(left(0.12f), (Tokens{3, 4, 1}));
  EXPECT_EQ(left(0.35f), (Tokens{3, 0, 2, 4, 1}));  // One alone is no choice.
  EXPECT_EQ(left(0.5f), (Tokens{3, 0, 2, 4, 1}));
}

TEST(TopNSigma, KeepsWhatIsNearTheBest) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  // Mean 2, deviation 2: at one sigma from 4 on, whatever has no chance beside it.
  std::vector<float> row = {0, 0, 4, kNone, 4, 2, 0, 4};
  std::vector<float> wide = row, none = row;
  keep_within_sigmas(row, 4, 1);
  EXPECT_EQ(row, (std::vector<float>{kNone, kNone, 4, kNone, 4, kNone, kNone, 4}));
  keep_within_sigmas(wide, 4, 1.5f);
  EXPECT_EQ(wide, (std::vector<float>{kNone, kNone, 4, kNone, 4, 2, kNone, 4}));
  keep_within_sigmas(none, 4, 3);
  EXPECT_EQ(none[0], 0);
}

TEST(DynamicTemperature, FollowsTheEntropyOfWhatIsLeft) {
  SamplingParams params;
  params.temperature = 1;
  params.dynatemp_range = 0.5f;
  const std::vector<Candidate> four = {{0, 0}, {1, 0}, {2, 0}, {3, 0}};
  const auto at = [&](const std::vector<float>& row) {
    return dynamic_temperature(params, four, row);
  };
  EXPECT_FLOAT_EQ(at({1, 1, 1, 1}), 1.5f);
  EXPECT_FLOAT_EQ(at({1, 0, 0, 0}), 0.5f);
  EXPECT_NEAR(at({1, 1, 0, 0}), 1, 1e-6);  // One bit of two.
  params.dynatemp_exponent = 2;
  EXPECT_NEAR(at({1, 1, 0, 0}), 0.75, 1e-6);
  params.dynatemp_range = 3;
  EXPECT_FLOAT_EQ(at({1, 0, 0, 0}), 0);
  std::vector<float> row = {0.5f, 0.25f, 0.25f, 0};
  reheat(four, row, 0.5f);
  EXPECT_EQ(row, (std::vector<float>{1, 0.25f, 0.25f, 0}));
  reheat(four, row, 0);
  EXPECT_EQ(row, (std::vector<float>{1, 0, 0, 0}));
}

// llama.cpp's order over whole rows: top_n_sigma, top_k, top_p, min_p, then XTC as `strikes` says,
// then the temperature.
std::vector<double> plain_chain(const std::vector<float>& row, const SamplingParams& p,
                                bool strikes) {
  std::vector<size_t> order(row.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return row[a] > row[b]; });
  const double best = row[order[0]];
  double mean = 0, squares = 0;
  for (const float x : row) mean += x / static_cast<double>(row.size());
  for (const float x : row) squares += (x - mean) * (x - mean);
  const double sigma = std::sqrt(squares / static_cast<double>(row.size()));
  if (p.top_n_sigma > 0)
    std::erase_if(order, [&](size_t t) { return row[t] < best - p.top_n_sigma * sigma; });
  if (p.top_k > 0) order.resize(std::min(order.size(), static_cast<size_t>(p.top_k)));
  const auto shares = [&](double temperature) {
    std::vector<double> share;
    for (const size_t t : order) share.push_back(std::exp((row[t] - best) / temperature));
    const double sum = std::accumulate(share.begin(), share.end(), 0.0);
    for (double& x : share) x /= sum;
    return share;
  };
  double before = 0;
  size_t kept = 0;
  for (const std::vector<double> share = shares(1); kept < order.size() && before < p.top_p;)
    before += share[kept++];
  order.resize(kept);
  std::erase_if(order, [&](size_t t) { return std::exp(row[t] - best) < p.min_p; });
  if (strikes) {
    const std::vector<double> share = shares(1);
    const auto likely =
        std::ranges::count_if(share, [&](double x) { return x >= p.xtc_threshold; });
    if (likely > 1) order.erase(order.begin(), order.begin() + likely - 1);
  }
  double temperature = p.temperature;
  if (p.dynatemp_range > 0 && order.size() > 1) {
    double entropy = 0;
    for (const double x : shares(1)) entropy -= x * std::log(x);
    const double low = std::max(p.temperature - p.dynatemp_range, 0.0f);
    const double high = p.temperature + p.dynatemp_range;
    temperature =
        low + (high - low) * std::pow(entropy / std::log(order.size()), p.dynatemp_exponent);
  }
  std::vector<double> result(row.size());
  const std::vector<double> share = shares(temperature);
  for (size_t i = 0; i < order.size(); ++i) result[order[i]] = share[i];
  return result;
}

TEST(LlamaSamplers, DrawWhatAPlainChainDescribes) {
  for (const int32_t vocab : {6, 70, 900}) {
    const std::vector<float> row = random_row(vocab, static_cast<uint32_t>(vocab), 2);
    const auto check = [&](const char* what, auto set) {
      SamplingParams params;
      params.seed = 9;
      set(params);
      const double strikes = params.has_xtc() ? double{params.xtc_probability} : 0;
      std::vector<double> expected = plain_chain(row, params, true);
      const std::vector<double> without = plain_chain(row, params, false);
      for (size_t i = 0; i < expected.size(); ++i)
        expected[i] = strikes * expected[i] + (1 - strikes) * without[i];
      expect_draws(row, params, expected, std::string(what) + " of " + std::to_string(vocab));
    };
    check("top_n_sigma", [](SamplingParams& p) { p.top_n_sigma = 1; });
    check("top_n_sigma and the rest", [](SamplingParams& p) {
      p.top_n_sigma = 1.5f;
      p.top_k = 20;
      p.min_p = 0.02f;
    });
    check("xtc", [](SamplingParams& p) { p.xtc_probability = 1; });
    check("xtc now and then", [](SamplingParams& p) {
      p.xtc_probability = 0.4f;
      p.xtc_threshold = 0.05f;
      p.temperature = 1.4f;
      p.top_k = 30;
      p.top_p = 0.9f;
    });
    check("dynamic temperature", [](SamplingParams& p) {
      p.dynatemp_range = 0.7f;
      p.dynatemp_exponent = 0.5f;
      p.temperature = 0.8f;
      p.top_k = 40;
      p.top_p = 0.95f;
      p.min_p = 0.05f;
    });
  }
}

TEST(LlamaSamplers, DrawXtcFromANumberOfItsOwn) {
  int equal = 0;
  for (uint32_t i = 0; i < 1000; ++i) {
    const bool strikes = philox_uniform(5, i, kXtcStream) < 0.5;
    equal += strikes == (philox_uniform(5, i) < 0.5);
  }
  EXPECT_NEAR(equal, 500, 80);
}

TEST(LlamaSamplers, DependOnTheRowAndTheSeedAlone) {
  constexpr int32_t kVocab = 300;
  const kernels::Ops ops = plain_ops();
  SamplingParams params = dry_params(0.8f, 1.75f, 1);
  params.top_n_sigma = 2;
  params.xtc_probability = 0.5f;
  params.xtc_threshold = 0.02f;
  params.dynatemp_range = 0.5f;
  params.temperature = 1;
  params.seed = 3;
  const Tokens prompt = {1, 2, 3, 1, 2};
  // Alone, and in turns with another sequence on the same scratch.
  const auto run = [&](bool shared) {
    SamplerScratch scratch(kVocab);
    SamplingParams others = params;
    others.seed = 4;
    Sampler sampler(params, prompt, kVocab, 60), other(others, prompt, kVocab, 60);
    Tokens tokens;
    for (int32_t i = 0; i < 60; ++i) {
      std::vector<float> row = random_row(kVocab, static_cast<uint32_t>(i % 7), 1);
      std::vector<float> copy = row;
      if (shared) other.sample(copy, i, i % 3 == 0, ops, scratch);
      tokens.push_back(sampler.sample(row, i, false, ops, scratch).chosen.token);
    }
    return tokens;
  };
  EXPECT_EQ(run(false), run(true));
}

}  // namespace
}  // namespace weir::sample
