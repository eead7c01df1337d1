#include "model/operations/attention.h"

#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

namespace {

std::string qk_norm_text(const Attention& a) {
  std::string s = a.qk_norm_kind == Norm::kRms ? " qk-norm" : " qk-layernorm";
  if (a.qk_norm == Attention::kAllHeads) s += " over all heads";
  if (a.qk_norm == Attention::kEachHead) s += " by weights of each head";
  if (!a.qk_norm_weight) s += " without weights";
  if (a.qk_norm_bias) s += " bias";
  if (a.qk_norm_offset != 0) s += " 1+w";
  if (a.qk_norm_after_rope) s += " after rope";
  return s;
}

}  // namespace

std::string text(const Attention& a) {
  std::string s = format("gqa %d/%dx%d", a.num_heads, a.num_kv_heads, a.head_dim);
  if (a.v_dim() != a.head_dim) s += format(" values %d", a.v_dim());
  if (a.window > 0) s += format(a.chunks ? " chunks %d" : " window %d", a.window);
  s += text(a.rope);
  s += " scale " + number(a.scale);
  if (a.logit_softcap > 0) s += " softcap " + number(a.logit_softcap);
  if (a.qkv_limit > 0) s += " limit " + number(a.qkv_limit);
  if (a.position_beta != 0)
    s += " queries x1+" + number(a.position_beta) + format(" ln by %d tokens", a.position_step);
  if (a.qk_norm != Attention::kNoQkNorm) s += qk_norm_text(a);
  if (a.v_norm) s += " v-norm";
  if (a.values_are_keys) s += " values are keys";
  if (a.conv_taps > 0) s += format(" conv %d", a.conv_taps);
  if (a.qkv_bias) s += a.key_bias ? " qkv-bias" : " qv-bias";
  if (a.out_bias) s += " out-bias";
  if (a.out_norm) s += " out norm";
  if (a.sinks) s += " sinks";
  if (a.out_gate == Attention::kAfterQuery) s += " gated";
  if (a.out_gate == Attention::kOwnModule) s += " gated by gate_proj";
  return s;
}

Result<void> check(const Attention& a, int layer) {
  if (a.num_heads < 1 || a.num_kv_heads < 1 || a.num_heads % a.num_kv_heads != 0)
    return wrong(layer, "expected query heads to be a multiple of key-value heads, found " +
                            std::to_string(a.num_heads) + " and " + std::to_string(a.num_kv_heads));
  if (a.head_dim < 1 || a.head_dim > 1024)
    return wrong(layer, "expected a head_dim from 1 to 1024, found " + std::to_string(a.head_dim));
  if (a.v_head_dim < 0 || a.v_head_dim > 1024)
    return wrong(layer,
                 "expected a v_head_dim from 1 to 1024, found " + std::to_string(a.v_head_dim));
  const Rope& r = a.rope;
  if (r.dim < 0 || r.dim > a.head_dim || r.dim % 2 != 0)
    return wrong(layer, "expected an even number of rotary dimensions up to " +
                            std::to_string(a.head_dim) + ", found " + std::to_string(r.dim));
  WEIR_TRY(check(r, layer));
  if (a.chunks && a.window < 1)
    return wrong(layer, "expected chunks of at least 1 token, found " + std::to_string(a.window));
  if (a.position_step < 1 || a.position_shift < 0)
    return wrong(layer,
                 "expected original_max_position_embeddings or floor_scale of at least 1, "
                 "found " +
                     std::to_string(a.position_step));
  if (a.conv_taps != 0 && (a.conv_taps < 2 || a.conv_taps > kTapsMax))
    return wrong(layer, "expected a conv_window from 2 to " + std::to_string(kTapsMax) +
                            ", found " + std::to_string(a.conv_taps));
  WEIR_TRY(check_not_negative(layer, {{"rms_norm_eps", a.qk_norm_eps},
                                      {"attn_logit_softcapping", a.logit_softcap},
                                      {"clip_qkv", a.qkv_limit},
                                      {"llama_4_scaling_beta or attn_scale", a.position_beta}}));
  return check_positive(layer, {{"query_pre_attn_scalar or attention_multiplier", a.scale}});
}

}  // namespace weir::model
