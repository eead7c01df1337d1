// Llama 4: a class row after the patches, rows that turn with their places, squares of patches that
// go through a network of their own.
#include <cmath>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

constexpr Sizes kSizes = {
    .width = 768, .mlp = 5632, .layers = 34, .heads = 16, .image = 448, .patch = 14, .act = "gelu"};
constexpr float kEps = 1e-5f;  // Of all its norms, whatever norm_eps says.

void add_adapter(EncoderSpec& spec, const Config& c) {
  const ConfigReader& v = c.vision;
  const float ratio = v.float_or("pixel_shuffle_ratio", 0.5f);
  const int side = static_cast<int>(std::lround(1 / std::max(ratio, 1e-3f)));
  if (side < 1 || side > kMergeMax || std::fabs(static_cast<float>(side) * ratio - 1) > 1e-6f)
    v.reject("pixel_shuffle_ratio: expected one over a whole number up to " +
             std::to_string(kMergeMax));
  add(spec, Merge{.side = side});
  add(spec, Project{.module = "tower.vision_adapter.mlp.fc1",
                    .width = v.int_or("projector_input_dim", 4096, 1, kWidthMax),
                    .bias = false,
                    .act = kernels::Act::kGelu});
  const int width = v.int_or("projector_output_dim", 4096, 1, kWidthMax);
  add(spec, Project{.module = "tower.vision_adapter.mlp.fc2",
                    .width = width,
                    .bias = false,
                    .act = kernels::Act::kGelu});
  v.expect_int("vision_output_dim", width);
  add(spec, Project{.module = "projector.linear_1",
                    .width = c.text_width,
                    .bias = v.bool_or("multi_modal_projector_bias", false)});
}

}  // namespace

EncoderSpec llama4(const Config& c) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec = bare_tower(c, kSizes);
  add(spec, Patches{.module = "tower.patch_embedding.linear",
                    .bias = false,
                    .class_row = "tower.class_embedding",
                    .class_last = true,
                    .positions = {.kind = PositionTable::kOneByOne,
                                  .tensor = "tower.positional_embedding_vlm",
                                  .side = patches_across(c, kSizes)}});
  add(spec, Normalise{layer_norm("tower.layernorm_pre", kEps)});
  const Attention attention = attention_heads(c, spec, kSizes);
  if (attention.head_dim % 4 != 0)
    v.reject("num_attention_heads: expected heads of a multiple of 4 numbers, found " +
             std::to_string(attention.head_dim));
  spec.rope = {.kind = Rope::kNeighbours, .theta = rope_theta(v, 10000)};
  Mlp mlp = mlp_sizes(c, kSizes);
  mlp.act = kernels::Act::kGelu;
  add_blocks(spec, layer_count(c, kSizes), attention, mlp,
             {.layers = "tower.model.layers.",
              .attention_out = "o_proj",
              .attention_norm = "input_layernorm",
              .mlp_norm = "post_attention_layernorm",
              .eps = kEps});
  add(spec, Normalise{layer_norm("tower.layernorm_post", kEps)});
  add(spec, DropClassRow{});
  add_adapter(spec, c);
  v.expect_int("vision_feature_layer", -1);
  if (v.string_or("vision_feature_select_strategy", "default") != "default")
    v.reject("vision_feature_select_strategy: expected default");
  for (const char* key : {"norm_eps", "projector_dropout"}) v.ignore(key);
  spec.tower_roots = {"vision_model.", "model.vision_model."};
  spec.projector_roots = projector_roots("multi_modal_projector.");
  return spec;
}

}  // namespace weir::encoder::family
