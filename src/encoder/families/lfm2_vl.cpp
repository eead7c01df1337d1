// LFM2-VL: SigLIP 2 on views of any shape, squares of patches, a norm and two linear layers.
#include "encoder/families/family.h"

namespace weir::encoder::family {

EncoderSpec lfm2_vl(const Config& c) {
  EncoderSpec spec = clip_tower(c, {});
  spec.layout = media::PixelLayout::kPatches;
  PositionTable& table = std::get<Patches>(spec.stages.front().op).positions;
  table.kind = PositionTable::kAntialiased;
  table.side = table_side(c, "num_patches", 256);
  c.all.expect_int("vision_feature_layer", -1);
  const float eps = c.vision.float_or("layer_norm_eps", Sizes{}.eps);
  add(spec, Normalise{layer_norm("tower.post_layernorm", eps)});
  add(spec, Merge{.side = c.all.int_or("downsample_factor", 2, 1, kMergeMax)});
  if (c.all.bool_or("projector_use_layernorm", true))
    add(spec, Normalise{layer_norm("projector.layer_norm", 1e-5f)});
  const bool bias = c.all.bool_or("projector_bias", true);
  add(spec, Project{.module = "projector.linear_1",
                    .width = c.all.int_or("projector_hidden_size", 2560, 1, kWidthMax),
                    .bias = bias,
                    .act = activation(c.all, "projector_hidden_act", "gelu")});
  add(spec, Project{.module = "projector.linear_2", .width = c.text_width, .bias = bias});
  spec.tower_roots = tower_roots("vision_tower.");
  spec.projector_roots = projector_roots("multi_modal_projector.");
  return spec;
}

}  // namespace weir::encoder::family
