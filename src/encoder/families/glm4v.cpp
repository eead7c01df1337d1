// GLM-4.1V and GLM-OCR: blocks of patches as in the Qwen-VL families; a convolution makes one row
// of a block, which a norm and a gated network follow.
#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

constexpr Sizes kGlm4v = {.width = 1536,
                          .mlp = 13696,
                          .layers = 24,
                          .heads = 12,
                          .image = 336,
                          .patch = 14,
                          .eps = 1e-5f,
                          .act = "silu"};
constexpr Sizes kGlmOcr = {.width = 1024,
                           .mlp = 4096,
                           .layers = 24,
                           .heads = 16,
                           .image = 336,
                           .patch = 14,
                           .eps = 1e-5f,
                           .act = "silu"};

// Attention and network of a block; `width`: of the network.
TowerBlock block_of(const Config& c, const EncoderSpec& spec, const Sizes& sizes, int width) {
  TowerBlock block = {.attention = block_heads(c, spec, sizes),
                      .mlp = {.width = width,
                              .act = activation(c.vision, "hidden_act", sizes.act),
                              .gate = "gate_proj",
                              .up = "up_proj",
                              .out = "down_proj"},
                      .rms = true,
                      .eps = c.vision.float_or("rms_norm_eps", sizes.eps)};
  return block;
}

// From the last block on; `width`: of the network.
void add_merger(EncoderSpec& spec, const Config& c, float eps, int width) {
  add(spec, Normalise{rms_norm("tower.post_layernorm", eps)});
  add(spec, Merge{.side = spec.merge, .order = Merge::kNumberByNumber});
  add(spec, Project{.module = "tower.downsample", .width = c.text_width, .side = spec.merge});
  add(spec, Project{.module = "tower.merger.proj", .width = c.text_width, .bias = false});
  add(spec, Normalise{.norm = layer_norm("tower.merger.post_projection_norm", 1e-5f),
                      .act = kernels::Act::kGelu});
  add(spec, Mlp{.width = width,
                .act = activation(c.vision, "hidden_act", "silu"),
                .gate = "tower.merger.gate_proj",
                .up = "tower.merger.up_proj",
                .out = "tower.merger.down_proj",
                .bias = false});
  spec.stages.back().replaces = true;
}

}  // namespace

EncoderSpec glm4v(const Config& c) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec = block_tower(c, kGlm4v);
  v.expect_int("out_hidden_size", c.text_width);
  TowerBlock block = block_of(c, spec, kGlm4v, c.text_width);
  block.attention.bias = v.bool_or("attention_bias", false);
  block.attention.out_bias = block.mlp.bias = false;
  add(spec, Patches{.module = "tower.patch_embed.proj",
                    .norm = rms_norm("tower.post_conv_layernorm", block.eps),
                    .positions = {.kind = PositionTable::kBicubic,
                                  .tensor = "tower.embeddings.position_embedding.weight",
                                  .side = patches_across(c, kGlm4v)}});
  const int layers = layer_count(c, kGlm4v, "depth");
  for (int i = 0; i < layers; ++i) add_block(spec, block, i);
  add_merger(spec, c, block.eps, v.int_or("intermediate_size", kGlm4v.mlp, 1, kWidthMax));
  return spec;
}

EncoderSpec glm_ocr(const Config& c) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec = block_tower(c, kGlmOcr);
  v.expect_int("out_hidden_size", c.text_width);
  v.ignore("image_size");  // Positions are angles alone.
  TowerBlock block =
      block_of(c, spec, kGlmOcr, v.int_or("intermediate_size", kGlmOcr.mlp, 1, kWidthMax));
  const bool bias = v.bool_or("attention_bias", true);
  block.attention.bias = block.attention.out_bias = block.mlp.bias = bias;
  block.attention.norms_heads = true;
  block.attention.q_norm = block.attention.k_norm = rms_norm("", block.eps);
  add(spec, Patches{.module = "tower.patch_embed.proj"});
  const int layers = layer_count(c, kGlmOcr, "depth");
  for (int i = 0; i < layers; ++i) add_block(spec, block, i);
  add_merger(spec, c, block.eps, c.text_width * 3);
  return spec;
}

}  // namespace weir::encoder::family
