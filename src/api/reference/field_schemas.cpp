// What the arrays and the objects in requests look like.
#include <algorithm>
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr std::string_view kAnything = R"({"type": "object", "additionalProperties": true})";
constexpr std::string_view kSchemaOrText =
    R"({"anyOf": [{"$ref": "#/components/schemas/JsonSchema"}, {"type": "string"}]})";
constexpr std::string_view kStrings = R"({"type": "array", "items": {"type": "string"}})";
constexpr std::string_view kIntegers = R"({"type": "array", "items": {"type": "integer"}})";
constexpr std::string_view kStringOrStrings =
    R"({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]})";
constexpr std::string_view kDocuments =
    R"({"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Document"}})";
constexpr std::string_view kTextOrDocuments = R"({"anyOf": [{"type": "string"},
  {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Document"}}]})";
constexpr std::string_view kFunctions =
    R"({"type": "array", "items": {"$ref": "#/components/schemas/FunctionDefinition"}})";
constexpr std::string_view kNamed = R"({"anyOf": [{"enum": ["none", "auto"]},
  {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}]})";

// Fields of one endpoint first, then those that mean the same wherever they are.
constexpr auto kFieldSchemas = std::to_array<FieldSchema>({
    {"/v1/responses", "input", R"({"anyOf": [{"type": "string"},
  {"type": "array", "items": {"$ref": "#/components/schemas/InputItem"}}]})"},
    {"/v1/responses", "tools",
     R"({"type": "array", "items": {"$ref": "#/components/schemas/ResponseTool"}})"},
    {"/v1/responses", "tool_choice", R"({"$ref": "#/components/schemas/ResponseToolChoice"})"},

    {"/v1/messages", "system", R"({"anyOf": [{"type": "string"},
  {"type": "array", "items": {"$ref": "#/components/schemas/TextBlockParam"}}]})"},
    {"/v1/messages", "messages", R"({"type": "array", "minItems": 1,
  "items": {"$ref": "#/components/schemas/MessageParam"}})"},
    {"/v1/messages", "tools",
     R"({"type": "array", "items": {"$ref": "#/components/schemas/MessageTool"}})"},
    {"/v1/messages", "tool_choice", R"({"$ref": "#/components/schemas/MessageToolChoice"})"},

    {"/api/chat", "messages", R"({"type": "array",
  "items": {"$ref": "#/components/schemas/OllamaMessageParam"}})"},
    {"/api/generate", "images", kStrings},
    {"/api/", "options", R"({"$ref": "#/components/schemas/OllamaOptions"})"},
    {"/api/", "format", R"({"anyOf": [{"const": "json"}, {"const": ""},
  {"$ref": "#/components/schemas/JsonSchema"}]})"},
    {"/api/", "keep_alive", R"({"type": ["string", "number"]})"},

    {"/detokenize", "tokens", kIntegers},

    {"/completion", "prompt", R"({"$ref": "#/components/schemas/LlamaPrompt"})"},
    {"/completion", "logit_bias", R"({"$ref": "#/components/schemas/LlamaBias"})"},
    {"/infill", "logit_bias", R"({"$ref": "#/components/schemas/LlamaBias"})"},
    {"/v1/score", "documents", kTextOrDocuments},

    {"/", "messages", R"({"type": "array", "minItems": 1,
  "items": {"$ref": "#/components/schemas/ChatMessage"}})"},
    {"/", "prediction", R"({"type": "object", "required": ["type", "content"], "properties": {
  "type": {"const": "content"},
  "content": {"anyOf": [{"type": "string"}, {"type": "array", "minItems": 1,
    "items": {"type": "object", "required": ["type"], "properties": {
      "type": {"type": "string"}, "text": {"type": "string"}}}}]}}})"},
    {"/", "prompt", R"({"$ref": "#/components/schemas/Prompt"})"},
    {"/", "input", R"({"$ref": "#/components/schemas/Prompt"})"},
    {"/", "input_extra",
     R"({"type": "array", "items": {"$ref": "#/components/schemas/InfillFile"}})"},
    {"/", "tools", R"({"type": "array", "items": {"$ref": "#/components/schemas/Tool"}})"},
    {"/", "tool_choice", R"({"$ref": "#/components/schemas/ToolChoice"})"},
    {"/", "functions", kFunctions},
    {"/", "function_call", kNamed},
    {"/", "chat_template_kwargs", kAnything},
    {"/", "lora", R"({"type": "array", "items": {"type": "object", "required": ["id", "scale"],
  "properties": {"id": {"type": "integer"}, "scale": {"type": "number"}}}})"},
    {"/", "logit_bias", R"({"type": "object", "additionalProperties": {"type": "number"}})"},
    {"/", "dry_sequence_breakers", kStrings},
    {"/", "stop", kStringOrStrings},
    {"/", "stop_sequences", kStrings},
    {"/", "stop_token_ids", kIntegers},
    {"/", "stream_options", R"({"$ref": "#/components/schemas/StreamOptions"})"},
    {"/", "response_format", R"({"$ref": "#/components/schemas/ResponseFormat"})"},
    {"/", "structured_outputs", R"({"$ref": "#/components/schemas/StructuredOutputs"})"},
    {"/", "guided_json", kSchemaOrText},
    {"/", "json_schema", kSchemaOrText},
    {"/", "guided_choice", kStrings},
    {"/", "modalities", R"({"type": "array", "items": {"const": "text"}})"},
    {"/", "include", kStrings},
    {"/", "text", R"({"$ref": "#/components/schemas/ResponseText"})"},
    {"/", "reasoning", R"({"$ref": "#/components/schemas/ReasoningOptions"})"},
    {"/", "metadata", R"({"type": "object", "additionalProperties": {"type": "string"}})"},
    {"/", "thinking", R"({"$ref": "#/components/schemas/Thinking"})"},
    {"/", "output_config", R"({"$ref": "#/components/schemas/OutputConfig"})"},
    {"/", "output_format", R"({"$ref": "#/components/schemas/OutputFormat"})"},
    {"/", "documents", kDocuments},
    {"/", "texts", kDocuments},
    {"/", "queries", kTextOrDocuments},
    {"/", "bad_words", kStrings},
    {"/", "allowed_token_ids", kIntegers},
    {"/", "text_1", kTextOrDocuments},
    {"/", "text_2", kTextOrDocuments},
    {"/v1/audio/", "timestamp_granularities[]",
     R"({"type": "array", "items": {"enum": ["segment", "word"]}})"},
    {"/v1/audio/", "include[]", R"({"type": "array", "items": {"const": "logprobs"}})"},
});

}  // namespace

std::span<const FieldSchema> field_schemas() { return kFieldSchemas; }

const FieldSchema* find_field_schema(std::string_view path, std::string_view field) {
  const auto found = std::ranges::find_if(kFieldSchemas, [&](const FieldSchema& schema) {
    return schema.field == field && path.starts_with(schema.path);
  });
  return found == kFieldSchemas.end() ? nullptr : &*found;
}

}  // namespace weir::api::reference
