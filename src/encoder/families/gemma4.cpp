// Gemma 4: views of any shape, learned positions by axis and heads that turn by both, norms around
// each sublayer, squares of patches that become their mean.
#include <cmath>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

constexpr Sizes kSizes = {.width = 768, .mlp = 3072, .layers = 16, .heads = 12, .patch = 16};

Norm unweighted(float eps) { return {.kind = Norm::kRms, .eps = eps, .weight = false}; }

Attention heads(const Config& c) {
  const ConfigReader& v = c.vision;
  Attention out = {.heads = v.int_or("num_attention_heads", kSizes.heads, 1, kWidthMax),
                   .head_dim = v.int_or("head_dim", 64, 4, kWidthMax),
                   .bias = false,
                   .out_bias = false,
                   .norms_heads = true,
                   .clipped = v.bool_or("use_clipped_linears", false)};
  v.expect_int("num_key_value_heads", out.heads);
  v.expect_bool("attention_bias", false);
  if (out.head_dim % 4 != 0)
    v.reject("head_dim: expected a multiple of 4, found " + std::to_string(out.head_dim));
  return out;
}

void add_blocks(EncoderSpec& spec, const Config& c, float eps) {
  const ConfigReader& v = c.vision;
  Attention attention = heads(c);
  Mlp mlp = {.width = v.int_or("intermediate_size", kSizes.mlp, 1, kWidthMax),
             .act = activation(v, "hidden_activation", kSizes.act),
             .bias = false,
             .clipped = attention.clipped};
  const char* weight = attention.clipped ? "" : ".linear";
  const int layers = layer_count(c, kSizes);
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "tower.encoder.layers." + std::to_string(i) + ".";
    const auto module = [&](const char* name) { return layer + name + weight; };
    attention.q = module("self_attn.q_proj");
    attention.k = module("self_attn.k_proj");
    attention.v = module("self_attn.v_proj");
    attention.out = module("self_attn.o_proj");
    attention.q_norm = rms_norm(layer + "self_attn.q_norm", eps);
    attention.k_norm = rms_norm(layer + "self_attn.k_norm", eps);
    attention.v_norm = unweighted(eps);
    add(spec, attention, rms_norm(layer + "input_layernorm", eps));
    spec.stages.back().post = rms_norm(layer + "post_attention_layernorm", eps);
    mlp.gate = module("mlp.gate_proj");
    mlp.up = module("mlp.up_proj");
    mlp.out = module("mlp.down_proj");
    add(spec, mlp, rms_norm(layer + "pre_feedforward_layernorm", eps));
    spec.stages.back().post = rms_norm(layer + "post_feedforward_layernorm", eps);
  }
}

}  // namespace

EncoderSpec gemma4(const Config& c) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec;
  spec.layout = media::PixelLayout::kPatches;
  spec.patch = side(v, "patch_size", kSizes.patch);
  spec.width = v.int_or("hidden_size", kSizes.width, 1, kWidthMax);
  spec.rope = {.kind = Rope::kHalves, .theta = rope_theta(v, 100)};
  const float eps = v.float_or("rms_norm_eps", kSizes.eps);
  add(spec, Patches{.module = "tower.patch_embedder.input_proj",
                    .bias = false,
                    .positions = {.kind = PositionTable::kAxes,
                                  .tensor = "tower.patch_embedder.position_embedding_table",
                                  .side = v.int_or("position_embedding_size", 10240, 1, kSideMax)},
                    .factor = 2,
                    .middle = 0.5f});
  add_blocks(spec, c, eps);
  add(spec, Pool{.side = v.int_or("pooling_kernel_size", 3, 1, kMergeMax),
                 .factor = std::sqrt(static_cast<float>(spec.width))});
  if (v.bool_or("standardize", false))
    add(spec, Standardise{.bias = "tower.std_bias", .scale = "tower.std_scale"});
  add(spec, Normalise{unweighted(eps)});
  add(spec,
      Project{.module = "projector.embedding_projection", .width = c.text_width, .bias = false});
  // How many tokens a picture has: the processor's business. Places are bounded by their table.
  for (const char* key : {"default_output_length", "max_position_embeddings"}) v.ignore(key);
  spec.tower_roots = {"model.vision_tower.", "vision_tower."};
  spec.projector_roots = {"model.embed_vision.", "embed_vision."};
  return spec;
}

}  // namespace weir::encoder::family
