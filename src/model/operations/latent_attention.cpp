#include "model/operations/latent_attention.h"

#include "kernels/ops.h"
#include "model/operations/check_sizes.h"
#include "model/operations/describe_sizes.h"

namespace weir::model {

namespace {

Result<void> check(const Indexer& indexer, const LatentAttention& a, int layer) {
  if (indexer.heads == 0) return {};
  WEIR_TRY(check_index(layer, {indexer.heads, indexer.dim, indexer.top_k, a.rope.dim}));
  if (a.q_rank == 0)
    return wrong(layer, "expected q_lora_rank above 0, of which the indexer's queries are made");
  return check_not_negative(layer, {{"the indexer's norm", indexer.norm_eps}});
}

}  // namespace

std::string text(const LatentAttention& a) {
  std::string s = format("mla %dx%d+%d", a.num_heads, a.nope_dim, a.rope_dim);
  s += format(" values %d latent %d", a.v_head_dim, a.kv_rank);
  if (a.q_rank > 0) s += format(" queries by %d", a.q_rank);
  s += text(a.rope) + " scale " + number(a.scale);
  if (a.latent_scale != 1) s += " latent x" + number(a.latent_scale);
  if (a.position_beta != 0)
    s += " queries x1+" + number(a.position_beta) + format(" ln by %d tokens", a.position_step);
  if (a.bias) s += " bias";
  if (a.indexer.heads > 0) {
    s += format(" the best %d by %dx%d", a.indexer.top_k, a.indexer.heads, a.indexer.dim);
    if (a.indexer.layout == Rope::kInterleaved) s += " interleaved";
  }
  return s;
}

Result<void> check(const LatentAttention& a, int layer) {
  constexpr int kHeadsMax = 1024, kHeadMax = 1024, kRankMax = 1 << 16;
  WEIR_TRY(check_size(layer, "num_attention_heads", a.num_heads, 1, kHeadsMax));
  WEIR_TRY(check_size(layer, "q_lora_rank", a.q_rank, 0, kRankMax));
  WEIR_TRY(check_size(layer, "qk_nope_head_dim", a.nope_dim, 1, kHeadMax));
  WEIR_TRY(check_size(layer, "qk_rope_head_dim", a.rope_dim, 0, kernels::kValuesInKeysMax - 1));
  WEIR_TRY(check_size(layer, "kv_lora_rank", a.kv_rank, 1, kernels::kValuesInKeysMax - a.rope_dim));
  WEIR_TRY(check_size(layer, "v_head_dim", a.v_head_dim, 1, kHeadMax));
  if (a.rope.dim < 0 || a.rope.dim > a.rope_dim || a.rope.dim % 2 != 0)
    return wrong(layer, "expected an even number of rotary dimensions up to " +
                            std::to_string(a.rope_dim) + ", found " + std::to_string(a.rope.dim));
  WEIR_TRY(check(a.rope, layer));
  if (a.position_step < 1)
    return wrong(layer, "expected original_max_position_embeddings of at least 1, found " +
                            std::to_string(a.position_step));
  WEIR_TRY(check_not_negative(
      layer, {{"rms_norm_eps", a.norm_eps}, {"llama_4_scaling_beta", a.position_beta}}));
  WEIR_TRY(check(a.indexer, a, layer));
  WEIR_TRY(check_positive(layer, {{"kv_lora_rank", a.latent_scale}}));
  return check_positive(layer, {{"qk_nope_head_dim and mscale_all_dim", a.scale}});
}

}  // namespace weir::model
