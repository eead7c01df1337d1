#include "api/vectors/embedding_request.h"

#include <algorithm>
#include <array>
#include <span>

#include "api/openai/request_fields.h"
#include "api/request/request_values.h"
#include "base/json.h"

namespace weir::api::vectors {

namespace {

Result<void> parse_format(JsonValue value, EmbeddingRequest& out) {
  WEIR_ASSIGN(const std::string_view format, as_string("encoding_format", value));
  out.base64 = format == "base64";
  if (!out.base64 && format != "float")
    return out_of_range("encoding_format",
                        "expected float or base64, found \"" + std::string(shown(format)) + "\"");
  return {};
}

// vLLM's switch, and llama.cpp's number.
Result<void> parse_norm(JsonObject object, EmbeddingRequest& out) {
  if (const auto value = json_get(object, "normalize")) {
    bool on = true;
    if (value->get(on) != simdjson::SUCCESS) return wrong_type("normalize", "a boolean", *value);
    out.norm = on ? kNormEuclid : kNormNone;
  }
  if (const auto value = json_get(object, "embd_normalize")) {
    WEIR_ASSIGN(const int64_t norm, integer_of("embd_normalize", *value));
    WEIR_TRY(check_range("embd_normalize", static_cast<double>(norm), kNormNone, kNormHighest));
    out.norm = static_cast<int32_t>(norm);
  }
  return {};
}

// Chats' fields that make the text to embed, and those that shorten it.
constexpr auto kChatFields = std::to_array<std::string_view>(
    {"messages", "chat_template", "chat_template_kwargs", "add_generation_prompt"});
constexpr auto kTruncationFields =
    std::to_array<std::string_view>({"truncate_prompt_tokens", "truncation_side"});
constexpr uint8_t kChat = static_cast<uint8_t>(openai::Endpoint::kChat);

std::vector<openai::RequestField> chat_fields_named(std::span<const std::string_view> names) {
  std::vector<openai::RequestField> fields;
  for (const openai::RequestField& field : openai::request_fields())
    if ((field.endpoints & kChat) && std::ranges::find(names, field.name) != names.end())
      fields.push_back(field);
  return fields;
}

// vLLM: the conversation as the template writes it, its last turn closed.
Result<void> parse_chat(JsonObject object, const RequestLimits& limits, EmbeddingRequest& out) {
  openai::Request& chat = out.chat.emplace();
  chat.add_generation_prompt = false;
  return read_fields(chat_fields_named(kChatFields), kChat, object, limits, chat);
}

Result<void> parse_text(JsonObject object, std::string_view key, std::string& out) {
  const auto value = json_get(object, key);
  if (!value) return {};
  WEIR_ASSIGN(const std::string_view text, as_string(key, *value));
  out = text;
  return {};
}

}  // namespace

Result<EmbeddingRequest> parse_embedding(std::string_view body, int32_t width,
                                         const RequestLimits& limits) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  JsonObject object;
  if (doc.root().get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, std::string("Invalid body: expected a JSON object, found ") +
                                         json_type_name(doc.root()) + ".");
  EmbeddingRequest request;
  WEIR_TRY(parse_text(object, "model", request.model));
  const auto input = json_get(object, "input");
  if (input) {
    WEIR_TRY(parse_prompts("input", *input, kEmbeddingInputsMax, limits, request.inputs));
  } else if (json_get(object, "messages")) {
    WEIR_TRY(parse_chat(object, limits, request));
  } else {
    return missing("input");
  }
  openai::Request cut;
  WEIR_TRY(read_fields(chat_fields_named(kTruncationFields), kChat, object, limits, cut));
  request.truncation = cut.truncation;
  if (const auto format = json_get(object, "encoding_format"))
    WEIR_TRY(parse_format(*format, request));
  if (const auto dimensions = json_get(object, "dimensions")) {
    WEIR_ASSIGN(request.dimensions, integer_of("dimensions", *dimensions));
    WEIR_TRY(check_range("dimensions", static_cast<double>(*request.dimensions), 1, width));
  }
  std::string prompt_name;
  WEIR_TRY(parse_text(object, "prompt_name", prompt_name));
  if (!prompt_name.empty()) request.prompt_name = std::move(prompt_name);
  WEIR_TRY(parse_norm(object, request));
  static const std::vector<FieldDoc> kKnown = embedding_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

std::vector<FieldDoc> embedding_fields() {
  using enum Treatment;
  std::vector<FieldDoc> docs = {
      {"model", "string", "The model's id or one of its aliases."},
      {"input", "string or array", "Text or token ids, one or several."},
      {"encoding_format", "string", "float or base64 (little-endian float32)."},
      {"dimensions", "integer", "The first so many numbers, normalised again; at most all."},
      {"prompt_name", "string",
       "The instruction before each text, of those in config_sentence_transformers.json."},
      {"normalize", "boolean", "Length 1 (vLLM); the default is the model's."},
      {"embd_normalize", "integer",
       "The norm that is 1 (llama.cpp); -1: none, 0: largest entry 32760, 2: Euclid's.", kHonoured,
       kNormNone, kNormHighest},
      {"user", "string", "Accepted.", kIgnored}};
  for (const std::span<const std::string_view> names :
       {std::span<const std::string_view>(kChatFields),
        std::span<const std::string_view>(kTruncationFields)})
    for (FieldDoc& doc : field_docs(chat_fields_named(names), kChat)) {
      doc.required = false;  // Without input a conversation is.
      docs.push_back(doc);
    }
  return docs;
}

}  // namespace weir::api::vectors
