// InternVL in the layout of transformers: a tower with a class row and scaled sublayers, squares of
// patches, a norm and two linear layers.
#include <algorithm>
#include <cmath>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

constexpr Sizes kSizes = vit_large(448, 14);

void add_block(EncoderSpec& spec, const Config& c, int i) {
  const ConfigReader& v = c.vision;
  const std::string layer = "tower.encoder.layer." + std::to_string(i) + ".";
  const float eps = v.float_or("layer_norm_eps", kSizes.eps);
  const bool rms = v.string_or("norm_type", "layer_norm") == "rms_norm";
  const auto norm = [&](const char* module) {
    return rms ? rms_norm(layer + module, eps) : layer_norm(layer + module, eps);
  };
  Attention attention = attention_heads(c, spec, kSizes);
  attention.q = layer + "attention.q_proj";
  attention.k = layer + "attention.k_proj";
  attention.v = layer + "attention.v_proj";
  attention.out = layer + "attention.projection_layer";
  attention.bias = v.bool_or("attention_bias", false);
  if (v.bool_or("use_qk_norm", false)) {
    attention.q_norm = rms_norm(layer + "attention.q_norm", 1e-6f);
    attention.k_norm = rms_norm(layer + "attention.k_norm", 1e-6f);
  }
  add(spec, attention, norm("layernorm_before"));
  spec.stages.back().scale = layer + "lambda_1";
  Mlp mlp = mlp_sizes(c, kSizes);
  mlp.up = layer + "mlp.fc1";
  mlp.out = layer + "mlp.fc2";
  add(spec, mlp, norm("layernorm_after"));
  spec.stages.back().scale = layer + "lambda_2";
}

// downsample_ratio is one over a square's side.
int merged_side(const Config& c) {
  const float ratio = c.all.float_or("downsample_ratio", 0.5f);
  const float side = std::round(1 / ratio);
  if (side >= 1 && side <= kMergeMax && std::fabs(side * ratio - 1) < 1e-6f)
    return static_cast<int>(side);
  c.all.reject("downsample_ratio: expected one over a whole number up to " +
               std::to_string(kMergeMax) + ", found " + std::to_string(ratio));
  return 1;
}

}  // namespace

EncoderSpec internvl(const Config& c) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec = bare_tower(c, kSizes);
  Patches patches = {.module = "tower.embeddings.patch_embeddings.projection",
                     .class_row = "tower.embeddings.cls_token"};
  v.expect_bool("use_mask_token", false);
  const int across = patches_across(c, kSizes);
  if (v.bool_or("use_absolute_position_embeddings", false))
    patches.positions = {.kind = PositionTable::kOneByOne,
                         .tensor = "tower.embeddings.position_embeddings",
                         .side = across};
  add(spec, patches);
  const int layers = layer_count(c, kSizes);
  const int kept = feature_layer(c.all, "vision_feature_layer", -1, layers);
  for (int i = 0; i < kept; ++i) add_block(spec, c, i);
  for (int i = kept; i < layers; ++i)
    spec.unused.push_back("tower.encoder.layer." + std::to_string(i) + ".");
  if (!v.bool_or("use_mean_pooling", true)) {
    if (kept == layers)
      add(spec, Normalise{layer_norm("tower.layernorm", v.float_or("layer_norm_eps", kSizes.eps))});
    else
      spec.unused.push_back("tower.layernorm.");
  }
  if (c.all.string_or("vision_feature_select_strategy", "default") != "default")
    c.all.reject("vision_feature_select_strategy: expected default, for patches join in squares");
  add(spec, DropClassRow{});
  add(spec, Merge{.side = merged_side(c)});
  add(spec, Normalise{layer_norm("projector.layer_norm", 1e-5f)});
  add_llava_projector(spec, c);
  for (const char* key :
       {"layer_scale_init_value", "initializer_factor", "dropout", "projection_dropout"})
    v.ignore(key);
  spec.tower_roots = {"vision_tower.", "model.vision_tower."};
  return spec;
}

}  // namespace weir::encoder::family
