#include "card/model_card.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "card/config_override.h"
#include "card/config_reader.h"
#include "card/gguf_model.h"
#include "card/modules.h"
#include "card/safetensors.h"

namespace weir::card {

namespace {

constexpr char kConfig[] = "config.json";
constexpr char kModeloptConfig[] = "hf_quant_config.json";
// Ten times the largest config.json published.
constexpr size_t kConfigBytesMax = size_t{4} << 20;

Result<std::string> read_config(const ModelFiles& files) {
  WEIR_ASSIGN(std::optional<std::string> text, files.read_text(kConfig, kConfigBytesMax));
  if (!text)
    return fail(ErrorCode::kConfig,
                files.where() + ": expected config.json in this folder; it is not there");
  return *std::move(text);
}

Result<JsonDoc> parse(const ModelFiles& files, std::string text,
                      std::span<const std::string> overrides) {
  if (!overrides.empty()) {
    WEIR_ASSIGN(text, override_config(text, overrides));
  }
  Result<JsonDoc> doc = parse_config(text);
  if (!doc)
    return fail(ErrorCode::kConfig, files.where() + "/" + kConfig + ": " + doc.error().message);
  return doc;
}

Result<WeightFormat> read_weight_format(const ModelFiles& files, JsonValue config) {
  WEIR_ASSIGN(WeightFormat format, WeightFormat::from_config(config));
  if (format.quantised()) return format;
  WEIR_ASSIGN(const std::optional<std::string> text,
              files.read_text(kModeloptConfig, kConfigBytesMax));
  if (!text) return format;
  Result<JsonDoc> doc = parse_config(*text);
  if (!doc)
    return fail(ErrorCode::kConfig,
                files.where() + "/" + kModeloptConfig + ": " + doc.error().message);
  return WeightFormat::from_modelopt(doc->root());
}

// What a file of its own says of videos is put where processor_config.json has it: beside
// `image_processor`, as `video_processor`.
Result<std::optional<JsonDoc>> with_videos(const ModelFiles& files, std::optional<JsonDoc> images) {
  WEIR_ASSIGN(const std::optional<JsonDoc> videos,
              files.read_json("video_preprocessor_config.json"));
  if (!images || !videos || images->root()["image_processor"].error() == simdjson::SUCCESS)
    return images;
  std::string both;
  JsonWriter json(both);
  json.begin_object().field("image_processor", images->root());
  json.field("video_processor", videos->root()).end_object();
  WEIR_ASSIGN(JsonDoc doc, parse_config(both));
  return std::optional<JsonDoc>(std::move(doc));
}

Result<std::optional<JsonDoc>> read_preprocessor(const ModelFiles& files) {
  for (const char* name : {"preprocessor_config.json", "processor_config.json"}) {
    WEIR_ASSIGN(std::optional<JsonDoc> doc, files.read_json(name));
    if (doc) return with_videos(files, std::move(doc));
  }
  return std::optional<JsonDoc>();
}

// vocab.json and merges.txt in one, as the reader of vocabularies wants them. Published ones have 2
// to 4 MB.
Result<std::string> join_vocabulary(const ModelFiles& files) {
  constexpr size_t kBytesMax = size_t{64} << 20;
  WEIR_ASSIGN(const std::optional<std::string> vocabulary,
              files.read_text("vocab.json", kBytesMax));
  WEIR_ASSIGN(const std::optional<std::string> merges, files.read_text("merges.txt", kBytesMax));
  std::string json = R"({"merges":)";
  JsonWriter writer(json);
  writer.begin_array();
  bool first = true;
  for (std::string_view rest = merges ? *merges : std::string_view(); !rest.empty(); first = false) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!line.empty() && !(first && line.starts_with("#version"))) writer.value(line);
  }
  writer.end_array();
  // Last, so that no text after it takes the merges' place.
  json += R"(,"vocab":)";
  json += vocabulary.value_or("{}");
  json += '}';
  return json;
}

Result<void> read_gguf(std::span<const std::string> overrides, ModelCard& card) {
  WEIR_ASSIGN(GgufModel model, open_gguf(card.files));
  WEIR_ASSIGN(card.config, parse(card.files, std::move(model.config), overrides));
  WEIR_ASSIGN(card.weights, WeightFormat::from_config(card.config.root()));
  card.tokenizer = std::move(model.tokenizer);
  card.generation = std::move(model.generation);
  card.embedding = std::move(model.embedding);
  card.tensors = std::make_shared<const Checkpoint>(std::move(model.tensors));
  return {};
}

}  // namespace

Result<ModelCard> ModelCard::open(ModelFiles model_files, std::span<const std::string> overrides) {
  ModelCard card;
  card.files = std::move(model_files);
  const auto read = [&]() -> Result<void> {
    if (!card.files.gguf().empty()) return read_gguf(overrides, card);
    WEIR_ASSIGN(std::string text, read_config(card.files));
    WEIR_ASSIGN(card.config, parse(card.files, std::move(text), overrides));
    const JsonValue root = card.config.root();
    WEIR_ASSIGN(card.weights, read_weight_format(card.files, root));
    WEIR_ASSIGN(card.tokenizer, read_tokenizer_settings(card.files));
    WEIR_ASSIGN(card.generation, read_generation_settings(card.files, root));
    WEIR_ASSIGN(const Modules modules, read_modules(card.files));
    WEIR_ASSIGN(card.embedding, read_embedding_settings(card.files, modules));
    WEIR_ASSIGN(card.rerank, read_rerank_settings(card.files, root, modules));
    WEIR_ASSIGN(card.preprocessor, read_preprocessor(card.files));
    WEIR_ASSIGN(Checkpoint checkpoint, open_safetensors(card.files));
    card.tensors = std::make_shared<const Checkpoint>(std::move(checkpoint));
    return {};
  };
  if (Result<void> done = read(); !done)
    return tl::unexpected(card.in_folder(std::move(done).error()));
  return card;
}

Result<ModelCard> ModelCard::open_folder(const std::string& folder,
                                         std::span<const std::string> overrides) {
  WEIR_ASSIGN(ModelFiles model_files, ModelFiles::open(folder));
  return open(std::move(model_files), overrides);
}

Result<TokenizerFile> ModelCard::open_tokenizer() const {
  constexpr std::string_view kNames[] = {"tokenizer.json", "tekken.json", "tiktoken.model",
                                         "qwen.tiktoken", "tokenizer.model"};
  const auto* name = std::find_if(std::begin(kNames), std::end(kNames),
                                  [&](std::string_view file) { return files.has(file); });
  // Where there is none, the error is about the first.
  TokenizerFile file;
  if (!files.gguf().empty()) {
    file.name = "tokenizer.ggml";
    WEIR_ASSIGN(file.made, gguf_tokenizer(files));
    return file;
  }
  const bool in_two = name == std::end(kNames) && files.has("vocab.json") && files.has("merges.txt");
  file.name = in_two ? "vocab.json" : name == std::end(kNames) ? kNames[0] : *name;
  if (in_two) {
    WEIR_ASSIGN(file.made, join_vocabulary(files));
  } else {
    WEIR_ASSIGN(file.view, files.open_file(file.name));
  }
  WEIR_ASSIGN(auto settings, files.read_text("tokenizer_config.json"));
  file.config = std::move(settings).value_or(std::string());
  return file;
}

Error ModelCard::in_folder(Error error) const {
  if (error.message.starts_with(kConfig))
    error.message = files.where() + (files.gguf().empty() ? "/" : ", read as ") + error.message;
  return error;
}

}  // namespace weir::card
