// Reads sentence-transformers' files; see the header.
#include "api/embedding_config.h"

#include <optional>
#include <string_view>

#include "api/checkpoint_file.h"
#include "base/json.h"

namespace weir::api {

namespace {

constexpr std::string_view kPoolingFolder = "1_Pooling";
constexpr std::string_view kPrompts = "config_sentence_transformers.json";

std::string_view text_of(JsonObject object, std::string_view key) {
  std::string_view text;
  if (const auto value = json_get(object, key))
    if (value->get(text) != simdjson::SUCCESS) return {};
  return text;
}

// One mode by its name: "mean", or "pooling_mode_mean_tokens": true as it used to be written.
std::optional<sched::Pooling> pooling_named(std::string_view mode) {
  if (mode == "lasttoken" || mode == "last_token" || mode == "last") return sched::Pooling::kLast;
  if (mode == "mean" || mode == "mean_tokens") return sched::Pooling::kMean;
  if (mode == "cls" || mode == "cls_token") return sched::Pooling::kCls;
  return std::nullopt;
}

// The modes that a pooling module's config.json switches on.
Result<std::vector<std::string_view>> pooling_modes(const std::string& file, JsonObject object) {
  std::vector<std::string_view> modes;
  constexpr std::string_view kPrefix = "pooling_mode_";
  for (const auto [key, value] : object) {
    bool on = false;
    if (!key.starts_with(kPrefix)) continue;
    if (value.get(on) != simdjson::SUCCESS)
      return wrong_file(file, std::string(key) + " to be true or false", value);
    if (on) modes.push_back(key.substr(kPrefix.size()));
  }
  const auto named = json_get(object, "pooling_mode");
  if (!named) return modes;
  std::string_view mode;
  if (named->get(mode) == simdjson::SUCCESS) return std::vector{mode};
  JsonArray list;
  if (named->get(list) != simdjson::SUCCESS)
    return wrong_file(file, "pooling_mode to be a string or a list of them", *named);
  for (const JsonValue element : list) {
    if (element.get(mode) != simdjson::SUCCESS)
      return wrong_file(file, "pooling_mode to be a string or a list of them", *named);
    modes.push_back(mode);
  }
  return modes;
}

Result<void> read_pooling(const ModelFiles& files, const std::string& folder,
                          EmbeddingConfig& config) {
  const std::string file = folder + "/config.json";
  WEIR_ASSIGN(const std::optional<JsonDoc> doc, read_file(files, file));
  if (!doc) return {};
  JsonObject object;
  if (doc->root().get(object) != simdjson::SUCCESS)
    return wrong_file(file, "an object", doc->root());
  WEIR_ASSIGN(const std::vector<std::string_view> modes, pooling_modes(file, object));
  const auto pooling = modes.size() == 1 ? pooling_named(modes[0]) : std::nullopt;
  if (pooling) {
    config.pooling = *pooling;
  } else {
    std::string names;
    for (const std::string_view mode : modes) names.append(names.empty() ? "" : " + ").append(mode);
    config.refusal = file + " asks for the pooling '" + names +
                     "'; this server does last, mean "
                     "and cls";
  }
  bool include_prompt = true;
  const auto included = json_get(object, "include_prompt");
  if (included && included->get(include_prompt) != simdjson::SUCCESS)
    return wrong_file(file, "include_prompt to be true or false", *included);
  if (!include_prompt && config.pooling == sched::Pooling::kMean && config.refusal.empty())
    config.refusal = file + " leaves the instruction out of the mean, which this server does not";
  return {};
}

// A folder within the checkpoint's.
bool is_inside(std::string_view path) {
  return !path.starts_with('/') && path.find("..") == std::string_view::npos;
}

Result<void> read_modules(const ModelFiles& files, const JsonDoc& doc, EmbeddingConfig& config) {
  JsonArray modules;
  if (doc.root().get(modules) != simdjson::SUCCESS)
    return wrong_file(kModules, "a list of modules", doc.root());
  config.normalise = false;
  for (const JsonValue module : modules) {
    JsonObject object;
    if (module.get(object) != simdjson::SUCCESS)
      return wrong_file(kModules, "each module to be an object", module);
    const std::string_view path = text_of(object, "path");
    std::string_view type = text_of(object, "type");
    type = type.substr(type.rfind('.') + 1);
    if (type == "Normalize") {
      config.normalise = true;
    } else if (type == "Pooling") {
      if (!is_inside(path))
        return wrong_file(kModules, "path to lie within the model's folder", module);
      WEIR_TRY(read_pooling(files, std::string(path.empty() ? kPoolingFolder : path), config));
    } else if (type != "Transformer" && config.refusal.empty()) {
      config.refusal = std::string(kModules) + " asks for a module '" + std::string(type) +
                       "', which this server does not have";
    }
  }
  return {};
}

Result<void> read_prompts(const JsonDoc& doc, EmbeddingConfig& config) {
  JsonObject object;
  if (doc.root().get(object) != simdjson::SUCCESS)
    return wrong_file(kPrompts, "an object", doc.root());
  config.default_prompt = text_of(object, "default_prompt_name");
  const auto prompts = json_get(object, "prompts");
  if (!prompts) return {};
  JsonObject by_name;
  if (prompts->get(by_name) != simdjson::SUCCESS)
    return wrong_file(kPrompts, "prompts to be an object", *prompts);
  for (const auto [name, value] : by_name) {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS)
      return wrong_file(kPrompts, "each of prompts to be a string", value);
    config.prompts.emplace_back(name, text);
  }
  return {};
}

}  // namespace

Result<EmbeddingConfig> read_embedding_config(const ModelFiles& files) {
  EmbeddingConfig config;
  WEIR_ASSIGN(const std::optional<JsonDoc> modules, read_file(files, kModules));
  if (modules)
    WEIR_TRY(read_modules(files, *modules, config));
  else
    WEIR_TRY(read_pooling(files, std::string(kPoolingFolder), config));
  WEIR_ASSIGN(const std::optional<JsonDoc> prompts, read_file(files, std::string(kPrompts)));
  if (prompts) WEIR_TRY(read_prompts(*prompts, config));
  return config;
}

}  // namespace weir::api
