// Gemma 3 and PaliGemma: SigLIP, whose patches PaliGemma projects one by one, and Gemma 3 in
// squares.
#include <cmath>

#include "encoder/families/family.h"

namespace weir::encoder::family {

EncoderSpec gemma3(const Config& c) {
  EncoderSpec spec = siglip_tower(c);
  const int across = std::get<Patches>(spec.stages.front().op).positions.side;
  const int tokens = c.all.int_or("mm_tokens_per_image", 256, 1);
  const int tokens_across = static_cast<int>(std::sqrt(static_cast<double>(tokens)));
  if (tokens_across > across)
    c.all.reject("mm_tokens_per_image: expected at most the picture's patches, " +
                 std::to_string(across * across) + ", found " + std::to_string(tokens));
  add(spec, Pool{.side = std::max(across / tokens_across, 1)});
  Norm norm = rms_norm("projector.mm_soft_emb_norm", c.vision.float_or("layer_norm_eps", 1e-6f));
  norm.weight_offset = 1;
  add(spec, Normalise{norm});
  add(spec, Project{.module = "projector.mm_input_projection_weight",
                    .width = c.text_width,
                    .bias = false,
                    .turned = true});
  spec.tower_roots = tower_roots("vision_tower.");
  spec.projector_roots = projector_roots("multi_modal_projector.");
  return spec;
}

EncoderSpec paligemma(const Config& c) {
  EncoderSpec spec = siglip_tower(c);
  c.vision.ignore("num_image_tokens");
  c.vision.ignore("num_positions");
  add(spec, Project{.module = "projector.linear", .width = c.text_width});
  spec.tower_roots = tower_roots("vision_tower.");
  spec.projector_roots = projector_roots("multi_modal_projector.");
  return spec;
}

}  // namespace weir::encoder::family
