// InternVL's two layouts of files: the same drawn weights under the names of either give the same
// bits. What only the older one says: turned grids, and sizes and names that are not computed.
#include <gtest/gtest.h>

#include <random>

#include "base/concat.h"
#include "encoder/hand_made_tower.h"

namespace weir::encoder {
namespace {

constexpr int kPatch = 2, kNumbers = 3 * kPatch * kPatch, kSide = 4;  // Patches of a view's side.
constexpr int kWidth = 24, kHeads = 2, kWide = 20, kLayers = 2, kText = 32;
constexpr int kPixels = kSide * kPatch, kRows = kSide * kSide / 4;

// The towers of the family: the small one, and the one of six billion weights.
enum class Kind { kSmall, kLarge };

constexpr char kSizes[] =
    R"("hidden_size":24,"num_attention_heads":2,"num_hidden_layers":2,"intermediate_size":20,)"
    R"("image_size":8,"patch_size":2)";
constexpr char kLlama[] =
    R"({"model_type":"llama","hidden_size":32,"intermediate_size":48,"num_hidden_layers":1,)"
    R"("num_attention_heads":2,"num_key_value_heads":2,"vocab_size":48})";

std::string older_config(Kind kind, std::string_view more = R"("ps_version":"v2")",
                         std::string_view vision = "") {
  const char* small =
      R"(,"norm_type":"layer_norm","qkv_bias":true,"qk_normalization":false)";
  return concat({R"({"architectures":["InternVLChatModel"],"model_type":"internvl_chat",)",
                 R"("llm_config":)", kLlama, ",", more, R"(,"vision_config":{)", kSizes,
                 kind == Kind::kSmall ? small : "", vision, "}}"});
}

std::string newer_config(Kind kind, std::string_view more = "") {
  const char* small = R"(,"attention_bias":true)";
  const char* large = R"(,"norm_type":"rms_norm","use_qk_norm":true)";
  return concat({R"({"architectures":["InternVLForConditionalGeneration"],)",
                 R"("model_type":"internvl","text_config":)", kLlama, more,
                 R"(,"vision_config":{"use_absolute_position_embeddings":true,)", kSizes,
                 kind == Kind::kSmall ? small : large, "}}"});
}

std::string older_layer(int i) {
  return concat({"vision_model.encoder.layers.", std::to_string(i), "."});
}
std::string newer_layer(int i) {
  return concat({"vision_tower.encoder.layer.", std::to_string(i), "."});
}

void draw(model::Weights& w, const std::string& module, int n, int k, bool bias = true) {
  w.draw(module + ".weight", n, k);
  if (bias) w.draw(module + ".bias", n);
}

model::Weights drawn(Kind kind) {
  const bool small = kind == Kind::kSmall;
  model::Weights w;
  w.draw("vision_model.embeddings.class_embedding", kWidth);
  w.draw("vision_model.embeddings.position_embedding", 1 + kSide * kSide, kWidth);
  draw(w, "vision_model.embeddings.patch_embedding", kWidth, kNumbers);
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = older_layer(i);
    for (const char* norm : {"norm1", "norm2"}) draw(w, layer + norm, kWidth, 0, small);
    draw(w, layer + "attn.qkv", 3 * kWidth, kWidth, small);
    draw(w, layer + "attn.proj", kWidth, kWidth);
    if (!small)
      for (const char* norm : {"attn.q_norm", "attn.k_norm"}) draw(w, layer + norm, kWidth, 0, false);
    draw(w, layer + "mlp.fc1", kWide, kWidth);
    draw(w, layer + "mlp.fc2", kWidth, kWide);
    for (const char* scale : {"ls1", "ls2"}) w.draw(layer + scale, kWidth);
  }
  draw(w, "mlp1.0", 4 * kWidth, 0);
  draw(w, "mlp1.1", kText, 4 * kWidth);
  draw(w, "mlp1.3", kText, kText);
  return w;
}

// The same numbers under the names of transformers, which has queries, keys and values apart.
model::Weights renamed(const model::Weights& older) {
  model::Weights w;
  const auto take = [&](const std::string& from, const std::string& to) {
    for (const char* part : {"", ".weight", ".bias"})
      if (older.find(from + part) != nullptr) w.take(older, from + part, to + part);
  };
  const std::string old_top = "vision_model.embeddings.", new_top = "vision_tower.embeddings.";
  take(old_top + "class_embedding", new_top + "cls_token");
  take(old_top + "position_embedding", new_top + "position_embeddings");
  take(old_top + "patch_embedding", new_top + "patch_embeddings.projection");
  for (int i = 0; i < kLayers; ++i) {
    for (const auto& [from, to] : {std::pair{"norm1", "layernorm_before"},
                                   {"norm2", "layernorm_after"},
                                   {"attn.proj", "attention.projection_layer"},
                                   {"attn.q_norm", "attention.q_norm"},
                                   {"attn.k_norm", "attention.k_norm"},
                                   {"mlp.fc1", "mlp.fc1"},
                                   {"mlp.fc2", "mlp.fc2"},
                                   {"ls1", "lambda_1"},
                                   {"ls2", "lambda_2"}})
      take(older_layer(i) + from, newer_layer(i) + to);
    const char* const parts[] = {"q_proj", "k_proj", "v_proj"};
    for (int p = 0; p < 3; ++p)
      for (const auto& [part, columns] : {std::pair{".weight", kWidth}, {".bias", 0}}) {
        const auto* fused = older.find(older_layer(i) + "attn.qkv" + part);
        if (fused == nullptr) continue;
        auto& own = w.draw(newer_layer(i) + "attention." + parts[p] + part, kWidth, columns);
        std::copy_n(fused->begin() + static_cast<std::ptrdiff_t>(own.size()) * p, own.size(),
                    own.begin());
      }
  }
  take("mlp1.0", "multi_modal_projector.layer_norm");
  take("mlp1.1", "multi_modal_projector.linear_1");
  take("mlp1.3", "multi_modal_projector.linear_2");
  return w;
}

struct Tower : HandMadeTower {
  Tower(const model::Weights& weights, const std::string& settings,
        model::Compute compute = model::Compute::kExact)
      : HandMadeTower(weights, settings, kernels::detect_isa(), 2, compute, kPixels * kPixels) {}

  std::vector<float> rows() {
    EXPECT_NE(encoder, nullptr) << error;
    return encoder ? features({picture()})[0] : std::vector<float>();
  }

 private:
  // Two tiles.
  static media::PixelValues picture() {
    const media::Size size = {kPixels, kPixels};
    media::PixelValues values = {.views = {size, size}};
    std::mt19937 random(1);
    std::uniform_real_distribution<float> number(-1, 1);
    values.numbers.resize(static_cast<size_t>(2 * size.pixels() * 3));
    for (float& x : values.numbers) x = number(random);
    return values;
  }
};

TEST(InternVlLayouts, GiveTheSameBits) {
  for (const Kind kind : {Kind::kSmall, Kind::kLarge})
    for (const auto compute : {model::Compute::kExact, model::Compute::kFast}) {
      const model::Weights older = drawn(kind);
      const auto expected = Tower(renamed(older), newer_config(kind), compute).rows();
      ASSERT_EQ(expected.size(), size_t{2 * kRows * kText});
      EXPECT_EQ(Tower(older, older_config(kind), compute).rows(), expected)
          << "kind " << static_cast<int>(kind) << ", compute " << static_cast<int>(compute);
    }
}

TEST(InternVlLayouts, TakeTheRowsOfTheSameBlock) {
  const model::Weights older = drawn(Kind::kSmall);
  const auto expected =
      Tower(renamed(older), newer_config(Kind::kSmall, R"(,"vision_feature_layer":-2)")).rows();
  const std::string second_last = R"("ps_version":"v2","select_layer":-2)";
  EXPECT_EQ(Tower(older, older_config(Kind::kSmall, second_last)).rows(), expected);
  EXPECT_NE(Tower(older, older_config(Kind::kSmall)).rows(), expected);
}

TEST(InternVlLayouts, TheFirstVersionTurnsTheGridOver) {
  const model::Weights older = drawn(Kind::kSmall);
  const auto straight = Tower(older, older_config(Kind::kSmall)).rows();
  const auto turned = Tower(older, older_config(Kind::kSmall, R"("ps_version":"v1")")).rows();
  EXPECT_EQ(Tower(older, older_config(Kind::kSmall, R"("pad2square":false)")).rows(), turned);
  ASSERT_EQ(turned.size(), straight.size());
  EXPECT_NE(turned, straight);
  constexpr int kSquares = kSide / 2;
  for (int view = 0; view < 2; ++view)
    for (int y = 0; y < kSquares; ++y)
      for (int x = 0; x < kSquares; ++x)
        for (int i = 0; i < kText; ++i) {
          const int at = view * kRows + y * kSquares + x, from = view * kRows + x * kSquares + y;
          ASSERT_EQ(turned[static_cast<size_t>(at * kText + i)],
                    straight[static_cast<size_t>(from * kText + i)]);
        }
}

TEST(InternVlLayouts, WantEveryTensorInItsShape) {
  const std::string config = older_config(Kind::kSmall);
  const auto error = [&](const model::Weights& weights) { return Tower(weights, config).error; };
  model::Weights fewer = drawn(Kind::kSmall);
  fewer.erase("mlp1.3.bias");
  EXPECT_NE(error(fewer).find("'mlp1.3.bias': expected"), std::string::npos) << error(fewer);
  model::Weights more = drawn(Kind::kSmall);
  more.draw("vision_model.encoder.layers.0.attn.q_norm.weight", kWidth);
  EXPECT_NE(error(more).find("layers.0.attn.q_norm.weight': expected only tensors"),
            std::string::npos)
      << error(more);
  model::Weights other = drawn(Kind::kSmall);
  other.draw("vision_model.encoder.layers.1.attn.qkv.weight", 2 * kWidth, kWidth);
  EXPECT_NE(error(other).find("layers.1.attn.qkv.weight': expected"), std::string::npos)
      << error(other);
  EXPECT_NE(error(other).find("[72, 24]"), std::string::npos) << error(other);
  EXPECT_NE(error(other).find("[48, 24]"), std::string::npos) << error(other);
}

TEST(InternVlLayouts, NameWhatIsNotComputed) {
  const model::Weights weights = drawn(Kind::kSmall);
  const auto expect_refused = [&](std::string_view more, std::string_view vision,
                                  std::string_view part) {
    const std::string error = Tower(weights, older_config(Kind::kSmall, more, vision)).error;
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  expect_refused(R"("ps_version":"v3")", "", R"(ps_version: expected v1 or v2, found "v3")");
  expect_refused(R"("force_image_size":16)", "", "'force_image_size': expected 8, found 16");
  expect_refused(R"("downsample_ratio":0.3)", "", "downsample_ratio: expected one over a whole");
  expect_refused(R"("template":"x")", R"(,"use_moe":true)",
                 "'vision_config.use_moe': expected false, found true");
  expect_refused(R"("template":"x")", R"(,"window":3)", "'vision_config.window'");
  expect_refused(R"("use_llm_lora":16)", "", "'use_llm_lora': expected 0, found 16");
  const std::string batch_norm = older_config(Kind::kLarge, R"("template":"x")",
                                              R"(,"norm_type":"batch_norm")");
  EXPECT_NE(Tower(weights, batch_norm)
                .error.find(R"(norm_type: expected layer_norm or rms_norm, found "batch_norm")"),
            std::string::npos);
}

}  // namespace
}  // namespace weir::encoder
