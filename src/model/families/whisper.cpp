// Whisper's decoder: positions that have vectors, layer norms and biases, but none of keys, and
// after each layer's own attention one to the rows of the encoder (src/encoder/families/whisper.cpp).
#include "model/families/family.h"

namespace weir::model::family {

namespace {

constexpr Defaults kDefaults = {.rms_norm_eps = 1e-5f,
                                .tied_head = true,
                                .hidden_key = "d_model",
                                .heads_key = "decoder_attention_heads",
                                .context_key = "max_target_positions",
                                .eps_key = "layer_norm_eps"};
constexpr int kWidthMax = 1 << 16;
constexpr int kRowsMax = 1 << 16;

// The encoder's sizes, and what is said of training, of classifying and of generating.
void ignore_others(const ConfigReader& c) {
  for (const char* key :
       {"activation_dropout", "decoder_layerdrop", "encoder_attention_heads", "encoder_ffn_dim",
        "encoder_layerdrop", "encoder_layers", "forced_decoder_ids", "init_std",
        "median_filter_width", "num_hidden_layers", "num_mel_bins"})
    c.ignore(key);
  for (const std::string_view key : c.keys())
    for (const std::string_view begin :
         {"mask_", "classifier_", "use_weighted_layer_sum", "apply_spec_augment"})
      if (key.starts_with(begin)) c.ignore(key);
}

}  // namespace

ModelSpec whisper(const ConfigReader& c) {
  ModelSpec m = layer_norm_decoder(c, kDefaults);
  m.learned_positions = m.context_max;
  c.expect_bool("scale_embedding", false);
  const int heads = c.require_int(kDefaults.heads_key, 1, kWidthMax);
  if (heads > 0 && m.hidden_size % heads != 0)
    c.reject("decoder_attention_heads: expected a divisor of d_model, " +
             std::to_string(m.hidden_size) + ", found " + std::to_string(heads));
  const int head_dim = std::max(m.hidden_size / std::max(heads, 1), 1);
  const float scale = 1 / std::sqrt(static_cast<float>(head_dim));
  const Attention self = {.num_heads = heads,
                          .num_kv_heads = heads,
                          .head_dim = head_dim,
                          .scale = scale,
                          .qkv_bias = true,
                          .key_bias = false,
                          .out_bias = true};
  const CrossAttention cross = {.num_heads = heads,
                                .head_dim = head_dim,
                                .rows = c.int_or("max_source_positions", 1500, 1, kRowsMax),
                                .scale = scale};
  const Dense ffn = {.width = ffn_width(c, "decoder_ffn_dim"),
                     .act = activation(c, "activation_function", "gelu"),
                     .gated = false,
                     .bias = true};
  std::vector<Sublayer> layer = pre_norm(m.final_norm, self, ffn);
  layer.insert(layer.begin() + 1,
               {.op = cross, .pre = named(m.final_norm, "encoder_attn_layer_norm")});
  add_layers(m, num_layers(c, "decoder_layers"), layer);
  ignore_others(c);
  m.roots = {"model.decoder.", "decoder."};
  m.towers = {"model.encoder.", "encoder."};
  m.renames = {{"input_layernorm", "self_attn_layer_norm"},
               {"self_attn.o_proj", "self_attn.out_proj"},
               {"post_attention_layernorm", "final_layer_norm"},
               {"mlp.up_proj", "fc1"},
               {"mlp.down_proj", "fc2"},
               {"embed_positions", "model.embed_positions"},
               {"norm", "model.layer_norm"},
               {"lm_head", "proj_out"}};
  return m;
}

}  // namespace weir::model::family
