// ERNIE 4.5 with experts, chosen by softmax and a bias, in a range of layers; rope turns
// neighbours.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {
    .rms_norm_eps = 1e-5f, .rope_theta = 5e5f, .num_key_value_heads = 4, .tied_head = true};

}  // namespace

ModelSpec ernie4_5_moe(const ConfigReader& c) {
  for (const char* key : {"moe_capacity", "num_nextn_predict_layers"})
    c.ignore(key);  // Training's, and of layers that guess further tokens (model.mtp_*).
  expect_string(c, "moe_gate", "topk");
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.rope.layout = Rope::kInterleaved;
  attn.qkv_bias = attn.out_bias = c.bool_or("use_bias", false);
  Dense dense = gated_ffn(c, "intermediate_size");
  dense.bias = attn.qkv_bias;
  Moe moe = {.num_experts = c.int_or("moe_num_experts", 64, 1),
             .top_k = c.int_or("moe_k", 6, 1),
             .expert = gated_ffn(c, "moe_intermediate_size"),
             .router = {.score = Router::kSoftmax,
                        .selection_bias = c.bool_or("moe_use_aux_free", true),
                        .renormalise = true,
                        .least_sum = c.float_or("moe_norm_min", 1e-12f)}};
  moe.shared = shared_experts(moe.expert, c.int_or("moe_num_shared_experts", 2, 0, 64));
  if (moe.shared) moe.shared->bias = dense.bias;
  const int layers = num_layers(c);
  const int first = c.int_or("moe_layer_start_index", 1),
            every = c.int_or("moe_layer_interval", 1, 1);
  int last = c.int_or("moe_layer_end_index", -1);
  if (last < 0) last = layers - 1;
  for (int i = 0; i < layers; ++i) {
    const bool sparse = (i + 1) % every == 0 && i >= first && i <= last;
    add_layer(m, pre_norm(m.final_norm, attn, sparse ? Operation{moe} : Operation{dense}));
  }
  m.renames = {{"mlp.gate.e_score_correction_bias", "mlp.moe_statics.e_score_correction_bias"}};
  rename_shared(m, "mlp.shared_experts");
  return m;
}

}  // namespace weir::model::family
