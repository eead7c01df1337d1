// The Qwen-VL families: pixels come by blocks of patches, which become one row in the end, and
// heads turn by row and column. Qwen2.5-VL attends within windows; Qwen3-VL has learned positions
// too, and hands over the rows of some blocks besides.
#include <algorithm>

#include "encoder/families/family.h"

namespace weir::encoder::family {

namespace {

constexpr Sizes kQwen2 = {
    .width = 1280, .layers = 32, .heads = 16, .patch = 14, .act = "quick_gelu"};
constexpr Sizes kQwen25 = {
    .width = 3584, .mlp = 3420, .layers = 32, .heads = 16, .patch = 14, .act = "silu"};
constexpr Sizes kQwen3 = {.width = 1152, .mlp = 4304, .layers = 27, .heads = 16};
constexpr int kQwen3Positions = 2304;
constexpr float kEps = 1e-6f;  // Of all their norms; no key says it.

// A norm, and two layers of what a block's patches have together.
void add_merger(EncoderSpec& spec, const Config& c, const Norm& norm) {
  add(spec, Normalise{norm});
  add(spec, Merge{.side = spec.merge});
  add(spec, Project{.module = "tower.merger.mlp.0",
                    .width = spec.width * spec.merge * spec.merge,
                    .act = kernels::Act::kGelu});
  add(spec, Project{.module = "tower.merger.mlp.2", .width = c.text_width});
}

// The same in Qwen3-VL, at `module`; `joined`: the norm comes after patches have joined.
std::vector<Stage> merger(const EncoderSpec& spec, const Config& c, const std::string& module,
                          bool joined) {
  const Stage norm = {Normalise{layer_norm(module + "norm", kEps)}};
  std::vector<Stage> stages = {{Merge{.side = spec.merge}}};
  stages.insert(joined ? stages.end() : stages.begin(), norm);
  stages.push_back({Project{.module = module + "linear_fc1",
                            .width = spec.width * spec.merge * spec.merge,
                            .act = kernels::Act::kGelu}});
  stages.push_back({Project{.module = module + "linear_fc2", .width = c.text_width}});
  return stages;
}

// The blocks whose rows are levels of features.
std::vector<int> level_blocks(const Config& c, std::vector<int> fallback, int layers) {
  const char* key = "deepstack_visual_indexes";
  const std::vector<int> blocks = c.vision.has(key) ? c.vision.ints(key, 0) : std::move(fallback);
  c.vision.ignore(key);
  if (std::ranges::adjacent_find(blocks, std::ranges::greater_equal()) != blocks.end() ||
      (!blocks.empty() && blocks.back() >= layers))
    c.vision.reject(std::string(key) + ": expected ascending numbers below the depth, " +
                    std::to_string(layers));
  return blocks;
}

EncoderSpec qwen3(const Config& c, std::vector<int> levels) {
  EncoderSpec spec = block_tower(c, kQwen3);
  c.vision.expect_int("out_hidden_size", c.text_width);
  add(spec,
      Patches{.module = "tower.patch_embed.proj",
              .positions = {.kind = PositionTable::kCorners,
                            .tensor = "tower.pos_embed.weight",
                            .side = table_side(c, "num_position_embeddings", kQwen3Positions)}});
  TowerBlock block = {.attention = block_heads(c, spec, kQwen3),
                      .mlp = mlp_sizes(c, kQwen3),
                      .eps = kEps};
  block.mlp.up = "linear_fc1";
  block.mlp.out = "linear_fc2";
  const int layers = layer_count(c, kQwen3, "depth");
  levels = level_blocks(c, std::move(levels), layers);
  for (int i = 0; i < layers; ++i) {
    add_block(spec, block, i);
    if (!std::ranges::count(levels, i)) continue;
    const std::string number = std::to_string(spec.levels.size());
    spec.levels.push_back(
        {.after = spec.stages.size() - 1,
         .stages = merger(spec, c, "tower.deepstack_merger_list." + number + ".", true)});
  }
  for (Stage& stage : merger(spec, c, "tower.merger.", false))
    spec.stages.push_back(std::move(stage));
  return spec;
}

}  // namespace

EncoderSpec qwen2_vl(const Config& c) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec = block_tower(c, kQwen2, "embed_dim");
  v.expect_int("hidden_size", c.text_width);
  add(spec, Patches{.module = "tower.patch_embed.proj", .bias = false});
  TowerBlock block = {.attention = block_heads(c, spec, kQwen2),
                      .mlp = {.width = spec.width * v.int_or("mlp_ratio", 4, 1, kRatioMax),
                              .act = activation(v, "hidden_act", kQwen2.act)},
                      .eps = kEps};
  block.mlp.up = "fc1";
  block.mlp.out = "fc2";
  const int layers = layer_count(c, kQwen2, "depth");
  for (int i = 0; i < layers; ++i) add_block(spec, block, i);
  add_merger(spec, c, layer_norm("tower.merger.ln_q", kEps));
  return spec;
}

EncoderSpec qwen2_5_vl(const Config& c) {
  const ConfigReader& v = c.vision;
  EncoderSpec spec = block_tower(c, kQwen25);
  v.expect_int("out_hidden_size", c.text_width);
  v.ignore("tokens_per_second");  // Of video.
  spec.window = v.int_or("window_size", 112, spec.patch * spec.merge, kSideMax) / spec.merge /
                spec.patch * spec.merge;
  add(spec, Patches{.module = "tower.patch_embed.proj", .bias = false});
  TowerBlock block = {.attention = block_heads(c, spec, kQwen25),
                      .mlp = mlp_sizes(c, kQwen25),
                      .rms = true,
                      .eps = kEps};
  block.mlp.gate = "gate_proj";
  block.mlp.up = "up_proj";
  block.mlp.out = "down_proj";
  const std::vector<int> whole = v.has("fullatt_block_indexes") ? v.ints("fullatt_block_indexes", 0)
                                                                : std::vector{7, 15, 23, 31};
  const int layers = layer_count(c, kQwen25, "depth");
  for (int i = 0; i < layers; ++i) {
    block.attention.windows = !std::ranges::count(whole, i);
    add_block(spec, block, i);
  }
  add_merger(spec, c, rms_norm("tower.merger.ln_q", kEps));
  return spec;
}

EncoderSpec qwen3_5(const Config& c) { return qwen3(c, {}); }
EncoderSpec qwen3_vl(const Config& c) { return qwen3(c, {8, 16, 24}); }

}  // namespace weir::encoder::family
