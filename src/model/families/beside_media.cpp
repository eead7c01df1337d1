// Models that take images beside text, where the text's model is a family of its own: what they say
// of images, and where their files keep the text's tensors. Images are not run.
#include <array>
#include <utility>

#include "model/families/family.h"

namespace weir::model::family {

namespace {

// Families of text by text_config's model_type.
constexpr std::array<std::pair<std::string_view, Describe>, 7> kTexts = {{
    {"gemma3_text", gemma3_text},
    {"llama", llama},
    {"ministral3", ministral3},
    {"mistral", mistral},
    {"mistral4", mistral4},
    {"qwen2", qwen2},
    {"qwen3", qwen3},
}};

Describe text_family(const ConfigReader& c, std::string_view usual) {
  const auto text = c.child("text_config");
  const std::string type = text ? text->string_or("model_type", usual) : std::string(usual);
  std::string known;
  for (const auto& [name, describe] : kTexts) {
    if (name == type) return describe;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  c.reject("text_config.model_type: expected one of " + known + ", found " + type);
  return llama;
}

// What says how images are cut, and by which tokens they stand in a prompt.
constexpr std::array kAboutImages = {"boi_token_index",
                                     "downsample_ratio",
                                     "eoi_token_index",
                                     "ignore_index",
                                     "image_seq_length",
                                     "image_token_index",
                                     "mm_tokens_per_image",
                                     "multimodal_projector_bias",
                                     "pad_token_id",
                                     "projector_hidden_act",
                                     "scale_factor",
                                     "spatial_merge_size",
                                     "vision_feature_layer",
                                     "vision_feature_select_strategy",
                                     "vocab_size"};  // A repetition of text_config's.

ModelSpec beside_images(const ConfigReader& c, std::string_view usual,
                        std::vector<std::string> roots) {
  for (const char* key : kAboutImages) c.ignore(key);
  ModelSpec m = text_within(
      c, text_family(c, usual), std::move(roots),
      {"connector.", "model.connector.", "model.multi_modal_projector.", "model.vision_model.",
       "model.vision_tower.", "multi_modal_projector.", "vision_model.", "vision_tower."});
  // What text_config says of the tie does not count; without a word here a stored head does.
  if (!c.has("tie_word_embeddings")) m.tied_head = m.tied_unless_stored = true;
  return m;
}

// As published, and as later versions write them.
const std::vector<std::string> kLanguageModel = {"language_model.model.", "model.language_model."};

}  // namespace

ModelSpec gemma3(const ConfigReader& c) { return beside_images(c, "gemma3_text", kLanguageModel); }
ModelSpec idefics3(const ConfigReader& c) {
  return beside_images(c, "llama", {"model.text_model.", "language_model.model."});
}
ModelSpec internvl(const ConfigReader& c) { return beside_images(c, "qwen2", kLanguageModel); }
ModelSpec llava(const ConfigReader& c) { return beside_images(c, "llama", kLanguageModel); }
ModelSpec mistral3(const ConfigReader& c) { return beside_images(c, "mistral", kLanguageModel); }

}  // namespace weir::model::family
