#include "api/responses/request.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/openai/request_fields.h"
#include "api/request/structured_output.h"
#include "api/responses/input.h"
#include "api/responses/tools.h"

namespace weir::api::responses {

namespace {

using R = ResponsesRequest;

constexpr double kCountMax = INT32_MAX;
// OpenAI's limits.
constexpr size_t kMetadataMax = 16;
constexpr size_t kMetadataKeyMax = 64;
constexpr size_t kMetadataValueMax = 512;
// Digits of an id (random_id()).
constexpr size_t kIdDigits = 32;

std::string json_of(JsonValue value) {
  std::string json;
  JsonWriter(json).value(value);
  return json;
}

Result<bool> boolean_of(std::string_view path, JsonValue value) {
  bool flag = false;
  if (value.get(flag) != simdjson::SUCCESS) return wrong_type(path, "a boolean", value);
  return flag;
}

Result<void> parse_previous(const FieldInput& in, R& out) {
  WEIR_ASSIGN(const std::string_view id, as_string(in.path, in.value));
  if (!id.empty()) out.previous_response_id = std::string(id);
  return {};
}

Result<void> parse_store(const FieldInput& in, R& out) {
  WEIR_ASSIGN(out.store, boolean_of(in.path, in.value));
  return {};
}

Result<void> parse_choice(const FieldInput& in, R& out) {
  out.tool_choice = json_of(in.value);
  return parse_response_choice(in, out.generate);
}

Result<void> parse_text(const FieldInput& in, R& out) {
  WEIR_TRY(parse_text_config(in, out.generate));
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  if (json_get(object, "format")) out.text = json_of(in.value);
  return {};
}

Result<void> parse_reasoning(const FieldInput& in, R& out) {
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  if (const auto effort = json_get(object, "effort")) {
    WEIR_ASSIGN(const std::string_view text, as_string("reasoning.effort", *effort));
    out.generate.reasoning_effort = std::string(text);
  }
  for (const char* key : {"summary", "generate_summary"}) {
    const auto summary = json_get(object, key);
    if (!summary) continue;
    WEIR_TRY(as_string(std::string("reasoning.") + key, *summary));
    out.summary = true;
  }
  out.reasoning = json_of(in.value);
  return {};
}

Result<void> parse_max_output(const FieldInput& in, R& out) {
  WEIR_ASSIGN(const int64_t count, integer_of(in.path, in.value));
  WEIR_TRY(check_range(in.path, static_cast<double>(count), 1, kCountMax));
  out.generate.max_completion_tokens = count;
  return {};
}

Result<void> parse_max_calls(const FieldInput& in, R& out) {
  WEIR_ASSIGN(out.max_tool_calls, integer_of(in.path, in.value));
  return check_range(in.path, static_cast<double>(*out.max_tool_calls), 1, kCountMax);
}

Result<void> parse_top_logprobs(const FieldInput& in, R& out) {
  WEIR_ASSIGN(const int64_t count, integer_of(in.path, in.value));
  WEIR_TRY(check_range(in.path, static_cast<double>(count), 0, 20));
  out.generate.top_logprobs = count;
  if (count > 0) out.generate.logprobs = true;
  return {};
}

// Of what may be included, this server has only log-probabilities. Clients ask for the rest with
// every request, whatever the model has.
Result<void> parse_include(const FieldInput& in, R& out) {
  JsonArray array;
  if (in.value.get(array) != simdjson::SUCCESS)
    return wrong_type(in.path, "an array of strings", in.value);
  size_t index = 0;
  for (const JsonValue element : array) {
    const std::string path = at(in.path, index++);
    WEIR_ASSIGN(const std::string_view name, as_string(path, element));
    if (name == "message.output_text.logprobs") out.generate.logprobs = true;
  }
  return {};
}

Result<void> parse_metadata(const FieldInput& in, R& out) {
  JsonObject object;
  if (in.value.get(object) != simdjson::SUCCESS)
    return wrong_type(in.path, "an object of strings", in.value);
  if (object.size() > kMetadataMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kMetadataMax) +
                                     " entries, found " + std::to_string(object.size()));
  for (const auto [key, value] : object) {
    const std::string path = "metadata." + std::string(shown(key));
    WEIR_ASSIGN(const std::string_view text, as_string(path, value));
    if (key.size() > kMetadataKeyMax || text.size() > kMetadataValueMax)
      return out_of_range(path, "expected a key of at most " + std::to_string(kMetadataKeyMax) +
                                    " and a value of at most " + std::to_string(kMetadataValueMax) +
                                    " bytes");
  }
  out.metadata = json_of(in.value);
  return {};
}

Result<void> parse_truncation(const FieldInput& in, R& out) {
  WEIR_ASSIGN(const std::string_view text, as_string(in.path, in.value));
  if (text != "auto" && text != "disabled")
    return out_of_range(in.path,
                        "expected auto or disabled, found \"" + std::string(shown(text)) + "\"");
  out.truncation = text;
  return {};
}

// What is repeated and else without effect; long strings are not worth their memory.
template <std::string R::*member>
Result<void> parse_repeated(const FieldInput& in, R& out) {
  WEIR_ASSIGN(const std::string_view text, as_string(in.path, in.value));
  if (text.size() > kMetadataValueMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kMetadataValueMax) +
                                     " bytes, found " + std::to_string(text.size()));
  out.*member = json_of(in.value);
  return {};
}

Result<void> parse_refused(const FieldInput& in, R& out) { return refuse(in, out.generate); }

using Parser = Result<void> (*)(const FieldInput& in, R& out);

struct OwnField {
  std::string_view name;
  std::string_view type;
  Parser parser;  // Null: read when all other fields are known.
  std::string_view help;
  double min = 0, max = 0;
  bool required = false;
};

// The fields that chats do not have, or not so; openai/request_fields.cpp has those that they
// share.
constexpr auto kOwnFields = std::to_array<OwnField>({
    {"input", "string or array", nullptr,
     "A text, or items: messages, function_call, function_call_output, custom_tool_call, "
     "custom_tool_call_output, reasoning, item_reference, additional_tools.",
     0, 0, true},
    {"instructions", "string", nullptr, "A system message before the conversation."},
    {"previous_response_id", "string", &parse_previous,
     "The response whose conversation goes on; it must have been stored."},
    {"store", "boolean", &parse_store, "Keeps the response; true unless --responses-store is 0."},
    {"max_output_tokens", "integer", &parse_max_output, "Most tokens, reasoning included.", 1,
     kCountMax},
    {"tools", "array", nullptr,
     "What the model may call: of type function, custom (its input is a text, bound by format) or "
     "namespace (more of both). Tools that a vendor's server runs, such as web_search, are left "
     "out."},
    {"tool_choice", "string or object", &parse_choice,
     "none, auto, required, a function, custom tool or namespace by its name, or allowed_tools."},
    {"max_tool_calls", "integer", &parse_max_calls,
     "Repeated; it limits calls of tools that the server has, and this one has none.", 1,
     kCountMax},
    {"text", "object", &parse_text, "format: type text, json_object or json_schema."},
    {"reasoning", "object", &parse_reasoning,
     "effort: a variable for the chat template, none turns thinking off; summary: the reasoning "
     "comes as a summary, unshortened."},
    {"include", "array", &parse_include, "message.output_text.logprobs; others are ignored."},
    {"top_logprobs", "integer", &parse_top_logprobs, "Alternatives of each token.", 0, 20},
    {"metadata", "object", &parse_metadata, "Repeated: 16 strings by name."},
    {"truncation", "string", &parse_truncation,
     "auto leaves the oldest messages out if the conversation is too long; disabled refuses it."},
    {"user", "string", &parse_repeated<&R::user>, "Repeated."},
    {"safety_identifier", "string", &parse_repeated<&R::safety_identifier>, "Repeated."},
    {"prompt_cache_key", "string", &parse_repeated<&R::prompt_cache_key>, "Repeated."},
    {"background", "boolean", &parse_refused, "Not supported."},
    {"conversation", "string or object", &parse_refused, "Not supported."},
    {"prompt", "object", &parse_refused, "Not supported."},
});

}  // namespace

Result<ResponsesRequest> parse_responses(std::string_view body, const ResponsesContext& context) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  ResponsesRequest request;
  WEIR_TRY(
      openai::parse_fields(openai::Endpoint::kResponses, object, context.limits, request.generate));
  WEIR_TRY(parse_response_tools(object, request.generate));
  if (const auto tools = json_get(object, "tools")) request.tools = json_of(*tools);
  for (const OwnField& field : kOwnFields) {
    const auto value = json_get(object, field.name);
    if (value && field.parser)
      WEIR_TRY(field.parser(FieldInput{field.name, *value, context.limits}, request));
  }
  static const std::vector<FieldDoc> kKnown = responses_fields();
  request.generate.ignored.add_unknown(object, kKnown);
  WEIR_TRY(check_tool_choice("tool_choice", request.generate));
  if (!context.store || !context.store->enabled()) request.store = false;
  WEIR_TRY(read_input(object, context, request));
  return request;
}

std::vector<FieldDoc> responses_fields() {
  std::vector<FieldDoc> docs;
  const std::vector<FieldDoc> shared = openai::fields_of(openai::Endpoint::kResponses);
  docs.push_back(shared.front());  // The model.
  for (const OwnField& field : kOwnFields)
    docs.push_back({field.name, field.type, field.help,
                    field.parser == &parse_refused ? Treatment::kRefused : Treatment::kHonoured,
                    field.min, field.max, field.required});
  docs.insert(docs.end(), shared.begin() + 1, shared.end());
  return docs;
}

std::string item_id(std::string_view letters, std::string_view response_id, size_t number) {
  const size_t digits = response_id.find('_') + 1;
  return std::string(letters) + std::string(response_id.substr(digits)) + std::to_string(number);
}

std::string response_of_item(std::string_view item_id) {
  const size_t digits = item_id.find('_');
  if (digits == std::string_view::npos || item_id.size() <= digits + 1 + kIdDigits) return {};
  return "resp_" + std::string(item_id.substr(digits + 1, kIdDigits));
}

}  // namespace weir::api::responses
