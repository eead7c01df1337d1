#include "model/operations/feed_forward.h"

#include <algorithm>
#include <array>

#include "model/layers/router.h"
#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

std::string text(const Dense& f) {
  static constexpr std::array kGated = {"swiglu", "geglu-tanh",  "geglu", "relu2-glu",
                                        "reglu",  "quick-geglu", "glu"};
  static constexpr std::array kPlain = {"silu", "gelu-tanh",  "gelu",   "relu2",
                                        "relu", "quick-gelu", "sigmoid"};
  const auto act = static_cast<size_t>(f.act);
  const char* name = f.xielu ? "xielu" : f.gated ? kGated[act] : kPlain[act];
  std::string s = format("%s %d", name, f.width);
  if (f.limit > 0) s += " limit " + number(f.limit);
  if (f.up_offset != 0) s += " up + " + number(f.up_offset);
  if (f.up_by_token) s += " by token";
  if (f.linear) s = format("low rank %d", f.width);
  if (f.gate_factor != 1) s += " gates x" + number(f.gate_factor);
  if (f.gate_cut) s += " above " + number(*f.gate_cut) + " deviations";
  if (f.inner_norm) s += " inner norm";
  if (f.bias) s += " bias";
  return s;
}

namespace {

std::string text(const Router& r) {
  static constexpr std::array kScores = {"softmax",          "softmax of top k", "sigmoid",
                                         "sigmoid of top k", "sparse mixer",     "sqrt softplus"};
  std::string s = kScores[r.score];
  if (r.jitter != 0) s += " jitter " + number(r.jitter);
  if (r.bias) s += " bias";
  if (r.selection_bias) s += " chosen with bias";
  if (r.token_table > 0) s += " chosen by token";
  if (r.groups > 1) s += format(" in %d of %d groups", r.groups_kept, r.groups);
  if (r.groups > 1 && r.group_score == Router::kTwoBest) s += " by their two best";
  if (r.renormalise) s += " renormalised";
  if (r.scale != 1) s += " x" + number(r.scale);
  if (r.expert_scale) s += " by expert";
  if (r.own_norm) s += " own norm";
  if (r.logit_scale != 1) s += " logits x" + number(r.logit_scale);
  return s;
}

constexpr int kTokenTableMax = 1 << 24;  // More than the largest published vocabulary, 100 times.

Result<void> check_router(const Router& r, const Moe& moe, int layer) {
  if (r.groups < 1 || r.groups > kRouterGroupsMax || moe.choices() % r.groups != 0)
    return wrong(layer, "expected 1 to " + std::to_string(kRouterGroupsMax) +
                            " groups (n_group) that share " + std::to_string(moe.choices()) +
                            " experts evenly, found " + std::to_string(r.groups));
  if (r.groups_kept < 1 || r.groups_kept > r.groups)
    return wrong(layer, "expected a topk_group from 1 to " + std::to_string(r.groups) + ", found " +
                            std::to_string(r.groups_kept));
  if (const int left = moe.choices() / r.groups * r.groups_kept; moe.top_k > left)
    return wrong(layer, "expected at most " + std::to_string(left) +
                            " experts per token, which topk_group leaves; found " +
                            std::to_string(moe.top_k));
  if (r.token_table > 0 && (r.selection_bias || r.groups > 1))
    return wrong(layer, "expected no groups and no bias where tokens say their experts");
  if (r.token_table > 0 && r.score != Router::kSqrtSoftplus && r.score != Router::kSoftmax &&
      r.score != Router::kSigmoid)
    return wrong(layer, "expected scores of all experts where tokens say theirs");
  WEIR_TRY(check_size(layer, "vocab_size", r.token_table, 0, kTokenTableMax));
  WEIR_TRY(check_positive(layer, {{"the router's scale of logits", r.logit_scale}}));
  WEIR_TRY(check_not_negative(layer, {{"rms_norm_eps", r.norm_eps},
                                      {"the router's epsilon", r.epsilon},
                                      {"moe_norm_min", r.least_sum},
                                      {"router_jitter_noise", r.jitter}}));
  return check_positive(layer, {{"routed_scaling_factor", r.scale}});
}

}  // namespace

std::string text(const Moe& moe) {
  std::string s = format("moe %d of %d x ", moe.top_k, moe.num_experts) + text(moe.expert);
  if (moe.zero_experts > 0) s += format(" and %d that give what they read", moe.zero_experts);
  s += ", " + text(moe.router);
  if (moe.weighs_input) s += " on inputs";
  if (moe.shared) s += ", shared " + text(*moe.shared);
  if (moe.shared_gate) s += " gated";
  return s;
}

Result<void> check(const Dense& dense, int layer) {
  WEIR_TRY(check_positive(layer, {{"mlp_multipliers", dense.gate_factor}}));
  return check_not_negative(layer, {{"swiglu_limit", dense.limit}});
}

Result<void> check(const Moe& moe, int layer) {
  constexpr int kExpertsMax = 4096;  // Eight times the most published.
  if (moe.num_experts > kExpertsMax || moe.zero_experts > kExpertsMax)
    return wrong(layer, "expected at most " + std::to_string(kExpertsMax) + " experts, found " +
                            std::to_string(std::max(moe.num_experts, moe.zero_experts)));
  WEIR_TRY(check_size(layer, "zero_expert_num", moe.zero_experts, 0, kExpertsMax));
  if (moe.num_experts < 1 || moe.top_k < 1 || moe.top_k > moe.choices())
    return wrong(layer, "expected 1 to " + std::to_string(moe.choices()) +
                            " experts per token, found " + std::to_string(moe.top_k));
  if (moe.weighs_input && moe.expert.bias)
    return wrong(layer, "expected experts without biases where inputs are weighted");
  WEIR_TRY(check(moe.expert, layer));
  return check_router(moe.router, moe, layer);
}

}  // namespace weir::model
