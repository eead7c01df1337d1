#include "api/rerank_config.h"

#include <optional>
#include <vector>

#include "api/checkpoint_file.h"
#include "base/json.h"

namespace weir::api {

namespace {

// The folder of the module that scores, if modules.json has one.
Result<std::optional<std::string>> find_logit_score(const ModelFiles& files) {
  WEIR_ASSIGN(const std::optional<JsonDoc> doc, read_file(files, kModules));
  JsonArray modules;
  if (!doc || doc->root().get(modules) != simdjson::SUCCESS) return std::nullopt;
  for (const JsonValue module : modules) {
    JsonObject object;
    if (module.get(object) != simdjson::SUCCESS) continue;
    std::string_view type, path;
    const auto type_value = json_get(object, "type"), path_value = json_get(object, "path");
    if (!type_value || type_value->get(type) != simdjson::SUCCESS) continue;
    if (type.substr(type.rfind('.') + 1) != "LogitScore") continue;
    if (!path_value || path_value->get(path) != simdjson::SUCCESS || path.starts_with('/') ||
        path.find("..") != std::string_view::npos)
      return wrong_file(kModules, "path to lie within the model's folder", module);
    return std::string(path);
  }
  return std::nullopt;
}

// A token's id in the module's file; absent where it is null.
Result<std::optional<int32_t>> token_of(const std::string& file, JsonObject object,
                                        std::string_view key) {
  const auto value = json_get(object, key);
  if (!value) return std::nullopt;
  int64_t id = 0;
  if (value->get(id) != simdjson::SUCCESS || id < 0 || id > INT32_MAX)
    return wrong_file(file, std::string(key) + " to be a token id", *value);
  return static_cast<int32_t>(id);
}

Result<void> read_logit_score(const ModelFiles& files, const std::string& folder,
                              RerankConfig& config) {
  const std::string file = folder + "/config.json";
  WEIR_ASSIGN(const std::optional<JsonDoc> doc, read_file(files, file));
  JsonObject object;
  if (!doc) return fail(ErrorCode::kConfig, file + ": missing, though modules.json names it");
  if (doc->root().get(object) != simdjson::SUCCESS)
    return wrong_file(file, "an object", doc->root());
  WEIR_ASSIGN(const std::optional<int32_t> yes, token_of(file, object, "true_token_id"));
  WEIR_ASSIGN(const std::optional<int32_t> no, token_of(file, object, "false_token_id"));
  if (yes && no) {
    config.yes = *yes;
    config.no = *no;
  } else {
    config.refusal = file + " names " + (yes ? "no false_token_id" : "no true_token_id") +
                     "; this server scores by the odds of two tokens";
  }
  return {};
}

// The one token that a word is, if it is one.
std::optional<int32_t> single_token(const text::Tokenizer& tokenizer, const std::string& word) {
  const std::vector<int32_t> ids =
      tokenizer.encode(word, {.add_special = false, .parse_special = false});
  return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
}

// Both words as they stand alone, else both behind a space: small vocabularies have only those.
Result<void> use_words(const text::Tokenizer& tokenizer, const std::string& yes,
                       const std::string& no, const std::string& source, RerankConfig& config) {
  for (const char* before : {"", " "}) {
    const auto first = single_token(tokenizer, before + yes);
    const auto second = single_token(tokenizer, before + no);
    if (!first || !second) continue;
    config.yes = *first;
    config.no = *second;
    return {};
  }
  return fail(ErrorCode::kConfig, source + ": expected a vocabulary in which '" + yes + "' and '" +
                                      no + "' are one token each, found pieces of them");
}

// vLLM's: the word for 0, then the word for 1.
Result<void> read_classifier_tokens(const ModelFiles& files, const text::Tokenizer& tokenizer,
                                    RerankConfig& config) {
  WEIR_ASSIGN(const std::optional<JsonDoc> doc, read_file(files, "config.json"));
  JsonObject object;
  if (!doc || doc->root().get(object) != simdjson::SUCCESS) return {};
  const auto value = json_get(object, "classifier_from_token");
  if (!value) return {};
  JsonArray words;
  std::string_view no, yes;
  if (value->get(words) != simdjson::SUCCESS || words.size() != 2 ||
      words.at(0).get(no) != simdjson::SUCCESS || words.at(1).get(yes) != simdjson::SUCCESS)
    return wrong_file("config.json", "classifier_from_token to be two words", *value);
  return use_words(tokenizer, std::string(yes), std::string(no),
                   "config.json: classifier_from_token", config);
}

bool has_literal(std::string_view source, std::string_view word) {
  for (const char quote : {'\'', '"'}) {
    std::string literal(1, quote);
    literal.append(word) += quote;
    if (source.find(literal) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

Result<RerankConfig> read_rerank_config(const ModelFiles& files, const text::Tokenizer& tokenizer,
                                        std::string_view chat_template, std::string_view choice) {
  RerankConfig config;
  if (choice == "none") return config;
  if (choice == "yes-no") {
    WEIR_TRY(use_words(tokenizer, "yes", "no", "--reranker yes-no", config));
  } else {
    WEIR_ASSIGN(const std::optional<std::string> module, find_logit_score(files));
    if (module) {
      WEIR_TRY(read_logit_score(files, *module, config));
      config.roles = true;
    } else {
      WEIR_TRY(read_classifier_tokens(files, tokenizer, config));
    }
  }
  config.roles = config.roles ||
                 (has_literal(chat_template, "query") && has_literal(chat_template, "document"));
  if (config.reranks() && chat_template.empty())
    config = {.refusal = "it has no chat template to be asked with"};
  return config;
}

}  // namespace weir::api
