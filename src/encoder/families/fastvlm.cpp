// FastVLM (llava_qwen2): FastViTHD, stages of convolutions and then of attention on ever coarser
// grids, each half as high and wide as the one before.
#include <algorithm>
#include <cmath>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

using kernels::Act;

constexpr int kHeadDim = 32;  // No key says it.
constexpr size_t kStagesMax = 8;

std::string numbered(const std::string& module, int i) { return module + std::to_string(i); }

// What differs from stage to stage; without a word those of mobileclip_l.
struct StageSizes {
  int layers = 0, width = 0, ratio = 0;
  bool attends = false, placed = false;
};

template <class T>
std::vector<T> or_else(std::vector<T> found, std::vector<T> otherwise) {
  return found.empty() ? otherwise : found;
}

std::vector<StageSizes> read_stages(const ConfigReader& v) {
  const std::vector<int> layers = or_else(v.ints("layers", 1), {2, 12, 24, 4, 2});
  const std::vector<int> widths = or_else(v.ints("embed_dims", 1), {96, 192, 384, 768, 1536});
  const std::vector<int> ratios = or_else(v.ints("mlp_ratios", 1), {4, 4, 4, 4, 4});
  const std::vector<std::string> mixers = or_else<std::string>(
      v.strings("token_mixers"), {"repmixer", "repmixer", "repmixer", "attention", "attention"});
  const size_t count = layers.size();
  if (count > kStagesMax || widths.size() != count || ratios.size() != count ||
      mixers.size() != count) {
    v.reject("layers, embed_dims, mlp_ratios, token_mixers: expected one for each of up to " +
             std::to_string(kStagesMax) + " stages");
    return {};
  }
  std::vector<StageSizes> stages;
  for (size_t i = 0; i < count; ++i) {
    if (layers[i] > kLayersMax || widths[i] > kWidthMax || ratios[i] > kMergeMax)
      v.reject("layers, embed_dims, mlp_ratios: found a number that is too large");
    if (i > 0 && widths[i] % widths[i - 1] != 0)
      v.reject("embed_dims: expected multiples of the ones before");
    const bool attends = mixers[i] == "attention";
    if (!attends && mixers[i] != "repmixer")
      v.reject("token_mixers: expected repmixer or attention, found " + mixers[i].substr(0, 80));
    if (attends && widths[i] % kHeadDim != 0)
      v.reject("embed_dims: expected whole heads of " + std::to_string(kHeadDim));
    stages.push_back({layers[i], widths[i], ratios[i], attends, attends});
  }
  return stages;
}

// Which stages begin with a convolution for the rows' places: those with a size in pos_embs_shapes.
void read_places(const ConfigReader& v, std::vector<StageSizes>& stages) {
  const auto value = v.value("pos_embs_shapes");
  JsonArray shapes;
  if (!value || value->get(shapes) != simdjson::SUCCESS) return;
  if (shapes.size() != stages.size())
    v.reject("pos_embs_shapes: expected one for each of " + std::to_string(stages.size()) +
             " stages, found " + std::to_string(shapes.size()));
  size_t i = 0;
  for (const JsonValue shape : shapes)
    if (i < stages.size()) stages[i++].placed = !shape.is_null();
}

void add_stem(EncoderSpec& spec) {
  const std::string blocks = "tower.patch_embed.blocks.";
  add(spec,
      PixelConv{.module = blocks + "0.reparam_conv", .tells_layout = blocks + "1.reparam_conv"});
  add(spec, Convolve{.conv = {.module = blocks + "1.reparam_conv"},
                     .stride = 2,
                     .width = spec.width,
                     .act = Act::kGelu});
  add(spec, Project{.module = blocks + "2.reparam_conv", .width = spec.width, .act = Act::kGelu});
}

void add_block(EncoderSpec& spec, const ConfigReader& v, const std::string& block,
               const StageSizes& stage) {
  if (stage.attends) {
    add(spec,
        Attention{.heads = std::max(stage.width / kHeadDim, 1),
                  .head_dim = kHeadDim,
                  .scale = 1 / std::sqrt(static_cast<float>(kHeadDim)),
                  .fused = block + "token_mixer.qkv",
                  .out = block + "token_mixer.proj",
                  .bias = false},
        layer_norm(block + "norm", 1e-5f));
    spec.stages.back().scale = block + "layer_scale_1";
  } else {
    add(spec, Convolve{.conv = {.module = block + "token_mixer.reparam_conv",
                                .kernel = v.int_or("repmixer_kernel_size", 3, 1, 31)},
                       .width = stage.width});
  }
  const std::string network = block + "convffn.";
  add(spec, Mlp{.width = stage.width * stage.ratio,
                .act = Act::kGelu,
                .up = network + "fc1",
                .out = network + "fc2",
                .conv = Depthwise{.module = network + "conv.conv",
                                  .kernel = 7,
                                  .bias = false,
                                  .batch_norm = network + "conv.bn"}});
  spec.stages.back().scale = block + (stage.attends ? "layer_scale_2" : "layer_scale");
  spec.unused.push_back(network + "conv.bn.num_batches_tracked");
}

// The way to a grid half as high and wide.
void add_downsampling(EncoderSpec& spec, const ConfigReader& v, const std::string& module,
                      int width) {
  v.expect_int("down_stride", 2);
  add(spec, Convolve{.conv = {.module = module + "proj.0.lkb_reparam",
                              .kernel = v.int_or("down_patch_size", 7, 1, 31)},
                     .stride = 2,
                     .width = width,
                     .act = Act::kGelu});
  add(spec, Project{.module = module + "proj.1.reparam_conv", .width = width, .act = Act::kGelu});
}

void expect_sizes(const Config& c, int width) {
  const std::string kind = c.all.string_or("mm_projector_type", "mlp2x_gelu");
  if (kind != "mlp2x_gelu")
    c.all.reject("mm_projector_type: expected mlp2x_gelu, found " + kind.substr(0, 80));
  c.all.expect_int("mm_hidden_size", width);
  // Of the network that pictures are compared with sentences by, and of no use here.
  for (const char* key : {"hidden_size", "image_size", "intermediate_size", "num_classes",
                          "layer_scale_init_value", "patch_size", "projection_dim", "downsamples"})
    c.vision.ignore(key);
}

}  // namespace

EncoderSpec fastvlm(const Config& c) {
  const ConfigReader& v = c.vision;
  std::vector<StageSizes> stages = read_stages(v);
  if (stages.empty()) return {};
  read_places(v, stages);
  EncoderSpec spec;
  spec.patch = 2;  // The first convolution's stride.
  spec.width = stages.front().width;
  add_stem(spec);
  int module = 0;
  for (size_t i = 0; i < stages.size(); ++i) {
    const std::string network = "tower.network.";
    if (i > 0) add_downsampling(spec, v, numbered(network, module++) + ".", stages[i].width);
    if (stages[i].placed)
      add(spec,
          Convolve{.conv = {.module = numbered(network, module++) + ".reparam_conv", .kernel = 7},
                   .width = stages[i].width});
    for (int layer = 0; layer < stages[i].layers; ++layer)
      add_block(spec, v, numbered(numbered(network, module) + ".", layer) + ".", stages[i]);
    ++module;
  }
  const int width = stages.back().width;
  const int wide = static_cast<int>(static_cast<float>(width) * v.float_or("cls_ratio", 2));
  if (wide < width || wide % width != 0 || wide > kWidthMax)
    v.reject("cls_ratio: expected a whole number");
  add(spec, Convolve{.conv = {.module = "tower.conv_exp.reparam_conv"}, .width = wide});
  add(spec, SqueezeExcite{.module = "tower.conv_exp.se", .inner = std::max(wide / 16, 1)});
  expect_sizes(c, wide);
  add(spec, Project{.module = "projector.0", .width = c.text_width, .act = Act::kGelu});
  add(spec, Project{.module = "projector.2", .width = c.text_width});
  spec.unused.push_back("tower.head.");
  spec.tower_roots = {"vision_tower.vision_model.", "model.vision_tower.vision_tower.model.",
                      "vision_tower.vision_tower.model."};
  spec.projector_roots = {"mm_projector.", "model.mm_projector."};
  return spec;
}

}  // namespace weir::encoder::family
