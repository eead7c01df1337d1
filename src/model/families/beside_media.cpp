// Models that take images or sounds beside text, where the text's model is a family of its own:
// what they say of these, and where their files keep the text's tensors. Towers are read elsewhere.
#include <array>
#include <utility>

#include "model/families/family.h"

namespace weir::model::family {

namespace {

// A family of text by text_config's model_type, with the sizes of its configuration in
// transformers: published wrappers leave out those that are the same.
struct TextFamily {
  std::string_view type;
  Describe describe;
  int vocab, hidden, intermediate, layers, heads, context;
};
constexpr std::array kTexts = {
    TextFamily{"gemma", gemma, 256000, 3072, 24576, 28, 16, 8192},
    TextFamily{"gemma2", gemma2, 256000, 2304, 9216, 26, 8, 8192},
    TextFamily{"gemma3_text", gemma3_text, 262208, 2304, 9216, 26, 8, 131072},
    TextFamily{"glm4v_text", glm4v_text, 151552, 4096, 13696, 40, 32, 32768},
    TextFamily{"glm_ocr_text", glm_ocr_text, 59246, 1024, 4096, 16, 16, 131072},
    TextFamily{"internlm2", internlm2, 103168, 4096, 11008, 32, 32, 2048},
    TextFamily{"internlm3", internlm3, 128512, 4096, 11008, 32, 32, 32768},
    TextFamily{"lfm2", lfm2, 65536, 2560, 12288, 32, 32, 128000},
    TextFamily{"lfm2_moe", lfm2_moe, 65536, 2048, 7168, 32, 32, 128000},
    TextFamily{"llama", llama, 32000, 4096, 11008, 32, 32, 2048},
    TextFamily{"ministral3", ministral3, 131072, 4096, 14336, 34, 32, 262144},
    TextFamily{"mistral", mistral, 32000, 4096, 14336, 32, 32, 131072},
    TextFamily{"mistral4", mistral4, 131072, 4096, 12288, 36, 32, 1048576},
    TextFamily{"phi3", phi3, 32064, 3072, 8192, 32, 32, 4096},
    TextFamily{"qwen2", qwen2, 151936, 4096, 22016, 32, 32, 32768},
    TextFamily{"qwen2_5_vl_text", qwen2_vl_text, 152064, 8192, 29568, 80, 64, 32768},
    TextFamily{"qwen2_vl_text", qwen2_vl_text, 152064, 8192, 29568, 80, 64, 32768},
    TextFamily{"qwen3", qwen3, 151936, 4096, 22016, 32, 32, 32768},
    TextFamily{"qwen3_moe", qwen3_moe, 151936, 2048, 6144, 24, 32, 32768},
    TextFamily{"qwen3_vl_moe_text", qwen3_vl_moe_text, 151936, 2048, 5632, 24, 16, 128000},
    TextFamily{"qwen3_vl_text", qwen3_vl_text, 151936, 4096, 22016, 32, 32, 128000},
};

// `key`: where config.json has the text's keys.
const TextFamily& text_family(const ConfigReader& c, std::string_view key, std::string_view type) {
  std::string known;
  for (const TextFamily& family : kTexts) {
    if (family.type == type) return family;
    known += (known.empty() ? "" : ", ") + std::string(family.type);
  }
  c.reject(std::string(key) + ".model_type: expected one of " + known + ", found " +
           std::string(type.substr(0, 80)));
  return kTexts.front();
}

void assume_sizes(const ConfigReader& text, const TextFamily& family) {
  for (const auto& [key, size] : {std::pair{"vocab_size", family.vocab},
                                  {"hidden_size", family.hidden},
                                  {"intermediate_size", family.intermediate},
                                  {"num_hidden_layers", family.layers},
                                  {"num_attention_heads", family.heads},
                                  {"max_position_embeddings", family.context}})
    text.assume(key, size);
}

// What says how images are cut, and by which tokens they stand in a prompt.
constexpr std::array kAboutImages = {"audio_token_index",
                                     "boi_token_index",
                                     "do_image_splitting",
                                     "downsample_factor",
                                     "downsample_ratio",
                                     "encoder_patch_size",
                                     "eoi_token_index",
                                     "freeze_mm_mlp_adapter",
                                     "ignore_index",
                                     "image_aspect_ratio",
                                     "image_end_token_id",
                                     "image_grid_pinpoints",
                                     "image_seq_length",
                                     "image_start_token_id",
                                     "image_token_index",
                                     "max_image_tokens",
                                     "max_num_patches",
                                     "max_pixels_tolerance",
                                     "max_tiles",
                                     "min_image_tokens",
                                     "min_tiles",
                                     "multimodal_projector_bias",
                                     "num_image_tokens",
                                     "pad_token_id",
                                     "projection_dim",
                                     "scale_factor",
                                     "spatial_merge_size",
                                     "tile_size",
                                     "tokenizer_model_max_length",
                                     "tokenizer_padding_side",
                                     "tune_mm_mlp_adapter",
                                     "unfreeze_mm_vision_tower",
                                     "use_image_special_tokens",
                                     "use_mm_proj",
                                     "use_thumbnail",
                                     "video_end_token_id",
                                     "video_start_token_id",
                                     "vision_config"};

void ignore_images(const ConfigReader& c) {
  for (const char* key : kAboutImages) c.ignore(key);
  for (const std::string_view key : c.keys())
    for (const std::string_view begin : {"mm_", "projector_", "vision_feature_"})
      if (key.starts_with(begin)) c.ignore(key);
}

// As published, and as later versions, of Qwen2-Audio too, and MLX write them; without one of them,
// as other text.
const std::vector<std::string> kLanguageModel = {"language_model.model.", "model.language_model.",
                                                 "language_model.model.model."};
const std::vector<std::string> kTowers = {"audio_tower.",
                                          "connector.",
                                          "mlp1.",
                                          "mm_projector.",
                                          "model.audio_tower.",
                                          "model.connector.",
                                          "model.mm_projector.",
                                          "model.multi_modal_projector.",
                                          "model.vision_model.",
                                          "model.vision_tower.",
                                          "model.visual.",
                                          "multi_modal_projector.",
                                          "vision_model.",
                                          "vision_tower.",
                                          "visual."};

// Where the text's keys and tensors are.
struct TextPlace {
  std::string_view key = "text_config";
  bool flat = false;  // Older files have its keys at the top.
  std::vector<std::string> roots = kLanguageModel;
};

ModelSpec beside_images(const ConfigReader& c, std::string_view usual,
                        const TextPlace& place = {}) {
  ignore_images(c);
  ModelSpec m;
  if (const auto text = c.child(place.key); text || !place.flat) {
    const TextFamily& family = text_family(
        c, place.key, text ? text->string_or("model_type", usual) : std::string(usual));
    if (text) {
      assume_sizes(*text, family);
      ignore_images(*text);
      for (const std::string_view key : text->keys()) c.ignore(key);  // Said once more.
    }
    c.ignore("vocab_size");
    m = text_within(c, family.describe, place.roots, kTowers, place.key);
  } else {
    m = text_family(c, place.key, usual).describe(c);
    m.roots = place.roots;
    m.towers = kTowers;
  }
  // What text_config says of the tie does not count; without a word here a stored head does.
  if (!c.has("tie_word_embeddings")) m.tied_head = m.tied_unless_stored = true;
  return m;
}

}  // namespace

ModelSpec fastvlm(const ConfigReader& c) { return beside_images(c, "qwen2", {.flat = true}); }
ModelSpec gemma3(const ConfigReader& c) {
  ModelSpec m = beside_images(c, "gemma3_text");
  m.both_ways = BothWays::kRuns;
  return m;
}
ModelSpec glm4v(const ConfigReader& c) { return beside_images(c, "glm4v_text"); }
ModelSpec glm_ocr(const ConfigReader& c) { return beside_images(c, "glm_ocr_text"); }
ModelSpec idefics3(const ConfigReader& c) {
  return beside_images(c, "llama", {.roots = {"model.text_model.", "language_model.model."}});
}
ModelSpec internvl(const ConfigReader& c) { return beside_images(c, "qwen2"); }
ModelSpec internvl_chat(const ConfigReader& c) {
  for (const char* key : {"dynamic_image_size", "force_image_size", "max_dynamic_patch",
                          "min_dynamic_patch", "pad2square", "ps_version", "select_layer",
                          "system_message", "template"})
    c.ignore(key);
  // Such files have matrices of adapters beside the weights.
  for (const char* key : {"use_backbone_lora", "use_llm_lora"}) c.expect_int(key, 0);
  // MLX's converter renames it.
  const std::string_view key = c.has("llm_config") ? "llm_config" : "text_config";
  c.ignore("text_config");
  ModelSpec m = beside_images(c, "qwen2", {.key = key});
  // Here what is said of the text counts before what is said at the top.
  if (const auto text = c.child(key); text && text->has("tie_word_embeddings"))
    m.tied_head = text->bool_or("tie_word_embeddings", false);
  m.tied_unless_stored = m.tied_head;
  return m;
}
ModelSpec lfm2_vl(const ConfigReader& c) { return beside_images(c, "lfm2"); }
ModelSpec llava(const ConfigReader& c) { return beside_images(c, "llama"); }
ModelSpec mistral3(const ConfigReader& c) { return beside_images(c, "mistral"); }
ModelSpec paligemma(const ConfigReader& c) {
  ModelSpec m = beside_images(c, "gemma");
  m.both_ways = BothWays::kPrompt;
  return m;
}
ModelSpec qwen2_vl(const ConfigReader& c) {
  return beside_images(c, "qwen2_vl_text", {.flat = true});
}
ModelSpec qwen3_vl(const ConfigReader& c) { return beside_images(c, "qwen3_vl_text"); }
ModelSpec qwen3_vl_moe(const ConfigReader& c) { return beside_images(c, "qwen3_vl_moe_text"); }

}  // namespace weir::model::family
