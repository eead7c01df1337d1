// Reads the files; see the header for which of them wins.
#include "card/tokenizer_settings.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "card/config_reader.h"

namespace weir::card {

namespace {

constexpr std::string_view kTokenizerConfig = "tokenizer_config.json";
constexpr std::string_view kSpecialTokensMap = "special_tokens_map.json";
constexpr std::string_view kProcessorTemplate = "chat_template.json";

// The names under which transformers hands single tokens to a template.
constexpr std::array<std::string_view, 7> kTokenNames = {
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"};

void read_template_list(JsonArray list, const std::string& file, const ConfigReader& reader,
                        TokenizerSettings& settings) {
  for (const JsonValue entry : list) {
    const ConfigReader fields(entry, file, "chat_template.");
    const std::string name = fields.string_or("name", "");
    const std::string source = fields.string_or("template", "");
    const Result<void> status = fields.status();
    if (!status || !fields.has("name") || !fields.has("template"))
      return reader.wrong_type("chat_template", "entries with the strings name and template",
                               entry);
    if (name == "default") settings.chat_template = source;
    if (name == "tool_use") settings.tool_use_template = source;
  }
}

void read_templates(const std::string& file, const ConfigReader& reader,
                    TokenizerSettings& settings) {
  const auto value = reader.value("chat_template");
  std::string_view source;
  JsonArray list;
  if (!value) return;
  if (value->get(source) == simdjson::SUCCESS)
    settings.chat_template = source;
  else if (value->get(list) == simdjson::SUCCESS)
    read_template_list(list, file, reader, settings);
  else
    reader.wrong_type("chat_template", "a string or a list of {name, template}", *value);
}

// A token is its text, or an object whose `content` is.
void read_tokens(const ConfigReader& reader, TokenizerSettings& settings) {
  for (const std::string_view name : kTokenNames) {
    const auto value = reader.value(name);
    if (!value || settings.special_token(name)) continue;
    std::string_view text;
    const auto content = value->is_object() ? reader.child(name)->value("content") : value;
    if (content && content->get(text) == simdjson::SUCCESS)
      settings.special_tokens.emplace_back(name, text);
    else
      reader.wrong_type(name, "a string or {content}", *value);
  }
}

}  // namespace

const std::string* TokenizerSettings::special_token(std::string_view name) const {
  const auto found = std::find_if(special_tokens.begin(), special_tokens.end(),
                                  [&](const auto& token) { return token.first == name; });
  return found == special_tokens.end() ? nullptr : &found->second;
}

Result<TokenizerSettings> read_tokenizer_settings(const ModelFiles& files) {
  TokenizerSettings settings;
  const auto read = [&](std::string_view file, bool templates, bool tokens) -> Result<void> {
    WEIR_ASSIGN(const std::optional<JsonDoc> doc, files.read_json(file));
    if (!doc) return {};
    const ConfigReader reader(doc->root(), std::string(file));
    if (templates) read_templates(std::string(file), reader, settings);
    if (tokens) read_tokens(reader, settings);
    return reader.status();
  };
  WEIR_TRY(read(kTokenizerConfig, true, true));
  WEIR_TRY(read(kSpecialTokensMap, false, true));
  if (!settings.chat_template) WEIR_TRY(read(kProcessorTemplate, true, false));
  WEIR_ASSIGN(auto source, files.read_text("chat_template.jinja"));
  if (source) settings.chat_template = std::move(source);
  WEIR_ASSIGN(auto tool_use, files.read_text("additional_chat_templates/tool_use.jinja"));
  if (tool_use) settings.tool_use_template = std::move(tool_use);
  return settings;
}

}  // namespace weir::card
