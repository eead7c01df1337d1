// nanochat: norms without weights, of the embedding too; heads are normalised after a rope that
// turns the other way; a feed-forward network without gate, of squared ReLUs.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults;

}  // namespace

ModelSpec nanochat(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  m.final_norm.weight = false;
  m.embed_norm = m.final_norm;
  m.logit_softcap = softcap(c, "final_logit_softcapping", 15);
  Attention attn = gqa(c, kDefaults);
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  attn.rope.backward = true;
  attn.qk_norm = Attention::kPerHead;
  attn.qk_norm_after_rope = true;
  attn.qk_norm_weight = false;
  attn.qk_norm_eps = m.final_norm.eps;
  const Dense ffn = {.width = ffn_width(c, "intermediate_size"),
                     .act = activation(c, "hidden_act", "relu2"),
                     .gated = false};
  add_layers(m, num_layers(c), pre_norm(m.final_norm, attn, ffn));
  m.other_layers = {"transformer.h."};  // mlx-lm's names.
  m.renames = {{"embed_tokens", "model.embed_tokens"},
               {"embed_tokens", "transformer.wte"},
               {"mlp.up_proj", "mlp.fc1"},
               {"mlp.up_proj", "mlp.c_fc"},
               {"mlp.down_proj", "mlp.fc2"},
               {"mlp.down_proj", "mlp.c_proj"}};
  for (const auto& [part, stored] :
       {std::pair{"q_proj", "c_q"}, {"k_proj", "c_k"}, {"v_proj", "c_v"}, {"o_proj", "c_proj"}})
    for (const std::string& name :
         {std::string("self_attn.") + part, std::string("attn.") + stored})
      m.renames.emplace_back(std::string("self_attn.") + part, name);
  return m;
}

}  // namespace weir::model::family
