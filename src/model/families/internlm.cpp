// InternLM 2: Llama under names of its own, Q, K and V in one matrix. InternLM 3: Llama with biases
// that config.json may switch on.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;

}  // namespace

ModelSpec internlm2(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("bias", true);
  ModelSpec m = pre_norm_model(c, kDefaults, attn, gated_ffn(c, "intermediate_size"));
  for (Sublayer& sublayer : m.sublayers)
    sublayer.pre->module =
        std::holds_alternative<Attention>(sublayer.op) ? "attention_norm" : "ffn_norm";
  m.fused = {{"attention.wqkv",
              {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
              attn.num_kv_heads}};
  m.renames = {{"embed_tokens", "model.tok_embeddings"}, {"lm_head", "output"},
               {"self_attn.o_proj", "attention.wo"},     {"mlp.gate_proj", "feed_forward.w1"},
               {"mlp.up_proj", "feed_forward.w3"},       {"mlp.down_proj", "feed_forward.w2"}};
  return m;
}

ModelSpec internlm3(const ConfigReader& c) {
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("qkv_bias", false);
  Dense ffn = gated_ffn(c, "intermediate_size");
  ffn.bias = c.bool_or("bias", false);
  return pre_norm_model(c, kDefaults, attn, ffn);
}

}  // namespace weir::model::family
