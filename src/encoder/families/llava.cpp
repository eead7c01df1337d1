// LLaVA: a CLIP tower, the rows that one of its last blocks gives, two linear layers.
#include <algorithm>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

constexpr Sizes kClip = {.patch = 32, .eps = 1e-5f, .act = "quick_gelu"};

// The class row comes first, and a norm before the first block.
EncoderSpec clip(const Config& c) {
  EncoderSpec spec = clip_tower(c, kClip);
  auto& patches = std::get<Patches>(spec.stages.front().op);
  patches.bias = false;
  patches.class_row = "tower.embeddings.class_embedding";
  const float eps = c.vision.float_or("layer_norm_eps", kClip.eps);
  add(spec, Normalise{layer_norm("tower.pre_layrnorm", eps)});
  std::rotate(spec.stages.begin() + 1, spec.stages.end() - 1, spec.stages.end());
  // Of all rows together: for comparing pictures with sentences.
  spec.unused.push_back("tower.post_layernorm.");
  return spec;
}

// Blocks after the rows that are wanted, and their weights, are not needed.
void cut(EncoderSpec& spec, const ConfigReader& c, int layers) {
  const int kept = feature_layer(c, "vision_feature_layer", -2, layers);
  spec.stages.resize(spec.stages.size() - 2 * static_cast<size_t>(layers - kept));
  for (int i = kept; i < layers; ++i)
    spec.unused.push_back("tower.encoder.layers." + std::to_string(i) + ".");
}

}  // namespace

EncoderSpec llava(const Config& c) {
  const std::string tower = c.vision.string_or("model_type", "clip_vision_model");
  const bool bias = c.all.bool_or("multimodal_projector_bias", true);
  if (tower == "pixtral") {
    EncoderSpec spec = pixtral_tower(c);
    if (c.all.string_or("vision_feature_select_strategy", "default") != "full")
      c.all.reject("vision_feature_select_strategy: expected full, of a tower without a class row");
    add_llava_projector(spec, c, bias);
    return spec;
  }
  if (tower != "clip_vision_model")
    c.vision.reject("model_type: expected clip_vision_model or pixtral, found " +
                    tower.substr(0, 80));
  EncoderSpec spec = clip(c);
  cut(spec, c.all, layer_count(c, kClip));
  add_selection(spec, c);
  add_llava_projector(spec, c, bias);
  spec.tower_roots = tower_roots("vision_tower.");
  return spec;
}

}  // namespace weir::encoder::family
