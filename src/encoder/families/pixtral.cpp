// Pixtral and Mistral 3: rows turn with their places, in views of any shape. Mistral 3 joins
// squares of patches.
#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

constexpr Sizes kSizes = vit_large(1024, 16);
constexpr float kEps = 1e-5f;  // Of all its norms; no key says it.

}  // namespace

EncoderSpec pixtral_tower(const Config& c) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec = bare_tower(c, kSizes);
  patches_across(c, kSizes);  // Bounds a table of angles there.
  Attention attention = attention_heads(c, spec, kSizes);
  attention.bias = attention.out_bias = false;
  v.expect_int("head_dim", attention.head_dim);
  spec.rope = {.kind = Rope::kInterleavedRates, .theta = rope_theta(v, 10000)};
  if (attention.head_dim % 4 != 0)
    v.reject("head_dim: expected a multiple of 4, found " + std::to_string(attention.head_dim));
  add(spec, Patches{.module = "tower.patch_conv", .bias = false});
  add(spec, Normalise{rms_norm("tower.ln_pre", kEps)});
  Mlp mlp = mlp_sizes(c, kSizes);
  mlp.bias = false;
  const int layers = layer_count(c, kSizes);
  const int kept = feature_layer(c.all, "vision_feature_layer", -1, layers);
  for (int i = 0; i < layers; ++i) {
    const std::string layer = "tower.transformer.layers." + std::to_string(i) + ".";
    if (i >= kept) {
      spec.unused.push_back(layer);
      continue;
    }
    attention.q = layer + "attention.q_proj";
    attention.k = layer + "attention.k_proj";
    attention.v = layer + "attention.v_proj";
    attention.out = layer + "attention.o_proj";
    add(spec, attention, rms_norm(layer + "attention_norm", kEps));
    mlp.gate = layer + "feed_forward.gate_proj";
    mlp.up = layer + "feed_forward.up_proj";
    mlp.out = layer + "feed_forward.down_proj";
    add(spec, mlp, rms_norm(layer + "ffn_norm", kEps));
  }
  spec.tower_roots = {"vision_tower.", "model.vision_tower."};
  return spec;
}

EncoderSpec mistral3(const Config& c) {
  c.vision.string_or("model_type", "pixtral") == "pixtral"
      ? void()
      : c.vision.reject("model_type: expected pixtral");
  EncoderSpec spec = pixtral_tower(c);
  add(spec, Normalise{rms_norm("projector.norm", c.text_eps)});
  const int side = c.all.int_or("spatial_merge_size", 2, 1, kMergeMax);
  add(spec, Merge{.side = side, .order = Merge::kNumberByNumber});
  add(spec,
      Project{
          .module = "projector.patch_merger.merging_layer", .width = spec.width, .bias = false});
  add_llava_projector(spec, c, c.all.bool_or("multimodal_projector_bias", false));
  return spec;
}

}  // namespace weir::encoder::family
