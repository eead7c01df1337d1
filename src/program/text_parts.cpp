#include "program/text_parts.h"

#include <algorithm>

#include "api/request/sampling_fields.h"
#include "api/serving/answer_end.h"
#include "base/check.h"
#include "base/file.h"
#include "media/processor/placeholder.h"
#include "program/media_settings.h"

namespace weir {

Result<TextParts> load_text(const card::ModelCard& card, const Options& options) {
  TextParts parts;
  WEIR_ASSIGN(const card::TokenizerFile file, card.open_tokenizer());
  WEIR_ASSIGN(parts.tokenizer,
              text::Tokenizer::load_file(file.name, file.text(), file.config));
  parts.defaults = api::generation_defaults(card.generation);
  parts.embedding = card.embedding;
  if (options.pooling) {
    parts.embedding.pooling = *options.pooling;
    parts.embedding.refusal.clear();
  }
  std::optional<std::string> source = card.tokenizer.chat_template;
  if (!options.chat_template.empty()) {
    WEIR_ASSIGN(source, read_file(options.chat_template, size_t{1} << 20));
  }
  if (source) {
    WEIR_ASSIGN(parts.chat_template, text::ChatTemplate::parse(*source));
    parts.chat_template_source = std::move(*source);
  }
  if (parts.chat_template) {
    std::vector<int32_t>& ends = parts.defaults.eos_ids;
    const auto end =
        api::answer_end(*parts.chat_template, card.tokenizer.special_tokens, *parts.tokenizer);
    if (end && std::ranges::find(ends, *end) == ends.end()) ends.push_back(*end);
  }
  if (card.tokenizer.tool_use_template) {
    WEIR_ASSIGN(parts.tool_use_template,
                text::ChatTemplate::parse(*card.tokenizer.tool_use_template));
  }
  WEIR_ASSIGN(parts.rerank, api::rerank_config(card.rerank, *parts.tokenizer,
                                               parts.chat_template_source, options.reranker));
  for (const SamplingOption& option : sampling_options(options))
    if (option.value) parts.defaults.set(option.field, *option.value, api::kFromCommandLine);
  return parts;
}

void TextParts::take_media(const card::ModelCard& card, const MediaTowers& towers) {
  images_refusal = towers.images.refusal;
  sounds_refusal = towers.sounds.refusal;
  // The towers were bound with these.
  if (towers.images.loaded()) {
    Result<media::Processor> read = image_processor(card);
    CHECK(read);
    processor = *std::move(read);
    processor->placeholder.prompt = media::mark_in(processor->placeholder, chat_template_source);
  }
  if (towers.sounds.loaded()) {
    Result<media::FrontEnd> read = sound_front_end(card);
    CHECK(read);
    front_end = *std::move(read);
  }
}

void TextParts::hear_speech(const card::ModelCard& card) {
  std::string_view family;
  if (card.config.root()["model_type"].get(family) != simdjson::SUCCESS || family != "whisper") {
    speech_refusal = "it is no speech model";
    return;
  }
  if (!card.preprocessor) {
    speech_refusal = "preprocessor_config.json is not among its files";
    return;
  }
  Result<media::FrontEnd> read =
      media::read_front_end(card.preprocessor->root(), card.config.root());
  if (read)
    speech = api::SpeechConfig{.front_end = *std::move(read), .rules = card.generation.speech};
  else
    speech_refusal = read.error().message;
}

}  // namespace weir
