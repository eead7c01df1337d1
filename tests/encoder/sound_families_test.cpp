// What config.json of published sizes is read as, of towers for sounds.
#include <gtest/gtest.h>

#include <string>

#include "encoder/families.h"

namespace weir::encoder {
namespace {

std::string described(const std::string& config) {
  const auto doc = JsonDoc::parse(config);
  if (!doc) return doc.error().message;
  const auto spec = spec_from_config(doc->root(), Medium::kSound);
  return spec ? describe(*spec) : spec.error().message;
}

std::string beside_text(const std::string& architecture, const std::string& type,
                        const std::string& text, const std::string& audio) {
  return described(R"({"architectures":[")" + architecture + R"("],"model_type":")" + type +
                   R"(","text_config":{"model_type":")" + text +
                   R"(","hidden_size":2048,"num_hidden_layers":2,"intermediate_size":64,)"
                   R"("num_attention_heads":8,"num_key_value_heads":2,"vocab_size":99,)"
                   R"("max_position_embeddings":64},"audio_config":{)" +
                   audio + "}}");
}

TEST(SoundFamilies, Whisper) {
  EXPECT_EQ(
      described(R"({"architectures":["WhisperForConditionalGeneration"],"model_type":"whisper",)"
                R"("d_model":768,"encoder_layers":12,"encoder_attention_heads":12,)"
                R"("encoder_ffn_dim":3072,"decoder_layers":12,"decoder_attention_heads":12,)"
                R"("decoder_ffn_dim":3072,"num_mel_bins":80,"max_source_positions":1500,)"
                R"("max_target_positions":448,"vocab_size":51865,"activation_function":"gelu",)"
                R"("scale_embedding":false,"use_cache":true})"),
      "whisper: frames of 80 bands, silence too\n"
      "convolution 3/1 (1+1) to 768, bias, gelu\n"
      "convolution 3/2 (1+1) to 768, bias, gelu, positions one by one (1500)\n"
      "12 x (attention 12 x 64, scale 0.125, bias, keys without; before: layernorm 1e-05 | "
      "mlp 3072 gelu, bias; before: layernorm 1e-05)\n"
      "norm: layernorm 1e-05\n");
}

TEST(SoundFamilies, Qwen2Audio) {
  EXPECT_EQ(beside_text("Qwen2AudioForConditionalGeneration", "qwen2_audio", "qwen2",
                        R"("model_type":"qwen2_audio_encoder")"),
            "qwen2_audio: frames of 128 bands, multiples of 2\n"
            "convolution 3/1 (1+1) to 1280, bias, gelu\n"
            "convolution 3/2 (1+1) to 1280, bias, gelu, positions one by one (1500)\n"
            "32 x (attention 20 x 64, scale 0.125, bias, keys without; before: layernorm 1e-05 | "
            "mlp 5120 gelu, bias; before: layernorm 1e-05)\n"
            "2 rows averaged\n"
            "norm: layernorm 1e-05\n"
            "linear 2048, bias\n");
}

TEST(SoundFamilies, Gemma4) {
  EXPECT_EQ(
      beside_text("Gemma4ForConditionalGeneration", "gemma4", "gemma4_text",
                  R"("model_type":"gemma4_audio")"),
      "gemma4: frames of 128 bands\n"
      "convolution 3/2 (1+1) x 3/2 (1+1) of 128 bands to 128, then layernorm 1e-06, relu\n"
      "convolution 3/2 (1+1) x 3/2 (1+1) of 64 bands to 32, then layernorm 1e-06, relu\n"
      "linear 1024\n"
      "12 x (mlp 4096 silu, clipped; before: rms 1e-06; after: rms 1e-06; x0.5; within 1e+10 | "
      "attention 8 x 128 to 12 rows, 13 positions from 12 back, keys x1.89464, soft cap 50, "
      "clipped; before: rms 1e-06; after: rms 1e-06; within 1e+10 | "
      "light convolution 5, rms 1e-06, silu, clipped; before: rms 1e-06; within 1e+10 | "
      "mlp 4096 silu, clipped; before: rms 1e-06; after: rms 1e-06; x0.5; within 1e+10 | "
      "norm: rms 1e-06; within 1e+10)\n"
      "linear 1536, bias\n"
      "norm: rms 1e-06 without weights\n"
      "linear 2048\n");
}

TEST(SoundFamilies, Gemma3n) {
  EXPECT_EQ(beside_text("Gemma3nForConditionalGeneration", "gemma3n", "gemma3n_text",
                        R"("model_type":"gemma3n_audio")"),
            "gemma3n: frames of 128 bands\n"
            "convolution 3/2 (0+2) x 3/2 (1+1) of 128 bands to 128, then running rms 0.001, relu\n"
            "convolution 3/2 (0+2) x 3/2 (1+1) of 64 bands to 32, then running rms 0.001, relu\n"
            "linear 1536\n"
            "12 x (mlp 6144 silu; before: rms 1e-06; after: rms 1e-06; x0.5; within 1e+10 | "
            "attention 8 x 192 to 13 rows, 13 positions from 12 back, soft cap 50; "
            "before: rms 1e-06; after: rms 1e-06; within 1e+10 | "
            "light convolution 5, rms 1e-06, silu; before: rms 1e-06; within 1e+10 | "
            "mlp 6144 silu; before: rms 1e-06; after: rms 1e-06; x0.5; within 1e+10 | "
            "norm: rms 1e-06; within 1e+10)\n"
            "one of 4 rows\n"
            "norm: rms 1e-06\n"
            "filled up to 188 rows with the last of 128 entries, rms 1e-06\n"
            "linear 2048\n"
            "norm: rms 1e-06 without weights\n");
}

TEST(SoundFamilies, RefuseWhatTheyDoNotCompute) {
  EXPECT_NE(beside_text("Gemma4ForConditionalGeneration", "gemma4", "gemma4_text",
                        R"("attention_context_right":2)")
                .find("'audio_config.attention_context_right': expected 0"),
            std::string::npos);
  EXPECT_NE(beside_text("Qwen2AudioForConditionalGeneration", "qwen2_audio", "qwen2",
                        R"("encoder_attention_heads":7)")
                .find("encoder_attention_heads: expected a divisor of d_model, 1280, found 7"),
            std::string::npos);
  EXPECT_EQ(described(R"({"model_type":"llava"})"),
            "sounds: no audio encoder of model_type \"llava\" is computed");
}

}  // namespace
}  // namespace weir::encoder
