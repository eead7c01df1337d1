// Dense and Moe: feed-forward networks, one for all tokens or chosen by token.
//
// Threads: plain data and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"
#include "kernels/ops.h"
#include "model/operations/norm.h"
#include "model/operations/rope.h"

namespace weir::model {

using kernels::Act;

struct Dense {
  int width = 0;
  Act act = Act::kSilu;
  bool xielu = false;  // In place of act, with numbers of the layer's own (kernels::Xielu).
  bool gated = true;   // act(gate(x)) * up(x); false: act(up(x)).
  // In place of up(x): what the token brings to this layer (ModelSpec::token_inputs).
  bool up_by_token = false;
  bool linear = false;    // Of one that is not gated: without an activation, of low rank.
  float gate_factor = 1;  // Multiplies what gate_proj gives.
  // Gates count by what they exceed the mean of their row by, plus so many standard deviations.
  std::optional<float> gate_cut{};
  std::optional<Norm> inner_norm{};  // Of what down_proj reads. Not of experts.
  bool bias = false;
  float limit = 0, up_offset = 0;  // As kernels::GatedAct's, of a gated one.
};

// How experts are chosen, and how much each counts (layers/router.h).
struct Router {
  enum Score : uint8_t {
    kSoftmax,        // Of all logits.
    kSoftmaxOfTopK,  // Of the chosen ones' logits.
    kSigmoid,        // Of each logit by itself.
    kSigmoidOfTopK,  // The same, but experts are chosen by logits.
    // Each choice by itself: the softmax of those logits at its rank that are near the best one,
    // by 2 * jitter at most relative to the larger magnitude.
    kSparseMixer,
    kSqrtSoftplus,  // sqrt(ln(1 + e^logit)), of each logit by itself.
  } score = kSoftmax;
  float jitter = 0;  // kSparseMixer's.
  // It reads the residual stream by a norm of its own, whose weights are mlp.gate.scale.
  bool own_norm = false;
  float norm_eps = 1e-6f;
  float logit_scale = 1;
  bool expert_scale = false;    // Weights are multiplied by a learned number per expert.
  bool bias = false;            // Of the router's linear layer.
  bool selection_bias = false;  // A learned number per expert that counts for the choice alone.
  // Above 0: a table [so many tokens, top_k] of the layer says which experts a token has (Hash
  // Layers, Roller et al. 2021); scores are only what they count.
  int token_table = 0;
  // Experts lie in groups; only those of the best groups may be chosen. A group counts as much as
  // its best expert, or as its two best together.
  enum GroupScore : uint8_t { kBest, kTwoBest } group_score = kBest;
  int groups = 1, groups_kept = 1;
  bool renormalise = false;  // Weights are divided by their sum + epsilon.
  float epsilon = 0;
  float least_sum = 0;  // By which they are divided where their sum is less.
  float scale = 1;
};

struct Moe {
  int num_experts = 0;
  int zero_experts = 0;  // Further ones, without weights, which give what they read.
  int top_k = 0;
  Dense expert{};
  Router router{};
  std::optional<Dense> shared{};
  // Weights multiply what an expert reads, not what it gives.
  bool weighs_input = false;
  bool shared_gate = false;  // The shared expert is multiplied by sigmoid(x . gate).

  int choices() const { return num_experts + zero_experts; }
};

std::string text(const Dense& d);               // Its part of a line of describe().
Result<void> check(const Dense& d, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const Dense&) { return nullptr; }

std::string text(const Moe& moe);               // Its part of a line of describe().
Result<void> check(const Moe& moe, int layer);  // `layer`: named in the error.
inline const Rope* rope_in(const Moe&) { return nullptr; }

}  // namespace weir::model
