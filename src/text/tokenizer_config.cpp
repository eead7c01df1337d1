// TokenizerConfig: reads the files; see the header for which of them wins.
#include "text/tokenizer_config.h"

#include <algorithm>
#include <array>

#include "base/json.h"

namespace weir::text {

namespace {

constexpr std::string_view kTokenizerConfig = "tokenizer_config.json";
constexpr std::string_view kSpecialTokensMap = "special_tokens_map.json";

// The names under which transformers hands single tokens to a template.
constexpr std::array<std::string_view, 7> kTokenNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

tl::unexpected<Error> wrong_type(std::string_view file, std::string_view key, const char* expected,
                                 JsonValue found) {
  return fail(ErrorCode::kConfig, std::string(file) + ": expected " + std::string(key) + " to be " +
                                      expected + ", found " + json_type_name(found));
}

// The file's top-level object, or nullopt where there is no such file.
Result<std::optional<JsonDoc>> read_object(const ModelFiles& files, std::string_view file) {
  if (!files.has(file)) return std::nullopt;
  WEIR_ASSIGN(const FileView view, files.open_file(file));
  Result<JsonDoc> doc = JsonDoc::parse(view.text());
  if (!doc) return fail(ErrorCode::kConfig, view.name() + ": " + doc.error().message);
  if (!doc->root().is_object())
    return wrong_type(view.name(), "the file", "an object", doc->root());
  return std::optional<JsonDoc>(std::move(*doc));
}

std::optional<std::string> to_string(JsonValue value) {
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  return std::string(text);
}

Result<void> read_template_list(std::string_view file, JsonArray list, TokenizerConfig& config) {
  for (const JsonValue entry : list) {
    if (!entry.is_object())
      return wrong_type(file, "chat_template's entries", "objects {name, template}", entry);
    const JsonObject object = entry.get_object().value_unsafe();
    const auto name_value = json_get(object, "name"), source_value = json_get(object, "template");
    const auto name = name_value ? to_string(*name_value) : std::nullopt;
    const auto source = source_value ? to_string(*source_value) : std::nullopt;
    if (!name || !source)
      return fail(ErrorCode::kConfig,
                  std::string(file) +
                      ": expected each entry of chat_template to have the strings name and "
                      "template; one does not");
    if (*name == "default") config.chat_template = source;
    if (*name == "tool_use") config.tool_use_template = source;
  }
  return {};
}

Result<void> read_templates(std::string_view file, JsonObject object, TokenizerConfig& config) {
  const auto value = json_get(object, "chat_template");
  if (!value) return {};
  if (auto source = to_string(*value)) {
    config.chat_template = std::move(source);
    return {};
  }
  if (value->is_array()) return read_template_list(file, value->get_array().value_unsafe(), config);
  return wrong_type(file, "chat_template", "a string or a list of {name, template}", *value);
}

// A token is its text, or an object whose `content` is.
Result<void> read_tokens(std::string_view file, JsonObject object, TokenizerConfig& config) {
  for (const std::string_view name : kTokenNames) {
    if (config.special_token(name)) continue;
    auto value = json_get(object, name);
    if (!value) continue;
    if (value->is_object()) {
      const auto content = json_get(value->get_object().value_unsafe(), "content");
      if (!content)
        return fail(ErrorCode::kConfig, std::string(file) + ": expected " + std::string(name) +
                                            " to be a string or to have content; it has none");
      value = content;
    }
    auto text = to_string(*value);
    if (!text) return wrong_type(file, name, "a string or {content}", *value);
    config.special_tokens.emplace_back(name, std::move(*text));
  }
  return {};
}

Result<std::optional<std::string>> read_source(const ModelFiles& files, std::string_view file) {
  if (!files.has(file)) return std::nullopt;
  WEIR_ASSIGN(const FileView view, files.open_file(file));
  return std::optional<std::string>(view.text());
}

}  // namespace

const std::string* TokenizerConfig::special_token(std::string_view name) const {
  const auto found = std::find_if(special_tokens.begin(), special_tokens.end(),
                                  [&](const auto& token) { return token.first == name; });
  return found == special_tokens.end() ? nullptr : &found->second;
}

Result<TokenizerConfig> read_tokenizer_config(const ModelFiles& files) {
  TokenizerConfig config;
  WEIR_ASSIGN(const std::optional<JsonDoc> tokenizer, read_object(files, kTokenizerConfig));
  if (tokenizer) {
    const JsonObject object = tokenizer->root().get_object().value_unsafe();
    WEIR_TRY(read_templates(kTokenizerConfig, object, config));
    WEIR_TRY(read_tokens(kTokenizerConfig, object, config));
  }
  WEIR_ASSIGN(const std::optional<JsonDoc> tokens, read_object(files, kSpecialTokensMap));
  if (tokens)
    WEIR_TRY(read_tokens(kSpecialTokensMap, tokens->root().get_object().value_unsafe(), config));
  if (!config.chat_template) {
    constexpr std::string_view kProcessorTemplate = "chat_template.json";
    WEIR_ASSIGN(const std::optional<JsonDoc> processor, read_object(files, kProcessorTemplate));
    if (processor)
      WEIR_TRY(read_templates(kProcessorTemplate, processor->root().get_object().value_unsafe(),
                              config));
  }
  WEIR_ASSIGN(auto source, read_source(files, "chat_template.jinja"));
  if (source) config.chat_template = std::move(source);
  WEIR_ASSIGN(auto tool_use, read_source(files, "additional_chat_templates/tool_use.jinja"));
  if (tool_use) config.tool_use_template = std::move(tool_use);
  return config;
}

Result<std::optional<std::string>> find_chat_template(const ModelFiles& files) {
  WEIR_ASSIGN(TokenizerConfig config, read_tokenizer_config(files));
  return std::move(config.chat_template);
}

}  // namespace weir::text
