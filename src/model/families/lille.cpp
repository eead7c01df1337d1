// Lille: Llama under names of its own, norms among the modules that read them, and rope that turns
// neighbours.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f,
                                .tied_head = true,
                                .hidden_key = "n_embd",
                                .heads_key = "n_head",
                                .context_key = "block_size",
                                .eps_key = "layer_norm_eps"};

}  // namespace

ModelSpec lille(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  attn.num_kv_heads = c.int_or("n_kv_heads", attn.num_heads, 1);
  attn.rope.layout = Rope::kInterleaved;
  // The nearest multiple of 256 to 8/3 of the model's width.
  const Dense ffn = {.width =
                         256 * static_cast<int>(std::nearbyint(8 * m.hidden_size / 3 / 256.0))};
  add_layers(m, num_layers(c, "n_layer"), pre_norm(m.final_norm, attn, ffn));
  m.layers = "transformer.layers.";
  m.fused = {{"attention.qkv_proj", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}}};
  m.renames = {{"embed_tokens", "transformer.tok_embeddings"},
               {"norm", "transformer.norm"},
               {"input_layernorm", "attention.norm"},
               {"self_attn.o_proj", "attention.out_proj"},
               {"post_attention_layernorm", "feed_forward.norm"},
               {"mlp.gate_proj", "feed_forward.gate_proj"},
               {"mlp.up_proj", "feed_forward.up_proj"},
               {"mlp.down_proj", "feed_forward.down_proj"}};
  return m;
}

}  // namespace weir::model::family
