// Text beside images: where its keys stand, what is usual where they are left out, and which of
// three positions the pairs of its rope turn by.
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/concat.h"
#include "model/families.h"

namespace weir::model {
namespace {

Result<ModelSpec> spec_of(std::string_view architecture, std::string_view keys) {
  const std::string config = concat({R"({"architectures":[")", architecture, R"("],)", keys, "}"});
  auto doc = JsonDoc::parse(config);
  EXPECT_TRUE(doc) << config;
  return spec_from_config(doc->root());
}

std::string error_of(const Result<ModelSpec>& spec) { return spec ? "" : spec.error().message; }

constexpr char kText[] =
    R"("hidden_size":512,"num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,)"
    R"("intermediate_size":96,"vocab_size":300,"max_position_embeddings":128,)"
    R"("rope_scaling":{"type":"mrope","mrope_section":[16,24,24]})";

TEST(BesideMedia, Qwen2VlHasItsKeysAtTheTopOrWithinOrBoth) {
  const std::string within = concat({R"("text_config":{)", kText, "}"});
  std::string found;
  for (const std::string& keys :
       {std::string(kText), within, concat({kText, ",", within}),
        concat({kText, R"(,"vision_config":{"depth":3},"vision_start_token_id":7)"})}) {
    const auto spec = spec_of("Qwen2VLForConditionalGeneration", keys);
    ASSERT_TRUE(spec) << error_of(spec);
    const auto& a = std::get<Attention>(spec->sublayers[0].op);
    EXPECT_TRUE(a.qkv_bias);
    EXPECT_EQ(a.rope.sections, (std::array{16, 24, 24}));
    EXPECT_FLOAT_EQ(a.rope.theta, 1e6f);
    EXPECT_TRUE(spec->tied_unless_stored);
    EXPECT_FALSE(spec->towers.empty());
    if (found.empty()) found = describe(*spec);
    EXPECT_EQ(describe(*spec), found);
  }
}

TEST(BesideMedia, TakesTheTextFamilysUsualSizesForThoseLeftOut) {
  const auto llava = spec_of("LlavaForConditionalGeneration",
                             R"("text_config":{"model_type":"llama","vocab_size":32064})");
  ASSERT_TRUE(llava) << error_of(llava);
  EXPECT_EQ(llava->hidden_size, 4096);
  EXPECT_EQ(llava->vocab_size, 32064);
  EXPECT_EQ(llava->context_max, 2048);
  EXPECT_EQ(layer_count(*llava), 32);
  EXPECT_EQ(std::get<Dense>(llava->sublayers[1].op).width, 11008);
  const auto mistral =
      spec_of("LlavaForConditionalGeneration", R"("text_config":{"model_type":"mistral"})");
  ASSERT_TRUE(mistral) << error_of(mistral);
  EXPECT_EQ(std::get<Dense>(mistral->sublayers[1].op).width, 14336);
  EXPECT_EQ(std::get<Attention>(mistral->sublayers[0].op).num_kv_heads, 8);
  const auto gemma = spec_of("PaliGemmaForConditionalGeneration",
                             R"("text_config":{"num_hidden_layers":18},"projection_dim":9)");
  ASSERT_TRUE(gemma) << error_of(gemma);
  EXPECT_EQ(gemma->hidden_size, 3072);
  EXPECT_EQ(layer_count(*gemma), 18);
}

TEST(BesideMedia, RefusesTextThatIsNotThereOrNotKnown) {
  EXPECT_NE(error_of(spec_of("LlavaForConditionalGeneration", R"("hidden_size":64)"))
                .find("text_config: expected the keys of the model of text"),
            std::string::npos);
  EXPECT_NE(
      error_of(spec_of("LlavaForConditionalGeneration", R"("text_config":{"model_type":"rnn"})"))
          .find("text_config.model_type: expected one of gemma, gemma2,"),
      std::string::npos);
  EXPECT_NE(error_of(spec_of("Qwen2VLForConditionalGeneration",
                             R"("text_config":{"rope_scaling":{"mrope_section":[64,64]}})"))
                .find("mrope_section: expected 3 numbers, found 2"),
            std::string::npos);
}

// The older layout of InternVL: the text's keys as published, and under MLX's name for them.
TEST(BesideMedia, InternVlChatHasItsTextUnderEitherName) {
  constexpr std::string_view kQwen2 =
      R"({"model_type":"qwen2","architectures":["Qwen2ForCausalLM"],"hidden_size":896,)"
      R"("intermediate_size":4864,"num_hidden_layers":2,"num_attention_heads":14,)"
      R"("num_key_value_heads":2,"vocab_size":151674,"rms_norm_eps":1e-6,"rope_theta":1e6,)"
      R"("rope_scaling":{"factor":2.0,"rope_type":"dynamic","type":"dynamic"},)"
      R"("max_position_embeddings":32768,"max_window_layers":70,"moe_config":null,)"
      R"("attn_implementation":"eager","sliding_window":null,"use_sliding_window":false})";
  const auto described = [&](std::string_view architecture, std::string_view more) {
    const auto spec = spec_of(architecture, more);
    EXPECT_TRUE(spec) << error_of(spec);
    if (!spec) return std::string();
    EXPECT_EQ(spec->hidden_size, 896);
    const std::string text = describe(*spec);
    return text.substr(text.find(':'));
  };
  const std::string llm = concat({R"("llm_config":)", kQwen2, R"(,"tie_word_embeddings":false)"});
  const std::string text = concat({R"("text_config":)", kQwen2, R"(,"tie_word_embeddings":false)"});
  const std::string expected = described("InternVLForConditionalGeneration", text);
  EXPECT_EQ(described("InternVLChatModel", text), expected);
  EXPECT_EQ(described("InternVLChatModel", llm + R"(,"text_config":{},"num_hidden_layers":2)"),
            expected);
}

TEST(BesideMedia, InternVlChatTakesTheTextsOfItsModels) {
  const auto chat = [](std::string_view text, std::string_view more = "") {
    return spec_of("InternVLChatModel", concat({R"("llm_config":{"num_hidden_layers":2,)", text,
                                                "}", more}));
  };
  const auto internlm2 = chat(R"("model_type":"internlm2","bias":false,"num_key_value_heads":8)");
  ASSERT_TRUE(internlm2) << error_of(internlm2);
  ASSERT_EQ(internlm2->fused.size(), 1u);
  EXPECT_EQ(internlm2->fused[0].stored, "attention.wqkv");
  EXPECT_EQ(internlm2->roots.front(), "language_model.model.");
  for (const char* text : {R"("model_type":"internlm3")", R"("model_type":"phi3")",
                           R"("model_type":"llama")", R"("model_type":"qwen3")",
                           R"("model_type":"qwen3_moe","moe_intermediate_size":768)"})
    EXPECT_TRUE(chat(text)) << error_of(chat(text));
  EXPECT_NE(error_of(chat(R"("model_type":"rnn")"))
                .find("llm_config.model_type: expected one of gemma, gemma2,"),
            std::string::npos);
  EXPECT_NE(error_of(chat(R"("model_type":"qwen2","gates":3)")).find("'llm_config.gates'"),
            std::string::npos);
  EXPECT_NE(error_of(spec_of("InternVLChatModel", R"("hidden_size":64)"))
                .find("text_config: expected the keys of the model of text"),
            std::string::npos);
  // A stored head wins over a tie, but not over a word against one.
  const auto tie = [&](std::string_view text, std::string_view top) {
    const auto spec = chat(concat({R"("model_type":"qwen2")", text}), top);
    EXPECT_TRUE(spec) << error_of(spec);
    return spec && spec->tied_head && spec->tied_unless_stored;
  };
  constexpr std::string_view kTied = R"(,"tie_word_embeddings":true)";
  constexpr std::string_view kUntied = R"(,"tie_word_embeddings":false)";
  EXPECT_TRUE(tie("", ""));
  EXPECT_TRUE(tie(kTied, kUntied));
  EXPECT_FALSE(tie(kUntied, kTied));
  EXPECT_FALSE(tie("", kUntied));
}

TEST(BesideMedia, Qwen3VlTurnsPairsByPositionsThatTakeTurns) {
  const auto spec =
      spec_of("Qwen3VLForConditionalGeneration",
              R"("text_config":{"rope_scaling":{"mrope_section":[24,20,20],"rope_type":"default",)"
              R"("mrope_interleaved":true}})");
  ASSERT_TRUE(spec) << error_of(spec);
  const Rope& rope = *rope_of(spec->sublayers[0].op);
  std::array<int, 3> pairs{};
  for (int i = 0; i < rope.dim / 2; ++i) ++pairs[axis_of(rope, i)];
  EXPECT_EQ(pairs, (std::array{24, 20, 20}));
  EXPECT_EQ(axis_of(rope, 4), 1u);
  EXPECT_EQ(axis_of(rope, 59), 2u);
  EXPECT_EQ(axis_of(rope, 61), 0u);
}

TEST(BesideMedia, Qwen3VlMoeRenormalisesWhateverItSays) {
  const auto spec =
      spec_of("Qwen3VLMoeForConditionalGeneration", R"("text_config":{"norm_topk_prob":false})");
  ASSERT_TRUE(spec) << error_of(spec);
  const auto& moe = std::get<Moe>(spec->sublayers[1].op);
  EXPECT_TRUE(moe.router.renormalise);
  EXPECT_EQ(moe.expert.width, 1408);
  EXPECT_EQ(moe.num_experts, 60);
}

TEST(BesideMedia, GlmsTextTurnsNeighboursAndLeavesTheLayerThatGuesses) {
  const auto four = spec_of("Glm4vForConditionalGeneration", R"("text_config":{})");
  ASSERT_TRUE(four) << error_of(four);
  const auto& a = std::get<Attention>(four->sublayers[0].op);
  EXPECT_EQ(a.rope.dim, 64);
  EXPECT_EQ(a.rope.layout, Rope::kInterleaved);
  EXPECT_TRUE(a.qkv_bias);
  EXPECT_EQ(four->guessing_layers, 0);
  const auto ocr = spec_of("GlmOcrForConditionalGeneration", R"("text_config":{"head_dim":128})");
  ASSERT_TRUE(ocr) << error_of(ocr);
  EXPECT_EQ(rope_of(ocr->sublayers[0].op)->dim, 128);
  EXPECT_EQ(ocr->guessing_layers, 1);
}

}  // namespace
}  // namespace weir::model
