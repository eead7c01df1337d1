// What config.json of published sizes is read as.
#include "encoder/families.h"

#include <gtest/gtest.h>

#include <string>

namespace weir::encoder {
namespace {

// The keys of a text model that stands for any.
constexpr char kLlama[] =
    R"("text_config":{"model_type":"llama","hidden_size":4096,"num_hidden_layers":1,"vocab_size":9,)"
    R"("intermediate_size":64,"num_attention_heads":32,"num_key_value_heads":32,"rms_norm_eps":1e-5})";

std::string described(const std::string& architecture, const std::string& type,
                      const std::string& text, const std::string& vision,
                      const std::string& more = "") {
  const auto doc =
      JsonDoc::parse(R"({"architectures":[")" + architecture + R"("],"model_type":")" + type +
                     "\"," + text + more + R"(,"vision_config":{)" + vision + "}}");
  if (!doc) return doc.error().message;
  const auto spec = spec_from_config(doc->root());
  return spec ? describe(*spec) : spec.error().message;
}

TEST(EncoderFamilies, Gemma3) {
  EXPECT_EQ(
      described("Gemma3ForConditionalGeneration", "gemma3",
                R"("text_config":{"model_type":"gemma3_text","hidden_size":2560,)"
                R"("num_hidden_layers":34,"intermediate_size":10240,"sliding_window":1024,)"
                R"("num_attention_heads":8,"num_key_value_heads":4,"head_dim":256})",
                R"("hidden_size":1152,"image_size":896,"intermediate_size":4304,"patch_size":14,)"
                R"("model_type":"siglip_vision_model","num_attention_heads":16,)"
                R"("num_hidden_layers":27,"vision_use_head":false)",
                R"(,"mm_tokens_per_image":256)"),
      "gemma3: planes of 14 pixels, width 1152\n"
      "patches, bias, positions one by one (64 x 64)\n"
      "27 x (attention 16 x 72, scale 0.117851, bias; before: layernorm 1e-06 | "
      "mlp 4304 gelu_tanh, bias; before: layernorm 1e-06)\n"
      "norm: layernorm 1e-06\n"
      "4 x 4 averaged\n"
      "norm: rms 1e-06 1+w\n"
      "linear 2560\n");
}

TEST(EncoderFamilies, Llava) {
  const std::string clip =
      R"("hidden_size":1024,"image_size":336,"intermediate_size":4096,"patch_size":14,)"
      R"("model_type":"clip_vision_model","num_attention_heads":16,"num_hidden_layers":24,)"
      R"("projection_dim":768,"vocab_size":32000)";
  EXPECT_EQ(described("LlavaForConditionalGeneration", "llava", kLlama, clip,
                      R"(,"vision_feature_layer":-2,"image_token_index":8)"),
            "llava: planes of 14 pixels, width 1024\n"
            "patches, class row first, positions one by one (24 x 24)\n"
            "norm: layernorm 1e-05\n"
            "23 x (attention 16 x 64, scale 0.125, bias; before: layernorm 1e-05 | "
            "mlp 4096 quick_gelu, bias; before: layernorm 1e-05)\n"
            "class row dropped\n"
            "linear 4096, bias, gelu\n"
            "linear 4096, bias\n");
  EXPECT_NE(described("LlavaForConditionalGeneration", "llava", kLlama, clip,
                      R"(,"vision_feature_layer":[-2,-5])")
                .find("'vision_feature_layer': expected an integer"),
            std::string::npos);
  EXPECT_NE(described("LlavaForConditionalGeneration", "llava", kLlama,
                      R"("model_type":"siglip_vision_model")")
                .find("expected clip_vision_model or pixtral, found siglip_vision_model"),
            std::string::npos);
}

TEST(EncoderFamilies, SmolVlm) {
  EXPECT_EQ(
      described("SmolVLMForConditionalGeneration", "smolvlm", kLlama,
                R"("hidden_size":768,"image_size":512,"patch_size":16,"intermediate_size":3072,)"
                R"("model_type":"smolvlm_vision","num_attention_heads":12,)"
                R"("max_image_size":{"longest_edge":512},"size":{"longest_edge":2048})",
                R"(,"scale_factor":4)"),
      "smolvlm: planes of 16 pixels, width 768\n"
      "patches, bias, positions by fraction (32 x 32)\n"
      "12 x (attention 12 x 64, scale 0.125, bias; before: layernorm 1e-06 | "
      "mlp 3072 gelu_tanh, bias; before: layernorm 1e-06)\n"
      "norm: layernorm 1e-06\n"
      "4 x 4 merged, patch by patch\n"
      "linear 4096\n");
}

TEST(EncoderFamilies, Mistral3) {
  EXPECT_EQ(described("Mistral3ForConditionalGeneration", "mistral3",
                      R"("text_config":{"model_type":"mistral","hidden_size":5120,)"
                      R"("num_hidden_layers":1,"rms_norm_eps":1e-5,"head_dim":128})",
                      R"("head_dim":64,"hidden_act":"silu","hidden_size":1024,"image_size":1540,)"
                      R"("intermediate_size":4096,"model_type":"pixtral","num_attention_heads":16,)"
                      R"("num_channels":3,"num_hidden_layers":24,"patch_size":14,)"
                      R"("rope_theta":10000.0)"),
            "mistral3: planes of 14 pixels, width 1024, rope by interleaved rates, theta 10000\n"
            "patches\n"
            "norm: rms 1e-05\n"
            "24 x (attention 16 x 64, scale 0.125; before: rms 1e-05 | "
            "gated mlp 4096 silu; before: rms 1e-05)\n"
            "norm: rms 1e-05\n"
            "2 x 2 merged, number by number\n"
            "linear 1024\n"
            "linear 5120, gelu\n"
            "linear 5120\n");
}

TEST(EncoderFamilies, InternVl) {
  EXPECT_EQ(described("InternVLForConditionalGeneration", "internvl", kLlama,
                      R"("attention_bias":true,"hidden_act":"gelu","hidden_size":1024,)"
                      R"("image_size":[448,448],"intermediate_size":4096,"layer_norm_eps":1e-06,)"
                      R"("layer_scale_init_value":0.1,"model_type":"internvl_vision",)"
                      R"("norm_type":"layer_norm","num_attention_heads":16,"num_hidden_layers":24,)"
                      R"("patch_size":[14,14],"use_absolute_position_embeddings":true,)"
                      R"("use_mask_token":false,"use_mean_pooling":true,"use_qk_norm":false)",
                      R"(,"downsample_ratio":0.5)"),
            "internvl: planes of 14 pixels, width 1024\n"
            "patches, bias, class row first, positions one by one (32 x 32)\n"
            "24 x (attention 16 x 64, scale 0.125, bias; before: layernorm 1e-06; scaled | "
            "mlp 4096 gelu, bias; before: layernorm 1e-06; scaled)\n"
            "class row dropped\n"
            "2 x 2 merged, patch by patch\n"
            "norm: layernorm 1e-05\n"
            "linear 4096, bias, gelu\n"
            "linear 4096, bias\n");
}

// Of the older layout: the tower of InternVL 2, 2.5 and 3, and that of their largest models.
TEST(EncoderFamilies, InternVlChat) {
  std::string llama = kLlama;
  llama.replace(0, std::string(R"("text_config")").size(), R"("llm_config")");
  const std::string chat =
      R"(,"downsample_ratio":0.5,"dynamic_image_size":true,"force_image_size":448,)"
      R"("image_fold":null,"max_dynamic_patch":12,"min_dynamic_patch":1,"pad2square":false,)"
      R"("ps_version":"v2","select_layer":-1,"system_message":null,"template":"internvl2_5",)"
      R"("use_backbone_lora":0,"use_llm_lora":0,"use_thumbnail":true)";
  const auto tower = [&](const std::string& vision) {
    return described("InternVLChatModel", "internvl_chat", llama,
                     vision + R"("attention_dropout":0.0,"drop_path_rate":0.1,"dropout":0.0,)"
                              R"("hidden_act":"gelu","image_size":448,"initializer_factor":0.1,)"
                              R"("initializer_range":1e-10,"layer_norm_eps":1e-06,)"
                              R"("model_type":"intern_vit_6b","num_channels":3,"patch_size":14,)"
                              R"("use_bfloat16":true,"use_flash_attn":true)",
                     chat);
  };
  EXPECT_EQ(tower(R"("hidden_size":1024,"intermediate_size":4096,"num_attention_heads":16,)"
                  R"("num_hidden_layers":24,"norm_type":"layer_norm","qk_normalization":false,)"
                  R"("qkv_bias":true,"capacity_factor":1.2,"eval_capacity_factor":1.4,)"
                  R"("laux_allreduce":"all_nodes","moe_coeff_ratio":0.5,"num_experts":8,)"
                  R"("moe_intermediate_size":768,"moe_output_scale":4.0,"num_routed_experts":4,)"
                  R"("noisy_gate_policy":"RSample_before","num_shared_experts":4,)"
                  R"("shared_expert_intermediate_size":3072,"use_moe":false,"use_residual":true,)"
                  R"("use_rts":false,"use_weighted_residual":false,)"),
            "internvl_chat: planes of 14 pixels, width 1024\n"
            "patches, bias, class row first, positions one by one (32 x 32)\n"
            "24 x (attention 16 x 64, scale 0.125, fused, bias; before: layernorm 1e-06; scaled | "
            "mlp 4096 gelu, bias; before: layernorm 1e-06; scaled)\n"
            "class row dropped\n"
            "2 x 2 merged, patch by patch\n"
            "norm: layernorm 1e-05\n"
            "linear 4096, bias, gelu\n"
            "linear 4096, bias\n");
  const std::string large =
      tower(R"("hidden_size":3200,"intermediate_size":12800,"num_attention_heads":25,)"
            R"("num_hidden_layers":45,"norm_type":"rms_norm","qk_normalization":true,)"
            R"("qkv_bias":false,)");
  EXPECT_NE(large.find("\n45 x (attention 25 x 128, scale 0.0883883"), std::string::npos) << large;
  EXPECT_NE(large.find("before: rms 1e-06; scaled | mlp 12800 gelu, bias"), std::string::npos)
      << large;
}

TEST(EncoderFamilies, RefuseSizesThatAreTooLarge) {
  const auto smolvlm = [](const std::string& vision, const std::string& more) {
    return described("SmolVLMForConditionalGeneration", "smolvlm", kLlama,
                     R"("model_type":"smolvlm_vision",)" + vision, more);
  };
  EXPECT_EQ(smolvlm(R"("hidden_size":1024,"num_attention_heads":16)", R"(,"scale_factor":9)"),
            "config.json: vision_config: expected a row's numbers from 1 to 65536, found 82944");
  EXPECT_EQ(smolvlm(R"("hidden_size":2048,"num_attention_heads":2)", ""),
            "config.json: vision_config: expected a head's numbers from 1 to 512, found 1024");
  EXPECT_EQ(smolvlm(R"("patch_size":160)", ""),
            "config.json: vision_config: expected a patch's numbers from 1 to 65536, found 76800");
}

TEST(EncoderFamilies, WantTheTowersKeys) {
  const auto doc = JsonDoc::parse(R"({"model_type":"llava"})");
  const auto spec = spec_from_config(doc->root());
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().message,
            "config.json: vision_config: expected the keys of the vision tower, found none");
}

}  // namespace
}  // namespace weir::encoder
