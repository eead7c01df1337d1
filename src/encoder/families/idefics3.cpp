// Idefics 3 and SmolVLM: SigLIP's blocks on tiles, positions by the fraction of the tile, squares
// of patches that become one row.
#include "encoder/families/family.h"

namespace weir::encoder::family {

EncoderSpec idefics3(const Config& c) {
  constexpr Sizes kSizes = {.width = 1152, .heads = 16, .patch = 32};
  const ConfigReader& v = c.vision;
  EncoderSpec spec = clip_tower(c, kSizes);
  std::get<Patches>(spec.stages.front().op).positions.kind = PositionTable::kBucketed;
  add(spec, Normalise{layer_norm("tower.post_layernorm", v.float_or("layer_norm_eps", 1e-6f))});
  add(spec, Merge{.side = c.all.int_or("scale_factor", 2, 1, kMergeMax)});
  add(spec,
      Project{
          .module = "projector.modality_projection.proj", .width = c.text_width, .bias = false});
  // How pictures are cut: the processor's business.
  for (const char* key : {"size", "max_image_size", "use_base_siglip", "tie_word_embeddings"})
    v.ignore(key);
  spec.tower_roots = {"model.vision_model.", "vision_model."};
  spec.projector_roots = {"model.connector.", "connector."};
  return spec;
}

}  // namespace weir::encoder::family
