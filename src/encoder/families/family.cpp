#include "encoder/families/family.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::encoder::family {

void add(EncoderSpec& spec, Operation op, std::optional<Norm> pre) {
  spec.stages.push_back({.op = std::move(op), .pre = std::move(pre)});
}

kernels::Act activation(const ConfigReader& c, std::string_view key, std::string_view fallback) {
  using kernels::Act;
  static constexpr std::array<std::pair<std::string_view, Act>, 6> kNames = {{
      {"gelu", Act::kGelu},
      {"gelu_new", Act::kGeluTanh},
      {"gelu_pytorch_tanh", Act::kGeluTanh},
      {"quick_gelu", Act::kQuickGelu},
      {"relu", Act::kRelu},
      {"silu", Act::kSilu},
  }};
  const std::string name = c.string_or(key, fallback);
  std::string known;
  for (const auto& [known_name, act] : kNames) {
    if (known_name == name) return act;
    known += (known.empty() ? "" : ", ") + std::string(known_name);
  }
  c.reject(std::string(key) + ": expected one of " + known + ", found \"" + name.substr(0, 80) +
           "\"");
  return Act::kGelu;
}

int side(const ConfigReader& c, std::string_view key, int fallback) {
  const auto value = c.value(key);
  if (!value || !value->is_array()) return c.int_or(key, fallback, 1, kSideMax);
  const std::vector<int> both = c.ints(key, 1);
  if (both.size() == 2 && both[0] == both[1] && both[0] <= kSideMax) return both[0];
  c.reject(std::string(key) + ": expected a number, or the same twice, up to " +
           std::to_string(kSideMax) + ", found others");
  return fallback;
}

Norm layer_norm(std::string module, float eps) {
  return {.kind = Norm::kLayer, .eps = eps, .bias = true, .module = std::move(module)};
}

Norm rms_norm(std::string module, float eps) {
  return {.kind = Norm::kRms, .eps = eps, .module = std::move(module)};
}

EncoderSpec bare_tower(const Config& c, const Sizes& sizes) {
  EncoderSpec spec;
  spec.patch = side(c.vision, "patch_size", sizes.patch);
  spec.width = c.vision.int_or("hidden_size", sizes.width, 1, kWidthMax);
  c.vision.expect_int("num_channels", 3);
  return spec;
}

int patches_across(const Config& c, const Sizes& sizes) {
  return std::max(
      side(c.vision, "image_size", sizes.image) / side(c.vision, "patch_size", sizes.patch), 1);
}

Attention attention_heads(const Config& c, const EncoderSpec& spec, const Sizes& sizes,
                          std::string_view key) {
  const int heads = c.vision.int_or(key, sizes.heads, 1, kWidthMax);
  if (spec.width % heads != 0)
    c.vision.reject(std::string(key) + ": expected a divisor of hidden_size, " +
                    std::to_string(spec.width) + ", found " + std::to_string(heads));
  const int head_dim = std::max(spec.width / heads, 1);
  return {
      .heads = heads, .head_dim = head_dim, .scale = 1 / std::sqrt(static_cast<float>(head_dim))};
}

Mlp mlp_sizes(const Config& c, const Sizes& sizes) {
  return {.width = c.vision.int_or("intermediate_size", sizes.mlp, 1, kWidthMax),
          .act = activation(c.vision, "hidden_act", sizes.act)};
}

int table_side(const Config& c, std::string_view key, int fallback) {
  const int patches = c.vision.int_or(key, fallback, 1, kSideMax);
  const int side = static_cast<int>(std::lround(std::sqrt(static_cast<double>(patches))));
  if (side * side != patches)
    c.vision.reject(std::string(key) + ": expected a square, found " + std::to_string(patches));
  return side;
}

int layer_count(const Config& c, const Sizes& sizes, std::string_view key) {
  return c.vision.int_or(key, sizes.layers, 1, kLayersMax);
}

void add_blocks(EncoderSpec& spec, int count, Attention attention, Mlp mlp,
                const PlainBlocks& blocks) {
  for (int i = 0; i < count; ++i) {
    const std::string layer = blocks.layers + std::to_string(i) + ".";
    attention.q = layer + "self_attn.q_proj";
    attention.k = layer + "self_attn.k_proj";
    attention.v = layer + "self_attn.v_proj";
    attention.out = layer + "self_attn." + blocks.attention_out;
    add(spec, attention, layer_norm(layer + blocks.attention_norm, blocks.eps));
    mlp.up = layer + "mlp.fc1";
    mlp.out = layer + "mlp.fc2";
    add(spec, mlp, layer_norm(layer + blocks.mlp_norm, blocks.eps));
  }
}

EncoderSpec clip_tower(const Config& c, const Sizes& sizes) {
  EncoderSpec spec = bare_tower(c, sizes);
  const float eps = c.vision.float_or("layer_norm_eps", sizes.eps);
  add(spec, Patches{.module = "tower.embeddings.patch_embedding",
                    .positions = {.kind = PositionTable::kOneByOne,
                                  .tensor = "tower.embeddings.position_embedding.weight",
                                  .side = patches_across(c, sizes)}});
  add_blocks(spec, layer_count(c, sizes), attention_heads(c, spec, sizes), mlp_sizes(c, sizes),
             {.layers = "tower.encoder.layers.", .eps = eps});
  // Older files have the numbers of places as a tensor; a head that pools is for comparing pictures
  // with sentences.
  spec.unused = {"tower.embeddings.position_ids", "tower.head."};
  for (const char* key : {"projection_dim", "vision_use_head", "vocab_size", "initializer_factor"})
    c.vision.ignore(key);
  return spec;
}

EncoderSpec siglip_tower(const Config& c) {
  EncoderSpec spec = clip_tower(c, {});
  const float eps = c.vision.float_or("layer_norm_eps", Sizes{}.eps);
  add(spec, Normalise{layer_norm("tower.post_layernorm", eps)});
  return spec;
}

std::vector<std::string> tower_roots(const std::string& tower) {
  return {tower + "vision_model.", "model." + tower + "vision_model.", tower, "model." + tower};
}

std::vector<std::string> projector_roots(const std::string& projector) {
  return {projector, "model." + projector};
}

int feature_layer(const ConfigReader& c, std::string_view key, int fallback, int layers) {
  const int layer = c.int_or(key, fallback, -layers - 1, layers);
  return layer < 0 ? layers + 1 + layer : layer;
}

float rope_theta(const ConfigReader& c, float fallback) {
  const float theta = c.float_or("rope_theta", fallback);
  const auto rope = c.child("rope_parameters");
  if (!rope) return theta;
  if (const std::string type = rope->string_or("rope_type", "default"); type != "default")
    c.reject("rope_parameters.rope_type: expected default, found " + type.substr(0, 80));
  return rope->float_or("rope_theta", theta);
}

void add_selection(EncoderSpec& spec, const Config& c) {
  const std::string strategy = c.all.string_or("vision_feature_select_strategy", "default");
  if (strategy == "default")
    add(spec, DropClassRow{});
  else if (strategy != "full")
    c.all.reject("vision_feature_select_strategy: expected default or full, found " +
                 strategy.substr(0, 80));
}

void add_llava_projector(EncoderSpec& spec, const Config& c, bool bias) {
  add(spec, Project{.module = "projector.linear_1",
                    .width = c.text_width,
                    .bias = bias,
                    .act = activation(c.all, "projector_hidden_act", "gelu")});
  add(spec, Project{.module = "projector.linear_2", .width = c.text_width, .bias = bias});
  spec.projector_roots = projector_roots("multi_modal_projector.");
}

}  // namespace weir::encoder::family
