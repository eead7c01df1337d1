// The styles of routing, each against the plainest words for it.
#include "model/layers/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "kernels/cpu_ops.h"

namespace weir::model {
namespace {

struct Style {
  const char* name;
  Router router;
};

// As the families of these names have it.
const Style kStyles[] = {
    {"mixtral", {.score = Router::kSoftmax, .renormalise = true}},
    {"olmoe", {.score = Router::kSoftmax}},
    {"gpt_oss", {.score = Router::kSoftmaxOfTopK, .bias = true}},
    {"deepseek_v2", {.score = Router::kSoftmax, .groups = 4, .groups_kept = 2, .scale = 16}},
    {"deepseek_v3",
     {.score = Router::kSigmoid,
      .selection_bias = true,
      .group_score = Router::kTwoBest,
      .groups = 8,
      .groups_kept = 4,
      .renormalise = true,
      .epsilon = 1e-20f,
      .scale = 2.5f}},
    {"glm4_moe",
     {.score = Router::kSigmoid, .selection_bias = true, .renormalise = true, .epsilon = 1e-20f}},
    {"ernie4_5_moe", {.score = Router::kSoftmax, .selection_bias = true, .renormalise = true}},
    {"llama4", {.score = Router::kSigmoidOfTopK}},
    {"deepseek_v4",
     {.score = Router::kSqrtSoftplus,
      .selection_bias = true,
      .renormalise = true,
      .epsilon = 1e-20f,
      .scale = 1.5f}},
    {"phimoe", {.score = Router::kSparseMixer, .jitter = 0.2f}},
};

struct Chosen {
  std::vector<int32_t> experts;
  std::vector<double> weights;
};

std::vector<double> scores_of(const Router& r, const std::vector<float>& logits) {
  std::vector<double> p(logits.begin(), logits.end());
  if (r.score == Router::kSparseMixer) return p;
  if (r.score == Router::kSqrtSoftplus) {
    for (double& x : p) x = std::sqrt(std::log(1 + std::exp(x)));
    return p;
  }
  const bool sigmoid = r.score == Router::kSigmoid || r.score == Router::kSigmoidOfTopK;
  double sum = 0;
  for (size_t e = 0; e < p.size(); ++e) {
    p[e] = sigmoid ? 1 / (1 + std::exp(-double{logits[e]})) : std::exp(double{logits[e]});
    sum += p[e];
  }
  if (!sigmoid)
    for (double& x : p) x /= sum;
  return p;
}

// The weight of the expert at `rank` of `order`: the softmax of the logits near its own, without
// those of the ranks before.
double sparse_mixer(const Router& r, const std::vector<double>& logits,
                    const std::vector<size_t>& order, size_t rank) {
  const double best = logits[order[rank]];
  double sum = 0;
  for (size_t i = rank; i < order.size(); ++i) {
    const double logit = logits[order[i]];
    if ((best - logit) / std::max(std::abs(logit), best) <= 2 * double{r.jitter})
      sum += std::exp(logit - best);
  }
  return 1 / sum;
}

// The groups by their scores, best first.
std::vector<size_t> groups_by_score(const Router& r, const std::vector<double>& keys) {
  const auto groups = static_cast<size_t>(r.groups), size = keys.size() / groups;
  std::vector<double> score;
  for (size_t g = 0; g < groups; ++g) {
    std::vector<double> own(keys.begin() + static_cast<long>(g * size),
                            keys.begin() + static_cast<long>((g + 1) * size));
    std::ranges::sort(own, std::greater());
    score.push_back(r.group_score == Router::kBest ? own[0] : own[0] + own[1]);
  }
  std::vector<size_t> order(groups);
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::greater(), [&](size_t g) { return score[g]; });
  return order;
}

Chosen reference(const Router& r, size_t top_k, const std::vector<float>& bias,
                 const std::vector<float>& logits) {
  const std::vector<double> p = scores_of(r, logits);
  std::vector<double> keys = p;
  for (size_t e = 0; e < keys.size(); ++e) keys[e] += r.selection_bias ? double{bias[e]} : 0;
  const std::vector<size_t> groups = groups_by_score(r, keys);
  const size_t size = keys.size() / static_cast<size_t>(r.groups);
  std::vector<size_t> eligible;
  for (size_t g = 0; g < static_cast<size_t>(r.groups_kept); ++g)
    for (size_t e = 0; e < size; ++e) eligible.push_back(groups[g] * size + e);
  std::ranges::sort(eligible);
  std::ranges::stable_sort(eligible, std::greater(), [&](size_t e) { return keys[e]; });
  Chosen out;
  double sum = 0;
  for (size_t rank = 0; rank < top_k; ++rank) sum += p[eligible[rank]];
  for (size_t rank = 0; rank < top_k; ++rank) {
    const size_t e = eligible[rank];
    const bool divided = r.renormalise || r.score == Router::kSoftmaxOfTopK;
    out.experts.push_back(static_cast<int32_t>(e));
    out.weights.push_back(r.score == Router::kSparseMixer ? sparse_mixer(r, p, eligible, rank)
                                                          : r.scale * p[e] / (divided ? sum : 1));
  }
  return out;
}

Chosen chosen(const kernels::Ops& ops, const Router& r, size_t top_k,
              const std::vector<float>& bias, const std::vector<float>& logits,
              const int32_t* given = nullptr) {
  const auto experts = static_cast<int32_t>(logits.size());
  std::vector<float> scores = logits, weights(top_k);
  scores.resize(static_cast<size_t>(router_floats(r, experts)));
  Chosen out;
  out.experts.resize(top_k);
  choose(ops, r, experts, static_cast<int32_t>(top_k), r.selection_bias ? bias.data() : nullptr,
         given, scores.data(), out.experts.data(), weights.data());
  out.weights.assign(weights.begin(), weights.end());
  return out;
}

TEST(Router, ChoosesAsItsStyleSays) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  for (const auto& [name, router] : kStyles) {
    for (int round = 0; round < 200; ++round) {
      const size_t experts = round % 2 == 0 ? 16 : 64, top_k = round % 3 == 0 ? 1 : 8;
      std::vector<float> logits(experts), bias(experts);
      for (float& x : logits) x = 2 * normal(random);
      for (float& x : bias) x = normal(random);
      const Chosen expected = reference(router, top_k, bias, logits);
      const Chosen found = chosen(ops, router, top_k, bias, logits);
      ASSERT_EQ(found.experts, expected.experts) << name << ", round " << round;
      for (size_t rank = 0; rank < top_k; ++rank)
        ASSERT_NEAR(found.weights[rank], expected.weights[rank], 2e-6 * expected.weights[rank])
            << name << ", round " << round;
    }
  }
}

// What a table says is taken in its order, and counts as much as if it had been chosen by scores.
TEST(Router, TakesWhatATableSays) {
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  const Router router = {.score = Router::kSqrtSoftplus, .renormalise = true, .scale = 1.5f};
  const std::vector<float> logits = {-100, -1, 0, 1, 2, 100};
  const std::vector<int32_t> given = {3, 1, 5};
  const Chosen found = chosen(ops, router, 3, {}, logits, given.data());
  EXPECT_EQ(found.experts, given);
  const std::vector<double> scores = {std::sqrt(std::log(1 + std::exp(1))),
                                      std::sqrt(std::log(1 + std::exp(-1))), 10};
  const double sum = scores[0] + scores[1] + scores[2];
  for (size_t rank = 0; rank < 3; ++rank)
    EXPECT_NEAR(found.weights[rank], 1.5 * scores[rank] / sum, 1e-6);
}

TEST(Router, TakesTheLowerNumberOfEquals) {
  const kernels::Ops& ops = kernels::ops_for(kernels::Isa::kScalar);
  for (const auto& [name, router] : kStyles) {
    const Chosen found = chosen(ops, router, 3, std::vector<float>(16), std::vector<float>(16, 1));
    EXPECT_EQ(found.experts, (std::vector<int32_t>{0, 1, 2})) << name;
  }
}

// What cannot be chosen sensibly is chosen all the same: never an expert twice, none that is not
// there.
TEST(Router, ChoosesDifferentExpertsWhateverTheNumbers) {
  const kernels::Ops& ops = kernels::ops_for(kernels::detect_isa());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const auto& [name, router] : kStyles) {
    for (const float odd : {nan, infinity, -infinity, 1e38f}) {
      for (const bool all : {true, false}) {
        std::vector<float> logits(16, all ? odd : 1), bias = logits;
        logits[5] = bias[9] = odd;
        std::vector<int32_t> experts = chosen(ops, router, 8, bias, logits).experts;
        std::ranges::sort(experts);
        EXPECT_GE(experts.front(), 0) << name;
        EXPECT_LT(experts.back(), 16) << name;
        EXPECT_EQ(std::ranges::adjacent_find(experts), experts.end()) << name << " " << odd;
      }
    }
  }
}

}  // namespace
}  // namespace weir::model
