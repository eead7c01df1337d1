// What the towers share that read blocks of patches: those of the Qwen-VL families and of GLM.
#include "encoder/families/family.h"

namespace weir::encoder::family {

EncoderSpec block_tower(const Config& c, const Sizes& sizes, std::string_view width_key) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec;
  spec.layout = media::PixelLayout::kBlocks;
  spec.patch = side(v, "patch_size", sizes.patch);
  spec.frames = v.int_or("temporal_patch_size", 2, 1, kRatioMax);
  spec.merge = v.int_or("spatial_merge_size", 2, 1, kMergeMax);
  spec.width = v.int_or(width_key, sizes.width, 1, kWidthMax);
  spec.rope = {.kind = Rope::kEqualRates};
  for (const char* key : {"in_channels", "in_chans"}) v.expect_int(key, 3);
  v.expect_int("spatial_patch_size", spec.patch);
  spec.tower_roots =
      spec.projector_roots = {"model.visual.", "visual.", "vision_tower.", "model.vision_tower."};
  return spec;
}

Attention block_heads(const Config& c, const EncoderSpec& spec, const Sizes& sizes) {
  Attention attention = attention_heads(c, spec, sizes, "num_heads");
  if (attention.head_dim % 4 != 0)
    c.vision.reject("num_heads: expected heads of a multiple of 4 numbers, found " +
                    std::to_string(attention.head_dim));
  return attention;
}

void add_block(EncoderSpec& spec, const TowerBlock& block, int i) {
  const std::string layer = "tower.blocks." + std::to_string(i) + ".";
  const auto norm = [&](const char* module) {
    return block.rms ? rms_norm(layer + module, block.eps) : layer_norm(layer + module, block.eps);
  };
  Attention attention = block.attention;
  attention.fused = layer + "attn.qkv";
  attention.out = layer + "attn.proj";
  if (attention.q_norm) attention.q_norm->module = layer + "attn.q_norm";
  if (attention.k_norm) attention.k_norm->module = layer + "attn.k_norm";
  add(spec, attention, norm("norm1"));
  Mlp mlp = block.mlp;
  for (std::string* module : {&mlp.gate, &mlp.up, &mlp.out})
    if (!module->empty()) *module = layer + "mlp." + *module;
  add(spec, mlp, norm("norm2"));
}

}  // namespace weir::encoder::family
