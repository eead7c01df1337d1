#include "model/layers/router.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace weir::model {

namespace {

constexpr float kTaken = -std::numeric_limits<float>::infinity();
constexpr float kLeast = std::numeric_limits<float>::lowest();  // Of what may still be chosen.

bool has_keys(const Router& router) { return router.selection_bias || router.groups > 1; }

// What logits make of the experts, from 0 up.
void score(const kernels::Ops& ops, Router::Score score, int32_t experts, float* scores) {
  switch (score) {
    case Router::kSoftmax:
    case Router::kSoftmaxOfTopK:  // Is the softmax over all, renormalised.
      ops.softmax(scores, experts, scores);
      break;
    case Router::kSigmoid:
      ops.act(kernels::Act::kSigmoid, experts, scores);
      break;
    case Router::kSqrtSoftplus:
      // In doubles, and split so that no power of e overflows.
      for (int32_t e = 0; e < experts; ++e) {
        const double x = scores[e];
        scores[e] =
            static_cast<float>(std::sqrt(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x)))));
      }
      break;
    case Router::kSigmoidOfTopK:
    case Router::kSparseMixer:  // Experts are chosen by logits.
      for (int32_t e = 0; e < experts; ++e)
        if (!(scores[e] > kLeast)) scores[e] = kLeast;
      return;
  }
  for (int32_t e = 0; e < experts; ++e)
    if (!(scores[e] >= 0)) scores[e] = 0;  // A NaN must not stop the selection.
}

// The largest of x; the first of equals.
int32_t best_of(const float* x, int32_t n) {
  return static_cast<int32_t>(std::max_element(x, x + n) - x);
}

float group_score(Router::GroupScore score, float* keys, int32_t size) {
  const int32_t best = best_of(keys, size);
  if (score == Router::kBest || size == 1) return keys[best];
  float second = kLeast;
  for (int32_t e = 0; e < size; ++e)
    if (e != best) second = std::max(second, keys[e]);
  return std::max(keys[best] + second, kLeast);
}

// The best one's softmax among those near it; what is taken is none of them.
float share_of_best(const float* logits, int32_t experts, int32_t best, float jitter) {
  const float most = logits[best];
  float sum = 0;
  for (int32_t e = 0; e < experts; ++e)
    if (!((most - logits[e]) / std::max(std::abs(logits[e]), most) > 2 * jitter))
      sum += std::exp(logits[e] - most);
  return 1 / sum;
}

// Leaves the experts of the best groups.
void keep_groups(const Router& router, int32_t experts, float* keys) {
  const int32_t groups = router.groups, size = experts / groups;
  std::array<float, kRouterGroupsMax> scores;
  for (int32_t g = 0; g < groups; ++g)
    scores[static_cast<size_t>(g)] = group_score(router.group_score, keys + g * size, size);
  std::array<bool, kRouterGroupsMax> kept{};
  for (int32_t i = 0; i < router.groups_kept; ++i) {
    const auto best = static_cast<size_t>(best_of(scores.data(), groups));
    kept[best] = true;
    scores[best] = kTaken;
  }
  for (int32_t e = 0; e < experts; ++e)
    if (!kept[static_cast<size_t>(e / size)]) keys[e] = kTaken;
}

}  // namespace

int32_t router_floats(const Router& router, int32_t experts) {
  return has_keys(router) ? 2 * experts : experts;
}

void choose(const kernels::Ops& ops, const Router& router, int32_t experts, int32_t top_k,
            const float* selection_bias, const int32_t* given, float* scores, int32_t* choice,
            float* weight) {
  score(ops, router.score, experts, scores);
  float* keys = scores;  // By which experts are chosen.
  if (has_keys(router)) {
    keys = scores + experts;
    for (int32_t e = 0; e < experts; ++e) {
      keys[e] = scores[e] + (selection_bias == nullptr ? 0 : selection_bias[e]);
      if (!(keys[e] > kLeast)) keys[e] = kLeast;
    }
    if (router.groups > 1) keep_groups(router, experts, keys);
  }
  float sum = 0;
  for (int32_t rank = 0; rank < top_k; ++rank) {
    const int32_t best = given == nullptr ? best_of(keys, experts) : given[rank];
    choice[rank] = best;
    weight[rank] = router.score == Router::kSparseMixer
                       ? share_of_best(scores, experts, best, router.jitter)
                       : scores[best];
    sum += weight[rank];
    keys[best] = kTaken;
  }
  if (router.score == Router::kSigmoidOfTopK) ops.act(kernels::Act::kSigmoid, top_k, weight);
  const bool renormalise = router.renormalise || router.score == Router::kSoftmaxOfTopK;
  const float total = std::max(sum + router.epsilon, router.least_sum);
  const float factor = renormalise && total > 0 ? router.scale / total : router.scale;
  for (int32_t rank = 0; rank < top_k; ++rank) weight[rank] *= factor;
}

}  // namespace weir::model
