#include "api/llama/token_endpoints.h"

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "api/openai/chat_messages.h"
#include "api/openai/request_fields.h"
#include "api/openai/tool_fields.h"
#include "api/prompt/chat_prompt.h"
#include "api/prompt/prompt_tokens.h"
#include "api/request/json_fields.h"
#include "api/serving/model_name.h"
#include "base/json.h"

namespace weir::api::llama {

namespace {

Result<bool> flag(JsonObject object, std::string_view key, bool fallback) {
  const auto value = json_get(object, key);
  if (!value) return fallback;
  bool result = false;
  if (value->get(result) != simdjson::SUCCESS) return wrong_type(key, "a boolean", *value);
  return result;
}

// vLLM's clients name the model, llama.cpp's do not.
Result<void> check_optional_model(const ApiConfig& config, JsonObject object) {
  const auto value = json_get(object, "model");
  if (!value) return {};
  std::string_view model;
  if (value->get(model) != simdjson::SUCCESS) return wrong_type("model", "a string", *value);
  return check_model(config, model);
}

struct Text {
  std::string text;
  std::string_view field = "messages";
  text::EncodeOptions options;
  std::span<const SeenMedium> media{};
};

Result<Text> text_of(const ServingContext& serving, const PrepareInput& in, JsonObject object) {
  Text result;
  if (const auto messages = json_get(object, "messages")) {
    GenerateRequest request;
    const RequestLimits limits{serving.config.vocab_size};
    WEIR_TRY(openai::parse_messages({"messages", *messages, limits}, request));
    if (const auto tools = json_get(object, "tools"))
      WEIR_TRY(openai::parse_tools({"tools", *tools, limits}, request));
    WEIR_ASSIGN(request.add_generation_prompt, flag(object, "add_generation_prompt", true));
    WEIR_ASSIGN(result.options.add_special, flag(object, "add_special_tokens", false));
    WEIR_ASSIGN(result.media, see_media(serving, in, request, /*only_counted=*/true));
    WEIR_ASSIGN(result.text, render_chat(serving, request, in.now));
    return result;
  }
  const bool is_prompt = json_get(object, "prompt").has_value();
  const std::string_view key = is_prompt ? "prompt" : "content";
  const auto value = json_get(object, key);
  if (!value) return missing("content");
  std::string_view text;
  if (value->get(text) != simdjson::SUCCESS) return wrong_type(key, "a string", *value);
  result.text = text;
  result.field = key;
  WEIR_ASSIGN(result.options.add_special, is_prompt ? flag(object, "add_special_tokens", true)
                                                    : flag(object, "add_special", false));
  WEIR_ASSIGN(result.options.parse_special, flag(object, "parse_special", true));
  return result;
}

bool is_utf8(std::string_view text) { return simdjson::validate_utf8(text.data(), text.size()); }

// llama.cpp writes a piece that is no text as its bytes.
void write_piece(JsonWriter& json, std::string_view piece) {
  if (is_utf8(piece)) {
    json.value(piece);
    return;
  }
  json.begin_array();
  for (const char c : piece) json.value(static_cast<int32_t>(static_cast<uint8_t>(c)));
  json.end_array();
}

}  // namespace

Result<std::string> tokenize(const ServingContext& serving, const PrepareInput& in) {
  const int32_t tokens_max = in.tokens_max;
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(in.body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  WEIR_TRY(check_optional_model(serving.config, object));
  WEIR_ASSIGN(const Text text, text_of(serving, in, object));
  WEIR_ASSIGN(const bool with_pieces, flag(object, "with_pieces", false));
  WEIR_ASSIGN(const bool with_strings, flag(object, "return_token_strs", false));
  // 16 bytes a token: more than any prompt that fits has.
  const size_t bytes_max = std::max(kTokenizeBytesMax, static_cast<size_t>(tokens_max) * 16);
  if (text.text.size() > bytes_max)
    return out_of_range(text.field, "expected at most " + std::to_string(bytes_max) +
                                        " bytes of text, found " +
                                        std::to_string(text.text.size()));
  std::vector<int32_t> ids;
  if (text.media.empty()) {
    ids = serving.config.tokenizer->encode(text.text, text.options);
  } else {
    WEIR_ASSIGN(PromptTokens seen,
                tokenise_media(serving, std::string(text.field), tokens_max, text.text, text.media,
                               text.options.add_special));
    ids = std::move(seen.ids);
  }

  std::string out;
  JsonWriter json(out);
  json.begin_object();
  json.field("count", static_cast<int64_t>(ids.size())).field("max_model_len", tokens_max);
  json.key("tokens").begin_array();
  for (const int32_t id : ids) {
    if (!with_pieces) {
      json.value(id);
      continue;
    }
    json.begin_object().field("id", id).key("piece");
    write_piece(json, serving.config.tokenizer->piece(id));
    json.end_object();
  }
  json.end_array();
  if (with_strings) {
    json.key("token_strs").begin_array();
    for (const int32_t id : ids) json.value(serving.config.tokenizer->piece(id));
    json.end_array();
  }
  json.end_object();
  return out;
}

Result<std::string> apply_template(const ServingContext& serving, std::string_view body,
                                   int64_t now) {
  WEIR_ASSIGN(const openai::Request request,
              openai::parse_generate(openai::Endpoint::kChat, body,
                                     RequestLimits{serving.config.vocab_size}));
  WEIR_TRY(check_model(serving.config, request.model));
  WEIR_ASSIGN(const std::string prompt, render_chat(serving, request, now));
  std::string out;
  JsonWriter(out).begin_object().field("prompt", prompt).end_object();
  return out;
}

Result<std::string> detokenize(const ApiConfig& config, std::string_view body, int32_t tokens_max) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  WEIR_TRY(check_optional_model(config, object));
  const auto value = json_get(object, "tokens");
  if (!value) return missing("tokens");
  JsonArray tokens;
  if (value->get(tokens) != simdjson::SUCCESS)
    return wrong_type("tokens", "an array of token ids", *value);
  const size_t ids_max = std::max(kDetokenizeIdsMax, static_cast<size_t>(tokens_max));
  std::vector<int32_t> ids;
  for (const JsonValue element : tokens) {
    if (ids.size() == ids_max)
      return out_of_range("tokens", "expected at most " + std::to_string(ids_max) + " ids");
    int64_t id = 0;
    const std::string path = "tokens[" + std::to_string(ids.size()) + "]";
    if (element.get(id) != simdjson::SUCCESS) return wrong_type(path, "an integer", element);
    if (id < 0 || id >= config.vocab_size)
      return out_of_range(path, "expected a token id below " + std::to_string(config.vocab_size) +
                                    ", found " + std::to_string(id));
    ids.push_back(static_cast<int32_t>(id));
  }
  const std::string text = config.tokenizer->decode(ids, /*skip_special=*/false);
  std::string out;
  JsonWriter(out).begin_object().field("content", text).field("prompt", text).end_object();
  return out;
}

std::vector<FieldDoc> tokenize_fields() {
  return {{"model", "string", "The model's id or one of its aliases."},
          {"content", "string", "The text (llama.cpp)."},
          {"prompt", "string", "The text (vLLM); content is then ignored."},
          {"messages", "array", "A conversation, by the chat template (vLLM), instead of a text."},
          {"tools", "array", "Functions that the template may show, beside messages."},
          {"add_generation_prompt", "boolean", "Beside messages: where the answer would begin."},
          {"add_special", "boolean", "Beside content: adds BOS and its like; off."},
          {"add_special_tokens", "boolean", "Beside prompt (on) or messages (off): the same."},
          {"parse_special", "boolean", "Reads special tokens' names as tokens; on."},
          {"with_pieces", "boolean", "Each token with its text."},
          {"return_token_strs", "boolean", "The texts of the tokens in token_strs."}};
}

std::vector<FieldDoc> detokenize_fields() {
  return {{"model", "string", "The model's id or one of its aliases."},
          {"tokens", "array", "Token ids.", Treatment::kHonoured, 0, 0, true}};
}

}  // namespace weir::api::llama
