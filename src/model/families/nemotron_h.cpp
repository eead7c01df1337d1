// Nemotron-H: each layer is one sublayer, of Mamba 2, attention without positions, a network of
// squared relu, or a mixture of such.
#include "model/families/mamba.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.vocab_size = 131072,
                                .num_attention_heads = 32,
                                .context = 4096,
                                .rms_norm_eps = 1e-5f,
                                .num_key_value_heads = 8,
                                .head_dim = 128,
                                .eps_key = "layer_norm_epsilon"};

Mamba2 mamba(const ConfigReader& c, float eps) {
  for (const char* key : {"chunk_size", "mamba_chunk_size", "expand", "mamba_expand",
                          "residual_in_fp32", "num_logits_to_keep", "use_mamba_kernels"})
    c.ignore(key);
  expect_string(c, "mamba_hidden_act", "silu");
  Mamba2 m = {.heads = c.int_or("mamba_num_heads", 128, 1),
              .head_dim = c.int_or("mamba_head_dim", 64, 1),
              .groups = c.int_or("n_groups", 8, 1),
              .state_dim = c.int_or("ssm_state_size", 128, 1),
              .conv_taps = c.int_or("conv_kernel", 4, 1),
              .conv_bias = c.bool_or("use_conv_bias", true),
              .bias = c.bool_or("mamba_proj_bias", false) || c.bool_or("use_bias", false),
              .norm_eps = eps};
  m.norm_groups = m.groups;
  time_steps(c, m);
  return m;
}

Dense plain_ffn(const ConfigReader& c, std::string_view width_key) {
  return {.width = ffn_width(c, width_key),
          .act = activation(c, "mlp_hidden_act", "relu2"),
          .gated = false,
          .bias = c.bool_or("mlp_bias", false)};
}

Moe mixture(const ConfigReader& c) {
  Moe moe = biased_moe(c, {.count = 8, .top_k = 2});
  moe.expert = plain_ffn(c, "moe_intermediate_size");
  if (moe.shared) moe.shared = plain_ffn(c, "moe_shared_expert_intermediate_size");
  return moe;
}

// A letter for each layer; transformers 5 writes words.
std::string layer_letters(const ConfigReader& c) {
  std::string letters = c.string_or("hybrid_override_pattern", "");
  for (const std::string& type : c.strings("layers_block_type"))
    letters += type == "mamba"       ? 'M'
               : type == "attention" ? '*'
               : type == "mlp"       ? '-'
               : type == "moe"       ? 'E'
                                     : '?';
  return letters;
}

}  // namespace

ModelSpec nemotron_h(const ConfigReader& c) {
  ModelSpec m = decoder(c, kDefaults);
  Attention attn = gqa(c, kDefaults);
  if (c.has("attention_head_dim")) {  // As older files call it.
    attn.head_dim = c.int_or("attention_head_dim", attn.head_dim, 1);
    attn.scale = 1 / std::sqrt(static_cast<float>(attn.head_dim));
  }
  attn.rope.dim = 0;
  attn.qkv_bias = attn.out_bias = c.bool_or("attention_bias", false);
  attn.window = sliding_window(c, 0);
  const std::string pattern = layer_letters(c);
  const bool mixtures = pattern.find('E') != std::string::npos;
  const Mamba2 state_space = mamba(c, m.final_norm.eps);
  const Dense dense = plain_ffn(c, "intermediate_size");
  const Moe moe = mixtures ? mixture(c) : Moe{};
  Norm norm = m.final_norm;
  norm.module = "input_layernorm";
  if (static_cast<int>(pattern.size()) != num_layers(c))
    c.reject("hybrid_override_pattern: expected " + std::to_string(num_layers(c)) +
             " letters, found " + std::to_string(pattern.size()));
  for (const char letter : pattern) {
    const std::optional<Operation> op = letter == 'M'   ? std::optional<Operation>(state_space)
                                        : letter == '*' ? std::optional<Operation>(attn)
                                        : letter == '-' ? std::optional<Operation>(dense)
                                        : letter == 'E' ? std::optional<Operation>(moe)
                                                        : std::nullopt;
    if (!op) {
      c.reject(std::string("hybrid_override_pattern: expected letters M, *, - and E, found ") +
               letter);
      break;
    }
    add_layer(m, {{.op = *op, .pre = norm}});
  }
  m.layers = "backbone.layers.";
  m.other_layers = {"model.layers."};
  m.renames = {{"embed_tokens", "backbone.embeddings"},
               {"norm", "backbone.norm_f"},
               {"input_layernorm", "norm"},
               {"mlp.gate", "mixer.gate"},
               {"mlp.gate.e_score_correction_bias", "mixer.gate.e_score_correction_bias"},
               {"mlp.switch_mlp.up_proj", "mixer.switch_mlp.fc1"},
               {"mlp.switch_mlp.down_proj", "mixer.switch_mlp.fc2"}};
  for (const std::string part : {"q_proj", "k_proj", "v_proj", "o_proj"})
    m.renames.emplace_back("self_attn." + part, "mixer." + part);
  for (const std::string part : {"up_proj", "down_proj"}) {
    m.renames.emplace_back("mlp." + part, "mixer." + part);
    m.renames.emplace_back("mlp.experts.*." + part, "mixer.experts.*." + part);
    m.renames.emplace_back("mlp.shared_expert." + part, "mixer.shared_experts." + part);
  }
  rename_mamba(m, "mixer.");
  m.towers = {"mtp."};
  return m;
}

}  // namespace weir::model::family
