#include "text/tokenizer_config.h"

#include <charconv>
#include <utility>

#include "base/json.h"
#include "text/json_fields.h"
#include "text/vocabulary.h"

namespace weir::text {

namespace {

constexpr char kFile[] = "tokenizer_config.json";
constexpr char kAdded[] = "tokenizer_config.json: added_tokens_decoder";

// A token is its text, or an object whose `content` is.
std::string token_text(const JsonFields& fields, std::string_view key) {
  const std::optional<JsonValue> value = fields.value(key);
  std::string_view text;
  JsonObject object;
  if (!value) return {};
  if (value->get(object) == simdjson::SUCCESS) {
    const std::optional<JsonValue> content = json_get(object, "content");
    if (!content || content->get(text) != simdjson::SUCCESS) return {};
  } else if (value->get(text) != simdjson::SUCCESS) {
    return {};
  }
  return std::string(text);
}

Result<int32_t> token_id(std::string_view key) {
  int32_t id = -1;
  const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
  if (error != std::errc() || end != key.data() + key.size() || id < 0 || id >= kVocabularyIdMax)
    return fail(ErrorCode::kConfig, std::string(kAdded) + ": expected an id from 0 to " +
                                        std::to_string(kVocabularyIdMax - 1) + ", found " +
                                        std::string(key.substr(0, 64)));
  return id;
}

std::optional<bool> optional_flag(JsonFields& fields, std::string_view key) {
  if (!fields.value(key)) return std::nullopt;
  return fields.flag(key, false);
}

}  // namespace

Result<TokenizerConfig> TokenizerConfig::parse(std::string_view json) {
  TokenizerConfig config;
  if (json.empty()) return config;
  auto parsed = JsonDoc::parse(json);
  if (!parsed)
    return fail(ErrorCode::kConfig, std::string(kFile) + ": " + std::move(parsed.error().message));
  JsonFields fields(parsed->root(), kFile);
  config.tokenizer_class = fields.text("tokenizer_class", "");
  config.pattern = fields.text("pat_str", "");
  config.legacy = fields.flag("legacy", true);
  config.add_bos = optional_flag(fields, "add_bos_token");
  config.add_eos = optional_flag(fields, "add_eos_token");
  config.bos = token_text(fields, "bos_token");
  config.eos = token_text(fields, "eos_token");
  JsonObject added;
  const bool has_added = fields.value("added_tokens_decoder").has_value();
  if (has_added) added = fields.object("added_tokens_decoder");
  WEIR_TRY(fields.status());
  if (!has_added) return config;
  for (const auto field : added) {
    WEIR_ASSIGN(const int32_t id, token_id(field.key));
    JsonFields entry(field.value, kAdded);
    Token token;
    token.content = entry.text("content");
    token.special = entry.flag("special", false);
    token.single_word = entry.flag("single_word", false);
    token.strip_left = entry.flag("lstrip", false);
    token.strip_right = entry.flag("rstrip", false);
    token.normalised = entry.flag("normalized", !token.special);
    WEIR_TRY(entry.status());
    config.added.insert_or_assign(id, std::move(token));
  }
  return config;
}

std::optional<int32_t> TokenizerConfig::find(std::string_view content) const {
  for (const auto& [id, token] : added) {
    if (token.content == content) return id;
  }
  return std::nullopt;
}

}  // namespace weir::text
