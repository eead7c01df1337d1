// TextParts: everything that speaks text: loaded on a thread of its own while the engine's thread
// loads the weights.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "api/request/generation_defaults.h"
#include "api/serving/rerank_config.h"
#include "api/serving/speech_config.h"
#include "base/result.h"
#include "card/embedding_settings.h"
#include "card/model_card.h"
#include "media/features/front_end.h"
#include "media/processor/processor.h"
#include "program/media_towers.h"
#include "program/options.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace weir {

struct TextParts {
  std::unique_ptr<text::Tokenizer> tokenizer;
  std::optional<text::ChatTemplate> chat_template;
  std::optional<text::ChatTemplate> tool_use_template;
  std::string chat_template_source;  // Empty: there is none.
  api::GenerationDefaults defaults;
  card::EmbeddingSettings embedding;
  api::RerankConfig rerank;
  // What the model wants of images and of sounds; none: it takes none, and why.
  std::optional<media::Processor> processor;
  std::string images_refusal;
  std::optional<media::FrontEnd> front_end;
  std::string sounds_refusal;

  // `towers`: the model's, as they were loaded. REQUIRES: no other thread reads the
  // card.
  void take_media(const card::ModelCard& card, const MediaTowers& towers);

  // Of a model that writes down what is said; none: it does not, and why.
  std::optional<api::SpeechConfig> speech;
  std::string speech_refusal;
  // REQUIRES: the same.
  void hear_speech(const card::ModelCard& card);
};

// Reads the files that the card names, and what the options put in their place.
Result<TextParts> load_text(const card::ModelCard& card, const Options& options);

}  // namespace weir
