// Reads sentence-transformers' files; see the header.
#include "card/embedding_settings.h"

#include <optional>
#include <string_view>

#include "base/json.h"
#include "card/config_reader.h"

namespace weir::card {

namespace {

constexpr char kPoolingFolder[] = "1_Pooling";
constexpr char kPrompts[] = "config_sentence_transformers.json";

// One mode by its name: "mean", or "pooling_mode_mean_tokens": true as it used to be written.
std::optional<Pooling> pooling_named(std::string_view mode) {
  if (mode == "lasttoken" || mode == "last_token" || mode == "last") return Pooling::kLast;
  if (mode == "mean" || mode == "mean_tokens") return Pooling::kMean;
  if (mode == "cls" || mode == "cls_token") return Pooling::kCls;
  return std::nullopt;
}

// The modes that a pooling module's config.json switches on.
std::vector<std::string> pooling_modes(const ConfigReader& reader) {
  constexpr std::string_view kPrefix = "pooling_mode_";
  if (reader.has("pooling_mode")) return reader.strings("pooling_mode");
  std::vector<std::string> modes;
  for (const std::string_view key : reader.keys())
    if (key.starts_with(kPrefix) && reader.bool_or(key, false))
      modes.emplace_back(key.substr(kPrefix.size()));
  return modes;
}

Result<void> read_pooling(const ModelFiles& files, const std::string& folder,
                          EmbeddingSettings& settings) {
  const std::string file = folder + "/config.json";
  WEIR_ASSIGN(const std::optional<JsonDoc> doc, files.read_json(file));
  if (!doc) return {};
  const ConfigReader reader(doc->root(), file);
  const std::vector<std::string> modes = pooling_modes(reader);
  const bool include_prompt = reader.bool_or("include_prompt", true);
  WEIR_TRY(reader.status());
  const auto pooling = modes.size() == 1 ? pooling_named(modes[0]) : std::nullopt;
  if (pooling) {
    settings.pooling = *pooling;
  } else {
    std::string names;
    for (const std::string& mode : modes) names += (names.empty() ? "" : " + ") + mode;
    settings.refusal =
        file + " asks for the pooling '" + names + "'; this server does last, mean and cls";
  }
  if (!include_prompt && settings.pooling == Pooling::kMean && settings.refusal.empty())
    settings.refusal = file + " leaves the instruction out of the mean, which this server does not";
  return {};
}

Result<void> follow(const ModelFiles& files, const std::vector<Module>& modules,
                    EmbeddingSettings& settings) {
  settings.normalise = false;
  for (const Module& module : modules) {
    if (module.type == "Normalize") {
      settings.normalise = true;
    } else if (module.type == "Pooling") {
      WEIR_TRY(read_pooling(files, module.path.empty() ? kPoolingFolder : module.path, settings));
    } else if (module.type != "Transformer" && settings.refusal.empty()) {
      settings.refusal = std::string(kModules) + " asks for a module '" + module.type +
                         "', which this server does not have";
    }
  }
  return {};
}

Result<void> read_prompts(const ModelFiles& files, EmbeddingSettings& settings) {
  WEIR_ASSIGN(const std::optional<JsonDoc> doc, files.read_json(kPrompts));
  if (!doc) return {};
  const ConfigReader reader(doc->root(), kPrompts);
  settings.default_prompt = reader.string_or("default_prompt_name", "");
  if (const auto prompts = reader.child("prompts"))
    for (const std::string_view name : prompts->keys())
      settings.prompts.emplace_back(name, prompts->string_or(name, ""));
  return reader.status();
}

}  // namespace

Result<EmbeddingSettings> read_embedding_settings(const ModelFiles& files, const Modules& modules) {
  EmbeddingSettings settings;
  if (modules)
    WEIR_TRY(follow(files, *modules, settings));
  else
    WEIR_TRY(read_pooling(files, kPoolingFolder, settings));
  WEIR_TRY(read_prompts(files, settings));
  return settings;
}

}  // namespace weir::card
