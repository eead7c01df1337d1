#include "api/anthropic/message_request.h"

#include <array>
#include <limits>

#include "api/request/request_values.h"
#include "api/request/structured_output.h"

namespace weir::api::anthropic {

namespace {

Result<void> parse_stop_sequences(const FieldInput& in, GenerateRequest& out) {
  WEIR_TRY(as_array(in.path, in.value));
  return parse_stop(in, out);
}

// Thinking that the request has not asked for is left out, where the model can do without: clients
// read content[0].text.
Result<void> parse_thinking(const FieldInput& in, MessageRequest& out) {
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  WEIR_ASSIGN(const std::string_view type, required_string(in.path, object, "type"));
  if (type != "enabled" && type != "disabled" && type != "adaptive")
    return out_of_range(join(in.path, "type"), "expected enabled, disabled or adaptive, found \"" +
                                                   std::string(shown(type)) + "\"");
  out.enable_thinking = type != "disabled";
  if (const auto budget = json_get(object, "budget_tokens")) {
    const std::string path = join(in.path, "budget_tokens");
    WEIR_ASSIGN(const int64_t tokens, integer_of(path, *budget));
    WEIR_TRY(check_range(path, static_cast<double>(tokens), 0, INT32_MAX));
    if (type == "enabled") out.reasoning_budget = tokens;
  }
  if (const auto display = json_get(object, "display")) {
    WEIR_ASSIGN(const std::string_view text, as_string(join(in.path, "display"), *display));
    out.hide_reasoning = text == "omitted";
  }
  return {};
}

Result<void> bind_format(const std::string& path, JsonValue value, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject format, as_object(path, value));
  WEIR_ASSIGN(const std::string_view type, required_string(path, format, "type"));
  if (type != "json_schema")
    return unsupported(join(path, "type"),
                       "expected \"json_schema\", found \"" + std::string(shown(type)) + "\"");
  WEIR_ASSIGN(const JsonValue schema, required_member(path, format, "schema"));
  WEIR_TRY(as_object(join(path, "schema"), schema));
  return bind_schema(join(path, "schema"), schema, out);
}

// The older place of output_config.format.
Result<void> parse_output_format(const FieldInput& in, GenerateRequest& out) {
  return bind_format(std::string(in.path), in.value, out);
}

// Templates that know of an effort know three.
Result<void> parse_output_config(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject config, as_object(in.path, in.value));
  if (const auto effort = json_get(config, "effort")) {
    WEIR_ASSIGN(const std::string_view text, as_string(join(in.path, "effort"), *effort));
    out.reasoning_effort = text == "xhigh" || text == "max" ? "high" : std::string(text);
  }
  if (const auto format = json_get(config, "format"))
    return bind_format(join(in.path, "format"), *format, out);
  return {};
}

using G = MessageRequest;
constexpr uint8_t kAnswer = 1, kCount = 2, kBoth = kAnswer | kCount;
constexpr double kCountMax = std::numeric_limits<int32_t>::max();

// In the order in which they are read: `system` stands before the messages.
constexpr auto kFields = std::to_array<Field<MessageRequest>>({
    {"model", "string", &G::model, "The model's id or one of its aliases.", 0, 0, kBoth},
    {"system", "string or array", &parse_system, "Instructions: a text, or blocks of text.", 0, 0,
     kBoth},
    {"messages", "array", &parse_conversation,
     "The conversation: text, tool_use, tool_result, thinking, documents of text. A last message "
     "of the assistant's is continued.",
     0, 0, kBoth, true},
    {"max_tokens", "integer", &G::max_tokens, "Most tokens of the answer.", 1, kCountMax, kAnswer,
     true},
    {"tools", "array", &parse_message_tools,
     "Functions that the model may call; tools that a server runs are refused.", 0, 0, kBoth},
    {"tool_choice", "object", &parse_message_tool_choice,
     "type auto, any, tool or none; disable_parallel_tool_use.", 0, 0, kBoth},
    {"thinking", "object", &parse_thinking,
     "type enabled, adaptive or disabled; absent: as --thinking says, else disabled. "
     "budget_tokens: most tokens of the thinking, which is closed then.",
     0, 0, kBoth},
    {"output_config", "object", &parse_output_config,
     "format: type json_schema and schema; effort: a variable for the chat template.", 0, 0, kBoth},
    {"output_format", "object", &parse_output_format, "The older name of output_config.format.", 0,
     0, kBoth},
    {"temperature", "number", &G::temperature, "0 is greedy.", 0, 1, kAnswer},
    {"top_p", "number", &G::top_p, "Nucleus sampling.", 0, 1, kAnswer},
    {"top_k", "integer", &G::top_k, "The k most likely tokens; 0: all.", 0, kCountMax, kAnswer},
    {"stop_sequences", "array", &parse_stop_sequences, "Strings that end the answer.", 0, 0,
     kAnswer},
    {"stream", "boolean", &G::stream, "Server-sent events.", 0, 0, kAnswer},
    {"mcp_servers", "array", &refuse, "Not supported.", 0, 0, kBoth},
    {"container", "string or object", &refuse, "Not supported.", 0, 0, kAnswer},
    {"cache_control",
     "object",
     {},
     "Accepted, here and in blocks; the prefix cache is always on.",
     0,
     0,
     kBoth},
    {"context_management", "object", {}, "Accepted; nothing is cleared.", 0, 0, kBoth},
    {"metadata", "object", {}, "Accepted.", 0, 0, kAnswer},
    {"service_tier", "string", {}, "Accepted.", 0, 0, kAnswer},
    {"inference_geo", "string", {}, "Accepted.", 0, 0, kAnswer},
    {"speed", "string", {}, "Accepted.", 0, 0, kBoth},
});

Result<MessageRequest> parse(uint8_t endpoint, const std::vector<FieldDoc>& known,
                             std::string_view body, const RequestLimits& limits) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  MessageRequest request;
  request.thinking_unasked = false;
  WEIR_TRY(read_fields(kFields, endpoint, object, limits, request));
  request.ignored.add_unknown(object, known);
  WEIR_TRY(check_tool_choice("tool_choice", request));
  return request;
}

}  // namespace

Result<MessageRequest> parse_message_request(std::string_view body, const RequestLimits& limits) {
  static const std::vector<FieldDoc> kKnown = message_fields();
  return parse(kAnswer, kKnown, body, limits);
}

Result<MessageRequest> parse_count_request(std::string_view body, const RequestLimits& limits) {
  static const std::vector<FieldDoc> kKnown = count_fields();
  return parse(kCount, kKnown, body, limits);
}

std::vector<FieldDoc> message_fields() { return field_docs(kFields, kAnswer); }
std::vector<FieldDoc> count_fields() { return field_docs(kFields, kCount); }

}  // namespace weir::api::anthropic
