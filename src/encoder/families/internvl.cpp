// InternVL: a tower with a class row and scaled sublayers, squares of patches, a norm and two linear
// layers. Its files lie in two layouts, which differ in names only: that of transformers, and an
// older one, in which the models were published first and MLX's converter leaves them.
#include <cmath>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

// What a layout calls the keys, the modules and the tensors that both have.
struct Layout {
  Sizes sizes{};
  std::string_view norm_type, bias_key, qk_norm_key, layer_key;
  bool bias = false, qk_norm = false;  // Where those keys are missing.
  float qk_norm_eps = 0;               // 0: that of the other norms.
  const char* patches = nullptr;
  const char* class_row = nullptr;
  const char* positions = nullptr;
  const char* layers = nullptr;
  const char* fused_qkv = nullptr;  // Null: q, k and v are modules of their own.
  const char* attention = nullptr;
  const char* attention_out = nullptr;
  const char* attention_norm = nullptr;
  const char* mlp_norm = nullptr;
  const char* attention_scale = nullptr;
  const char* mlp_scale = nullptr;
  const char* projector_norm = nullptr;
  const char* projector_in = nullptr;
  const char* projector_out = nullptr;
};

constexpr Layout kTransformers = {
    .sizes = vit_large(448, 14),
    .norm_type = "layer_norm",
    .bias_key = "attention_bias",
    .qk_norm_key = "use_qk_norm",
    .layer_key = "vision_feature_layer",
    .qk_norm_eps = 1e-6f,
    .patches = "tower.embeddings.patch_embeddings.projection",
    .class_row = "tower.embeddings.cls_token",
    .positions = "tower.embeddings.position_embeddings",
    .layers = "tower.encoder.layer.",
    .fused_qkv = nullptr,
    .attention = "attention.",
    .attention_out = "projection_layer",
    .attention_norm = "layernorm_before",
    .mlp_norm = "layernorm_after",
    .attention_scale = "lambda_1",
    .mlp_scale = "lambda_2",
    .projector_norm = "projector.layer_norm",
    .projector_in = "projector.linear_1",
    .projector_out = "projector.linear_2",
};

// Keys that are missing are as in InternViT-6B, the first tower of the family.
constexpr Layout kOlder = {
    .sizes = {.width = 3200,
              .mlp = 12800,
              .layers = 48,
              .heads = 25,
              .image = 224,
              .patch = 14,
              .act = "gelu"},
    .norm_type = "rms_norm",
    .bias_key = "qkv_bias",
    .qk_norm_key = "qk_normalization",
    .layer_key = "select_layer",
    .qk_norm = true,
    .patches = "tower.embeddings.patch_embedding",
    .class_row = "tower.embeddings.class_embedding",
    .positions = "tower.embeddings.position_embedding",
    .layers = "tower.encoder.layers.",
    .fused_qkv = "qkv",
    .attention = "attn.",
    .attention_out = "proj",
    .attention_norm = "norm1",
    .mlp_norm = "norm2",
    .attention_scale = "ls1",
    .mlp_scale = "ls2",
    .projector_norm = "projector.0",
    .projector_in = "projector.1",
    .projector_out = "projector.3",
};

bool is_rms(const Config& c, const Layout& layout) {
  const std::string type = c.vision.string_or("norm_type", layout.norm_type);
  if (type == "rms_norm") return true;
  if (type != "layer_norm")
    c.vision.reject("norm_type: expected layer_norm or rms_norm, found \"" + type.substr(0, 80) +
                    "\"");
  return false;
}

void add_block(EncoderSpec& spec, const Config& c, const Layout& layout, int i) {
  const ConfigReader& v = c.vision;
  const std::string layer = layout.layers + std::to_string(i) + ".";
  const float eps = v.float_or("layer_norm_eps", layout.sizes.eps);
  const bool rms = is_rms(c, layout);
  const auto norm = [&](const char* module) {
    return rms ? rms_norm(layer + module, eps) : layer_norm(layer + module, eps);
  };
  const std::string within = layer + layout.attention;
  Attention attention = attention_heads(c, spec, layout.sizes);
  if (layout.fused_qkv != nullptr) {
    attention.fused = within + layout.fused_qkv;
  } else {
    attention.q = within + "q_proj";
    attention.k = within + "k_proj";
    attention.v = within + "v_proj";
  }
  attention.out = within + layout.attention_out;
  attention.bias = v.bool_or(layout.bias_key, layout.bias);
  if (v.bool_or(layout.qk_norm_key, layout.qk_norm)) {
    const float qk_eps = layout.qk_norm_eps > 0 ? layout.qk_norm_eps : eps;
    attention.q_norm = rms_norm(within + "q_norm", qk_eps);
    attention.k_norm = rms_norm(within + "k_norm", qk_eps);
  }
  add(spec, attention, norm(layout.attention_norm));
  spec.stages.back().scale = layer + layout.attention_scale;
  Mlp mlp = mlp_sizes(c, layout.sizes);
  mlp.up = layer + "mlp.fc1";
  mlp.out = layer + "mlp.fc2";
  add(spec, mlp, norm(layout.mlp_norm));
  spec.stages.back().scale = layer + layout.mlp_scale;
}

// Those before the rows that are wanted. True: all there are.
bool add_blocks(EncoderSpec& spec, const Config& c, const Layout& layout) {
  const int layers = layer_count(c, layout.sizes);
  const int kept = feature_layer(c.all, layout.layer_key, -1, layers);
  for (int i = 0; i < kept; ++i) add_block(spec, c, layout, i);
  for (int i = kept; i < layers; ++i)
    spec.unused.push_back(layout.layers + std::to_string(i) + ".");
  return kept == layers;
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

void add_projector(EncoderSpec& spec, const Config& c, const Layout& layout, const Merge& merge) {
  add(spec, DropClassRow{});
  add(spec, merge);
  add(spec, Normalise{layer_norm(layout.projector_norm, 1e-5f)});
  add(spec, Project{.module = layout.projector_in,
                    .width = c.text_width,
                    .act = activation(c.all, "projector_hidden_act", "gelu")});
  add(spec, Project{.module = layout.projector_out, .width = c.text_width});
}

}  // namespace

EncoderSpec internvl(const Config& c) {
  const ConfigReader& v = c.vision;
  const Layout& layout = kTransformers;
  EncoderSpec spec = bare_tower(c, layout.sizes);
  Patches patches = {.module = layout.patches, .class_row = layout.class_row};
  v.expect_bool("use_mask_token", false);
  const int across = patches_across(c, layout.sizes);
  if (v.bool_or("use_absolute_position_embeddings", false))
    patches.positions = {
        .kind = PositionTable::kOneByOne, .tensor = layout.positions, .side = across};
  add(spec, patches);
  const bool whole = add_blocks(spec, c, layout);
  if (!v.bool_or("use_mean_pooling", true)) {
    if (whole)
      add(spec, Normalise{layer_norm("tower.layernorm",
                                     v.float_or("layer_norm_eps", layout.sizes.eps))});
    else
      spec.unused.push_back("tower.layernorm.");
  }
  if (c.all.string_or("vision_feature_select_strategy", "default") != "default")
    c.all.reject("vision_feature_select_strategy: expected default, for patches join in squares");
  add_projector(spec, c, layout, {.side = merged_side(c)});
  for (const char* key :
       {"layer_scale_init_value", "initializer_factor", "dropout", "projection_dropout"})
    v.ignore(key);
  spec.tower_roots = {"vision_tower.", "model.vision_tower."};
  spec.projector_roots = projector_roots("multi_modal_projector.");
  return spec;
}

EncoderSpec internvl_chat(const Config& c) {
  const ConfigReader& v = c.vision;
  const Layout& layout = kOlder;
  EncoderSpec spec = bare_tower(c, layout.sizes);
  add(spec, Patches{.module = layout.patches,
                    .class_row = layout.class_row,
                    .positions = {.kind = PositionTable::kOneByOne,
                                  .tensor = layout.positions,
                                  .side = patches_across(c, layout.sizes)}});
  // Another size would have the table resized.
  if (c.all.has("force_image_size"))
    c.all.expect_int("force_image_size", side(v, "image_size", layout.sizes.image));
  add_blocks(spec, c, layout);
  // The first version left the grid of squares turned over.
  const std::string version = c.all.string_or("ps_version", "v1");
  if (version != "v1" && version != "v2")
    c.all.reject("ps_version: expected v1 or v2, found \"" + version.substr(0, 80) + "\"");
  add_projector(spec, c, layout, {.side = merged_side(c), .transposed = version == "v1"});
  // Of training, and of mixtures of experts that no published tower has.
  v.expect_bool("use_moe", false);
  for (const char* key :
       {"capacity_factor", "drop_path_rate", "eval_capacity_factor", "initializer_factor",
        "laux_allreduce", "moe_coeff_ratio", "moe_intermediate_size", "moe_output_scale",
        "noisy_gate_policy", "num_experts", "num_routed_experts", "num_shared_experts",
        "shared_expert_intermediate_size", "skip_vision", "use_residual", "use_rts",
        "use_weighted_residual"})
    v.ignore(key);
  spec.tower_roots = {"vision_model."};
  spec.projector_roots = {"mlp1."};
  return spec;
}

}  // namespace weir::encoder::family
