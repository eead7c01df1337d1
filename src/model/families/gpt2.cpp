// GPT-2: layer norms and biases, positions that have vectors, a feed-forward network without gate;
// weights lie as [in, out]. GPT-BigCode (StarCoder 1, SantaCoder): one key-value head, and weights
// as everywhere else.
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f,
                                .tied_head = true,
                                .hidden_key = "n_embd",
                                .heads_key = "n_head",
                                .context_key = "n_positions",
                                .eps_key = "layer_norm_epsilon"};

ModelSpec gpt(const ConfigReader& c, Attention attn, const char* act) {
  for (const char* key : {"summary_activation", "summary_first_dropout", "summary_proj_to_labels",
                          "summary_type", "summary_use_proj"})
    c.ignore(key);  // Of models that classify.
  ModelSpec m = layer_norm_decoder(c, kDefaults);
  m.learned_positions = m.context_max;
  attn.rope = {};
  attn.qkv_bias = attn.out_bias = true;
  if (!c.bool_or("scale_attn_weights", true)) attn.scale = 1;
  const Dense ffn = {.width = c.has("n_inner") ? ffn_width(c, "n_inner") : 4 * m.hidden_size,
                     .act = activation(c, "activation_function", act),
                     .gated = false,
                     .bias = true};
  c.ignore("n_inner");
  add_layers(m, num_layers(c, "n_layer"), pre_norm(m.final_norm, attn, ffn));
  m.layers = "transformer.h.";
  m.other_layers = {"h.", "model.h."};  // The second is mlx-lm's.
  m.fused = {{"attn.c_attn", {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"}}};
  m.renames = {{"input_layernorm", "ln_1"},
               {"self_attn.o_proj", "attn.c_proj"},
               {"post_attention_layernorm", "ln_2"},
               {"mlp.up_proj", "mlp.c_fc"},
               {"mlp.down_proj", "mlp.c_proj"}};
  for (const std::string prefix : {"transformer.", "", "model."})
    for (const auto& [part, stored] :
         {std::pair{"embed_tokens", "wte"}, {"embed_positions", "wpe"}, {"norm", "ln_f"}})
      m.renames.emplace_back(part, prefix + stored);
  return m;
}

}  // namespace

ModelSpec gpt2(const ConfigReader& c) {
  c.ignore("n_ctx");  // n_positions again.
  c.ignore("reorder_and_upcast_attn");
  ModelSpec m = gpt(c, gqa(c, kDefaults), "gelu_new");
  if (c.bool_or("scale_attn_by_inverse_layer_idx", false))
    for (Sublayer& sublayer : m.sublayers)
      if (auto* attn = std::get_if<Attention>(&sublayer.op))
        attn->scale /= static_cast<float>(sublayer.stored_layer + 1);
  m.turned_if = "attn.c_attn.weight";
  return m;
}

ModelSpec gpt_bigcode(const ConfigReader& c) {
  for (const char* key : {"attention_softmax_in_fp32", "scale_attention_softmax_in_fp32"})
    c.ignore(key);
  // How a cache is kept, and what the checkpoint was made with.
  for (const char* key : {"inference_runner", "max_batch_size", "max_sequence_length",
                          "pad_key_length", "pre_allocate_kv_cache", "validate_runner_input"})
    c.ignore(key);
  Attention attn = gqa(c, kDefaults);
  const bool one = c.bool_or("multi_query", true);
  if (one) attn.num_kv_heads = 1;
  ModelSpec m = gpt(c, attn, "gelu_pytorch_tanh");
  if (!one) m.fused[0].runs = attn.num_heads;
  return m;
}

}  // namespace weir::model::family
