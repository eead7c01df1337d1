// Towers that read blocks of patches (Qwen-VL, GLM-4.1V), with drawn weights, against the same
// arithmetic written plainly: pictures of any shape, at the edges of windows, several together.
#include <gtest/gtest.h>

#include "encoder/families.h"
#include "encoder/hand_made_tower.h"
#include "encoder/plain_tower.h"

namespace weir::encoder {
namespace {

constexpr int kPatch = 2, kNumbers = 3 * 2 * kPatch * kPatch, kWidth = 24, kWide = 20, kText = 32;
constexpr int kSide = 5;    // Of tables of positions.
constexpr int kWindow = 6;  // Patches: three blocks.
constexpr int64_t kPixelsMax = int64_t{40} * 40;
constexpr double kEps = 1e-6;

constexpr char kText32[] =
    R"("text_config":{"model_type":"llama","hidden_size":32,"intermediate_size":48,)"
    R"("num_hidden_layers":4,"num_attention_heads":2,"num_key_value_heads":2,"vocab_size":48},)";
// What all towers here have.
constexpr char kShared[] = R"("vision_config":{"num_heads":2,"patch_size":2,"hidden_size":24,)";

std::string config_of(const std::string& architecture, const std::string& type,
                      const std::string& text, const std::string& vision) {
  std::string own = kText32;
  own.replace(own.find("llama"), 5, text);
  return R"({"architectures":[")" + architecture + R"("],"model_type":")" + type + "\"," + own +
         kShared + vision + "}}";
}

const std::string kQwen25 = config_of(
    "Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl", "qwen2_5_vl_text",
    R"("depth":3,"intermediate_size":20,"out_hidden_size":32,"window_size":12,"in_chans":3,)"
    R"("fullatt_block_indexes":[1],"tokens_per_second":2)");
const std::string kQwen3 = config_of(
    "Qwen3VLForConditionalGeneration", "qwen3_vl", "qwen3_vl_text",
    R"("depth":3,"intermediate_size":20,"out_hidden_size":32,"num_position_embeddings":25,)"
    R"("deepstack_visual_indexes":[0,1])");
const std::string kGlm = config_of(
    "Glm4vForConditionalGeneration", "glm4v", "glm4v_text",
    R"("depth":2,"intermediate_size":20,"out_hidden_size":32,"image_size":10,"in_channels":3)");

std::string block(int i) { return "model.visual.blocks." + std::to_string(i) + "."; }

// A linear layer's weight and, where it has one, bias.
void draw(model::Weights& w, const std::string& module, int n, int k, bool bias = true) {
  w.draw(module + ".weight", n, k);
  if (bias) w.draw(module + ".bias", n);
}

void draw_norm(model::Weights& w, const std::string& module, int n, bool bias) {
  w.draw(module + ".weight", n);
  if (bias) w.draw(module + ".bias", n);
}

void draw_block(model::Weights& w, int i, bool rms, bool bias) {
  for (const char* norm : {"norm1", "norm2"}) draw_norm(w, block(i) + norm, kWidth, !rms);
  draw(w, block(i) + "attn.qkv", 3 * kWidth, kWidth, bias);
  draw(w, block(i) + "attn.proj", kWidth, kWidth, bias);
}

void draw_gated(model::Weights& w, const std::string& prefix, int width, int wide, bool bias) {
  for (const char* part : {"gate_proj", "up_proj"}) draw(w, prefix + part, wide, width, bias);
  draw(w, prefix + "down_proj", width, wide, bias);
}

model::Weights drawn_qwen25() {
  model::Weights w;
  draw(w, "model.visual.patch_embed.proj", kWidth, kNumbers, false);
  for (int i = 0; i < 3; ++i) {
    draw_block(w, i, /*rms=*/true, /*bias=*/true);
    draw_gated(w, block(i) + "mlp.", kWidth, kWide, true);
  }
  draw_norm(w, "model.visual.merger.ln_q", kWidth, false);
  draw(w, "model.visual.merger.mlp.0", 4 * kWidth, 4 * kWidth);
  draw(w, "model.visual.merger.mlp.2", kText, 4 * kWidth);
  return w;
}

model::Weights drawn_qwen3() {
  model::Weights w;
  draw(w, "model.visual.patch_embed.proj", kWidth, kNumbers);
  w.draw("model.visual.pos_embed.weight", kSide * kSide, kWidth);
  for (int i = 0; i < 3; ++i) {
    draw_block(w, i, /*rms=*/false, /*bias=*/true);
    draw(w, block(i) + "mlp.linear_fc1", kWide, kWidth);
    draw(w, block(i) + "mlp.linear_fc2", kWidth, kWide);
  }
  for (const char* merger : {"merger.", "deepstack_merger_list.0.", "deepstack_merger_list.1."}) {
    const std::string module = std::string("model.visual.") + merger;
    const bool joined = module != "model.visual.merger.";
    draw_norm(w, module + "norm", joined ? 4 * kWidth : kWidth, true);
    draw(w, module + "linear_fc1", 4 * kWidth, 4 * kWidth);
    draw(w, module + "linear_fc2", kText, 4 * kWidth);
  }
  return w;
}

model::Weights drawn_glm() {
  model::Weights w;
  draw(w, "model.visual.patch_embed.proj", kWidth, kNumbers);
  w.draw("model.visual.embeddings.position_embedding.weight", kSide * kSide, kWidth);
  for (const char* norm : {"post_conv_layernorm", "post_layernorm"})
    draw_norm(w, std::string("model.visual.") + norm, kWidth, false);
  for (int i = 0; i < 2; ++i) {
    draw_block(w, i, /*rms=*/true, /*bias=*/false);
    draw_gated(w, block(i) + "mlp.", kWidth, kText, false);
  }
  draw(w, "model.visual.downsample", kText, 4 * kWidth);
  draw(w, "model.visual.merger.proj", kText, kText, false);
  draw_norm(w, "model.visual.merger.post_projection_norm", kText, true);
  draw_gated(w, "model.visual.merger.", kText, kWide, false);
  return w;
}

PlainTower begin(const model::Weights& w, const DrawnPicture& picture) {
  PlainTower tower = {.weights = w, .down = picture.down, .across = picture.across};
  for (const PlainRow& patch : picture.patches)
    tower.rows.push_back(tower.linear("model.visual.patch_embed.proj", patch));
  return tower;
}

PlainRow gated(const PlainTower& tower, const std::string& prefix, const PlainRow& x) {
  PlainRow gate = PlainTower::act(tower.linear(prefix + "gate_proj", x), PlainTower::silu);
  const PlainRow up = tower.linear(prefix + "up_proj", x);
  for (size_t i = 0; i < gate.size(); ++i) gate[i] *= up[i];
  return tower.linear(prefix + "down_proj", gate);
}

// What a table of kSide x kSide rows gives at a place, by how much each of its rows and columns
// counts there.
PlainRow mixed(const std::vector<float>& table, const PlainRow& down, const PlainRow& across) {
  PlainRow out(kWidth);
  for (size_t i = 0; i < table.size(); ++i) {
    const size_t entry = i / kWidth;
    out[i % kWidth] += down[entry / kSide] * across[entry % kSide] * double{table[i]};
  }
  return out;
}

// The first and the last of `count` places are the table's first and last entry.
PlainRow between_corners(int i, int count) {
  const double place = count > 1 ? i * (kSide - 1.0) / (count - 1) : 0;
  PlainRow weights;
  for (int entry = 0; entry < kSide; ++entry)
    weights.push_back(std::max(0.0, 1 - std::fabs(entry - place)));
  return weights;
}

// Keys' kernel with a = -3/4, at the middles of `count` places; the table's edges go on for ever.
PlainRow by_cubic(int i, int count) {
  const double place = (i + 0.5) * kSide / count - 0.5;
  const auto kernel = [](double x) {
    x = std::fabs(x);
    if (x < 1) return (1.25 * x - 2.25) * x * x + 1;
    return x < 2 ? -0.75 * (((x - 5) * x + 8) * x - 4) : 0;
  };
  PlainRow weights(kSide);
  for (int entry = -4; entry < kSide + 4; ++entry)
    weights[static_cast<size_t>(std::clamp(entry, 0, kSide - 1))] += kernel(place - entry);
  return weights;
}

void give(std::vector<float>& out, const PlainRow& row) {
  for (const double value : row) out.push_back(static_cast<float>(value));
}

std::vector<float> plain_qwen25(const model::Weights& w, const DrawnPicture& picture) {
  PlainTower tower = begin(w, picture);
  for (int i = 0; i < 3; ++i) {
    tower.attend(block(i), kEps, i == 1 ? 0 : kWindow);
    for (PlainRow& row : tower.rows)
      PlainTower::add(row,
                      gated(tower, block(i) + "mlp.", tower.norm(block(i) + "norm2", row, kEps)));
  }
  for (PlainRow& row : tower.rows) row = tower.norm("model.visual.merger.ln_q", row, kEps);
  std::vector<float> out;
  for (const PlainRow& row : tower.merged())
    give(out, tower.linear("model.visual.merger.mlp.2",
                           PlainTower::act(tower.linear("model.visual.merger.mlp.0", row),
                                           PlainTower::gelu)));
  return out;
}

std::vector<float> plain_qwen3(const model::Weights& w, const DrawnPicture& picture) {
  PlainTower tower = begin(w, picture);
  const auto merge = [&](const std::string& module, std::vector<float>& out) {
    for (const PlainRow& row : tower.merged()) {
      // The norm of the last one came before patches joined.
      const bool joined = module != "model.visual.merger.";
      const PlainRow x = joined ? tower.norm(module + "norm", row, kEps) : row;
      give(out,
           tower.linear(module + "linear_fc2",
                        PlainTower::act(tower.linear(module + "linear_fc1", x), PlainTower::gelu)));
    }
  };
  for (int i = 0; i < picture.down * picture.across; ++i)
    PlainTower::add(tower.rows[static_cast<size_t>(i)],
                    mixed(w.at("model.visual.pos_embed.weight"),
                          between_corners(i / picture.across, picture.down),
                          between_corners(i % picture.across, picture.across)));
  std::vector<float> levels, out;
  for (int i = 0; i < 3; ++i) {
    tower.attend(block(i), kEps);
    for (PlainRow& row : tower.rows) {
      const PlainRow x =
          tower.linear(block(i) + "mlp.linear_fc1", tower.norm(block(i) + "norm2", row, kEps));
      PlainTower::add(row, tower.linear(block(i) + "mlp.linear_fc2",
                                        PlainTower::act(x, PlainTower::gelu_tanh)));
    }
    if (i < 2) merge("model.visual.deepstack_merger_list." + std::to_string(i) + ".", levels);
  }
  for (PlainRow& row : tower.rows) row = tower.norm("model.visual.merger.norm", row, kEps);
  merge("model.visual.merger.", out);
  out.insert(out.end(), levels.begin(), levels.end());
  return out;
}

std::vector<float> plain_glm(const model::Weights& w, const DrawnPicture& picture) {
  constexpr double kGlmEps = 1e-5;
  PlainTower tower = begin(w, picture);
  for (int i = 0; i < picture.down * picture.across; ++i) {
    PlainRow& row = tower.rows[static_cast<size_t>(i)];
    row = tower.norm("model.visual.post_conv_layernorm", row, kGlmEps);
    PlainTower::add(row, mixed(w.at("model.visual.embeddings.position_embedding.weight"),
                               by_cubic(i / picture.across, picture.down),
                               by_cubic(i % picture.across, picture.across)));
  }
  for (int i = 0; i < 2; ++i) {
    tower.attend(block(i), kGlmEps);
    for (PlainRow& row : tower.rows)
      PlainTower::add(
          row, gated(tower, block(i) + "mlp.", tower.norm(block(i) + "norm2", row, kGlmEps)));
  }
  for (PlainRow& row : tower.rows) row = tower.norm("model.visual.post_layernorm", row, kGlmEps);
  std::vector<float> out;
  for (const PlainRow& row : tower.merged(/*by_number=*/true)) {
    const PlainRow x =
        tower.linear("model.visual.merger.proj", tower.linear("model.visual.downsample", row));
    give(out, gated(tower, "model.visual.merger.",
                    PlainTower::act(tower.norm("model.visual.merger.post_projection_norm", x, 1e-5),
                                    PlainTower::gelu)));
  }
  return out;
}

struct Family {
  const char* name;
  std::string config;
  model::Weights (*weights)();
  std::vector<float> (*plain)(const model::Weights&, const DrawnPicture&);
};

void PrintTo(const Family& family, std::ostream* out) { *out << family.name; }

class BlockTowers : public testing::TestWithParam<Family> {
 protected:
  HandMadeTower tower(kernels::Isa isa, int threads,
                      model::Compute compute = model::Compute::kExact) const {
    return HandMadeTower(GetParam().weights(), GetParam().config, isa, threads, compute,
                         kPixelsMax);
  }
};

// One block; a line, either way; windows that are full, end early, and both; then any sizes.
std::vector<DrawnPicture> pictures(int drawn) {
  std::vector<DrawnPicture> all;
  std::vector<std::pair<int, int>> sizes = {{1, 1}, {1, 7}, {10, 1}, {3, 3},
                                            {6, 3}, {4, 3}, {3, 8},  {7, 5}};
  std::mt19937 random(11);
  for (int i = 0; i < drawn; ++i) {
    const auto side = [&random] { return static_cast<int>(random() % 10) + 1; };
    const int down = side();
    sizes.emplace_back(down, side());
  }
  for (const auto& [down, across] : sizes)
    all.emplace_back(down, across, kPatch, static_cast<unsigned>(all.size()));
  return all;
}

std::vector<media::PixelValues> values_of(const std::vector<DrawnPicture>& pictures) {
  std::vector<media::PixelValues> all;
  for (const DrawnPicture& picture : pictures) all.push_back(picture.values);
  return all;
}

TEST_P(BlockTowers, ComputeWhatTheirEquationsSay) {
  const std::vector<DrawnPicture> all = pictures(6);
  const model::Weights weights = GetParam().weights();
  std::vector<std::vector<float>> expected;
  for (const DrawnPicture& picture : all) expected.push_back(GetParam().plain(weights, picture));
  for (int level = 0; level <= static_cast<int>(kernels::detect_isa()); ++level) {
    HandMadeTower made = tower(static_cast<kernels::Isa>(level), 2);
    ASSERT_NE(made.encoder, nullptr) << made.error;
    const auto found = made.features(values_of(all), 3);
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(found[i].size(), expected[i].size());
      EXPECT_LT(model::largest_difference(found[i], expected[i]), 5e-4)
          << all[i].down << " x " << all[i].across << " patches, level " << level;
    }
  }
}

TEST_P(BlockTowers, GiveAPictureTheSameBitsWhateverIsWithIt) {
  const std::vector<media::PixelValues> all = values_of(pictures(2));
  for (const auto compute : {model::Compute::kExact, model::Compute::kFast}) {
    HandMadeTower one = tower(kernels::detect_isa(), 1, compute);
    HandMadeTower three = tower(kernels::detect_isa(), 3, compute);
    ASSERT_NE(one.encoder, nullptr) << one.error;
    const auto together = three.features(all, Encoder::kAllWork);
    for (size_t i = 0; i < all.size(); ++i)
      EXPECT_EQ(one.features({all[i]})[0], together[i]) << "picture " << i;
  }
}

TEST_P(BlockTowers, MayBeNamedAsOlderFilesAndMlxNameThem) {
  const std::vector<media::PixelValues> one = {DrawnPicture(2, 3, kPatch, 1).values};
  const std::string published = "model.visual.";
  const auto expected = tower(kernels::detect_isa(), 2).features(one);
  for (const char* root : {"visual.", "vision_tower."}) {
    const model::Weights weights = GetParam().weights();
    model::Weights renamed;
    for (const std::string& name : weights.names())
      renamed.take(weights, name, root + name.substr(published.size()));
    HandMadeTower made(renamed, GetParam().config, kernels::detect_isa(), 2, model::Compute::kExact,
                       kPixelsMax);
    ASSERT_NE(made.encoder, nullptr) << made.error;
    EXPECT_EQ(made.features(one), expected) << root;
  }
}

TEST_P(BlockTowers, RefusePicturesOfOtherSizesAndNumbers) {
  HandMadeTower made = tower(kernels::detect_isa(), 1);
  ASSERT_NE(made.encoder, nullptr) << made.error;
  media::PixelValues values = DrawnPicture(2, 2, kPatch, 1).values;
  const auto refusal = [&] {
    const Picture begun = {&values, {}};
    const auto taken = made.encoder->begin({&begun, 1});
    return taken ? "" : taken.error().message;
  };
  values.views = {{8, 6}};
  EXPECT_EQ(refusal(),
            "a picture of 8 x 6 pixels: expected sides of a multiple of 2 patches, found 4 x 3");
  values.views = {{8, 4}};
  EXPECT_EQ(refusal(), "a picture: expected 192 numbers, found 384");
}

INSTANTIATE_TEST_SUITE_P(Families, BlockTowers,
                         testing::Values(Family{"qwen2_5_vl", kQwen25, drawn_qwen25, plain_qwen25},
                                         Family{"qwen3_vl", kQwen3, drawn_qwen3, plain_qwen3},
                                         Family{"glm4v", kGlm, drawn_glm, plain_glm}),
                         [](const auto& tested) { return tested.param.name; });

std::string config_error(std::string config, const std::string& key, const std::string& other) {
  const size_t at = config.find(key);
  EXPECT_NE(at, std::string::npos) << key;
  config.replace(at, key.size(), other);
  const auto doc = JsonDoc::parse(config);
  EXPECT_TRUE(doc);
  const auto spec = spec_from_config(doc->root());
  return spec ? "" : spec.error().message;
}

TEST(BlockTowerConfig, SaysWhatIsWrong) {
  EXPECT_EQ(config_error(kQwen3, "[0,1]", "[]"), "");
  EXPECT_NE(config_error(kQwen3, "[0,1]", "[1,0]").find("expected ascending numbers below"),
            std::string::npos);
  EXPECT_NE(config_error(kQwen3, "[0,1]", "[1,3]").find("below the depth, 3"), std::string::npos);
  EXPECT_NE(config_error(kQwen3, R"("num_hidden_layers":4)", R"("num_hidden_layers":2)")
                .find("expected fewer numbers than the text has layers, 2, found 2"),
            std::string::npos);
  EXPECT_NE(config_error(kQwen3, "25", "26").find("expected a square, found 26"),
            std::string::npos);
  EXPECT_NE(config_error(kQwen25, R"("out_hidden_size":32)", R"("out_hidden_size":64)")
                .find("'vision_config.out_hidden_size': expected 32"),
            std::string::npos);
  EXPECT_NE(config_error(kGlm, R"("num_heads":2)", R"("num_heads":5)").find("divisor of"),
            std::string::npos);
  EXPECT_NE(config_error(kGlm, R"("num_heads":2)", R"("num_heads":4)").find("multiple of 4"),
            std::string::npos);
}

TEST(BlockTowerConfig, IsDescribed) {
  const auto described = [](const std::string& config) {
    const auto doc = JsonDoc::parse(config);
    const auto spec = spec_from_config(doc->root());
    return spec ? describe(*spec) : spec.error().message;
  };
  EXPECT_EQ(described(kQwen25),
            "qwen2_5_vl: blocks of 2 pixels, width 24, 2 frames, blocks of 2, windows of 6, rope "
            "by equal rates, theta 10000\n"
            "patches\n"
            "attention 2 x 12, scale 0.288675, fused, bias, in windows; before: rms 1e-06\n"
            "gated mlp 20 silu, bias; before: rms 1e-06\n"
            "attention 2 x 12, scale 0.288675, fused, bias; before: rms 1e-06\n"
            "gated mlp 20 silu, bias; before: rms 1e-06\n"
            "attention 2 x 12, scale 0.288675, fused, bias, in windows; before: rms 1e-06\n"
            "gated mlp 20 silu, bias; before: rms 1e-06\n"
            "norm: rms 1e-06\n"
            "2 x 2 merged, patch by patch\n"
            "linear 96, bias, gelu\n"
            "linear 32, bias\n");
  EXPECT_EQ(described(kQwen3),
            "qwen3_vl: blocks of 2 pixels, width 24, 2 frames, blocks of 2, rope by equal rates, "
            "theta 10000\n"
            "patches, bias, positions from corner to corner (5 x 5)\n"
            "3 x (attention 2 x 12, scale 0.288675, fused, bias; before: layernorm 1e-06 | "
            "mlp 20 gelu_tanh, bias; before: layernorm 1e-06)\n"
            "norm: layernorm 1e-06\n"
            "2 x 2 merged, patch by patch\n"
            "linear 96, bias, gelu\n"
            "linear 32, bias\n"
            "after stage 2, a level:\n"
            "2 x 2 merged, patch by patch\n"
            "norm: layernorm 1e-06\n"
            "linear 96, bias, gelu\n"
            "linear 32, bias\n"
            "after stage 4, a level:\n"
            "2 x 2 merged, patch by patch\n"
            "norm: layernorm 1e-06\n"
            "linear 96, bias, gelu\n"
            "linear 32, bias\n");
  EXPECT_EQ(described(kGlm),
            "glm4v: blocks of 2 pixels, width 24, 2 frames, blocks of 2, rope by equal rates, "
            "theta 10000\n"
            "patches, bias, then rms 1e-05, positions bicubic (5 x 5)\n"
            "2 x (attention 2 x 12, scale 0.288675, fused; before: rms 1e-05 | "
            "gated mlp 32 silu; before: rms 1e-05)\n"
            "norm: rms 1e-05\n"
            "2 x 2 merged, number by number\n"
            "linear 32, bias, of squares of 2\n"
            "linear 32\n"
            "norm: layernorm 1e-05, gelu\n"
            "gated mlp 20 silu; in its place\n");
}

}  // namespace
}  // namespace weir::encoder
