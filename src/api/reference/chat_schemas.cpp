// Chat and text completions, and what other endpoints share with them: errors, tools, usage.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kSchemas = std::to_array<Schema>({
    {"Error", R"({
  "type": "object", "required": ["error"], "properties": {
    "error": {"type": "object", "required": ["message", "type", "param", "code"], "properties": {
      "message": {"type": "string"},
      "type": {"enum": ["invalid_request_error", "rate_limit_error", "server_error"]},
      "param": {"type": ["string", "null"], "description": "The field that it is about."},
      "code": {"type": ["string", "null"]}}}}})"},

    {"JsonSchema", R"({"type": "object", "additionalProperties": true,
  "description": "A JSON Schema, draft 2020-12."})"},

    {"FunctionDefinition", R"({
  "type": "object", "required": ["name"], "properties": {
    "name": {"type": "string"}, "description": {"type": "string"},
    "parameters": {"$ref": "#/components/schemas/JsonSchema"},
    "strict": {"type": ["boolean", "null"]}}})"},

    {"Tool", R"({
  "type": "object", "required": ["type", "function"], "properties": {
    "type": {"const": "function"},
    "function": {"$ref": "#/components/schemas/FunctionDefinition"}}})"},

    {"NamedTool", R"({
  "type": "object", "required": ["type", "function"], "properties": {
    "type": {"const": "function"},
    "function": {"type": "object", "required": ["name"],
      "properties": {"name": {"type": "string"}}}}})"},

    {"ToolChoice", R"({"anyOf": [
  {"enum": ["none", "auto", "required"]},
  {"$ref": "#/components/schemas/NamedTool"},
  {"type": "object", "required": ["type", "allowed_tools"], "properties": {
    "type": {"const": "allowed_tools"},
    "allowed_tools": {"type": "object", "required": ["mode", "tools"], "properties": {
      "mode": {"enum": ["auto", "required"]},
      "tools": {"type": "array", "minItems": 1,
        "items": {"$ref": "#/components/schemas/NamedTool"}}}}}}]})"},

    {"FunctionCall", R"({
  "type": "object", "required": ["name", "arguments"], "properties": {
    "name": {"type": "string"}, "arguments": {"type": "string", "description": "JSON."}}})"},

    {"ToolCall", R"({
  "type": "object", "required": ["id", "type", "function"], "properties": {
    "id": {"type": "string"}, "type": {"const": "function"},
    "function": {"$ref": "#/components/schemas/FunctionCall"}}})"},

    {"TextPart", R"({
  "type": "object", "required": ["type", "text"], "properties": {
    "type": {"enum": ["text", "input_text", "output_text"]}, "text": {"type": "string"}}})"},

    {"ImageDetail", R"({"enum": ["auto", "low", "high", "original"],
  "description": "low: in at most 512 x 512 pixels; the others leave it to the model."})"},

    {"ImagePart", R"({
  "type": "object", "required": ["type", "image_url"], "properties": {
    "type": {"enum": ["image_url", "input_image"]},
    "image_url": {"anyOf": [{"type": "string"},
      {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"},
        "detail": {"$ref": "#/components/schemas/ImageDetail"}}}],
      "description": "data:image/TYPE;base64,..., or an address that the server may ask."},
    "detail": {"$ref": "#/components/schemas/ImageDetail"}}})"},

    {"AudioPart", R"({
  "type": "object", "required": ["type", "input_audio"], "properties": {
    "type": {"const": "input_audio"},
    "input_audio": {"type": "object", "required": ["data"], "properties": {
      "data": {"type": "string", "description": "The file in base64."},
      "format": {"enum": ["wav", "flac", "mp3", "ogg", "opus", "vorbis", null],
        "description": "The file's bytes say what it is."}}}}})"},

    {"AudioUrlPart", R"({
  "type": "object", "required": ["type", "audio_url"], "properties": {
    "type": {"const": "audio_url"},
    "audio_url": {"anyOf": [{"type": "string"},
      {"type": "object", "required": ["url"], "properties": {"url": {"type": "string"}}}],
      "description": "data:audio/TYPE;base64,..., or an address that the server may ask."}}})"},

    {"FilePart", R"({
  "type": "object", "required": ["type"], "description": "A file that is an image or a sound.",
  "properties": {
    "type": {"enum": ["file", "input_file"]},
    "file": {"type": "object", "required": ["file_data"], "properties": {
      "file_data": {"type": "string"}, "filename": {"type": "string"}}},
    "file_data": {"type": "string",
      "description": "data:image/TYPE;base64,... or data:audio/TYPE;base64,..."},
    "file_url": {"type": "string"}, "filename": {"type": "string"}}})"},

    {"ContentPart", R"({"anyOf": [
  {"$ref": "#/components/schemas/TextPart"}, {"$ref": "#/components/schemas/ImagePart"},
  {"$ref": "#/components/schemas/AudioPart"}, {"$ref": "#/components/schemas/AudioUrlPart"},
  {"$ref": "#/components/schemas/FilePart"}]})"},

    {"ChatMessage", R"({
  "type": "object", "required": ["role"], "properties": {
    "role": {"enum": ["system", "developer", "user", "assistant", "tool", "function"]},
    "content": {"anyOf": [{"type": ["string", "null"]},
      {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/ContentPart"}}]},
    "name": {"type": "string"},
    "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}},
    "tool_call_id": {"type": "string", "description": "Of role tool: the call that it answers."},
    "function_call": {"$ref": "#/components/schemas/FunctionCall"},
    "reasoning_content": {"type": "string"}, "reasoning": {"type": "string"}}})"},

    {"ResponseFormat", R"({"anyOf": [
  {"type": "object", "required": ["type"], "properties": {"type": {"const": "text"}}},
  {"type": "object", "required": ["type"], "properties": {
    "type": {"const": "json_object"},
    "schema": {"$ref": "#/components/schemas/JsonSchema"}}},
  {"type": "object", "required": ["type", "json_schema"], "properties": {
    "type": {"const": "json_schema"},
    "json_schema": {"type": "object", "required": ["schema"], "properties": {
      "name": {"type": "string"}, "description": {"type": "string"},
      "schema": {"$ref": "#/components/schemas/JsonSchema"},
      "strict": {"type": ["boolean", "null"]}}}}}]})"},

    {"StreamOptions", R"({
  "type": "object", "properties": {
    "include_usage": {"type": "boolean"},
    "continuous_usage_stats": {"type": "boolean",
      "description": "Beside include_usage: in every event what its choice has used so far."}}})"},

    {"StructuredOutputs", R"({
  "type": "object", "description": "One of these.", "properties": {
    "json": {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/JsonSchema"}]},
    "regex": {"type": "string"}, "choice": {"type": "array", "items": {"type": "string"}},
    "grammar": {"type": "string"}, "json_object": {"type": "boolean"}}})"},

    {"Prompt", R"({"anyOf": [
  {"type": "string"},
  {"type": "array", "minItems": 1, "items": {"type": "string"}},
  {"type": "array", "minItems": 1, "items": {"type": "integer"}},
  {"type": "array", "minItems": 1,
    "items": {"type": "array", "minItems": 1, "items": {"type": "integer"}}}]})"},

    {"Usage", R"({
  "type": "object",
  "required": ["prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details",
    "completion_tokens_details"],
  "properties": {
    "prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"},
    "total_tokens": {"type": "integer"},
    "prompt_tokens_details": {"type": "object", "required": ["cached_tokens"], "properties": {
      "cached_tokens": {"type": "integer"}, "audio_tokens": {"type": "integer"},
      "image_tokens": {"type": "integer", "description": "Where the prompt has images."}}},
    "completion_tokens_details": {"type": "object", "required": ["reasoning_tokens"],
      "properties": {
        "reasoning_tokens": {"type": "integer"}, "audio_tokens": {"type": "integer"},
        "accepted_prediction_tokens": {"type": "integer"},
        "rejected_prediction_tokens": {"type": "integer"}}}}})"},

    {"UsageSoFar", R"({
  "type": "object", "required": ["prompt_tokens", "completion_tokens", "total_tokens"],
  "properties": {
    "prompt_tokens": {"type": "integer"}, "completion_tokens": {"type": "integer"},
    "total_tokens": {"type": "integer"}}})"},

    {"TokenIds", R"({"type": "array", "description": "With return_token_ids.",
  "items": {"type": "integer"}})"},

    {"PromptLogprobs", R"({
  "type": "array", "description": "With prompt_logprobs, by token id; null for the first token.",
  "items": {"type": ["object", "null"], "additionalProperties": {
    "type": "object", "required": ["logprob", "rank", "decoded_token"], "properties": {
      "logprob": {"type": "number"},
      "rank": {"type": "integer", "minimum": 1, "description": "In the vocabulary."},
      "decoded_token": {"type": "string"}}}}})"},
    {"Timings", R"({
  "type": "object", "description": "How long it took (llama-server).",
  "required": ["cache_n", "prompt_n", "prompt_ms", "prompt_per_token_ms", "prompt_per_second",
    "predicted_n", "predicted_ms", "predicted_per_token_ms", "predicted_per_second"],
  "properties": {
    "cache_n": {"type": "integer", "description": "Tokens of the prompt from the prefix cache."},
    "prompt_n": {"type": "integer", "description": "Those that were computed."},
    "prompt_ms": {"type": "number"}, "prompt_per_token_ms": {"type": "number"},
    "prompt_per_second": {"type": "number"}, "predicted_n": {"type": "integer"},
    "predicted_ms": {"type": "number"}, "predicted_per_token_ms": {"type": "number"},
    "predicted_per_second": {"type": "number"},
    "draft_n": {"type": "integer", "description": "Drafts that steps have verified for it, if any."},
    "draft_n_accepted": {"type": "integer", "description": "Those that were right."}}})"},

    {"PromptProgress", R"({
  "type": "object", "required": ["total", "cache", "processed", "time_ms"], "properties": {
    "total": {"type": "integer"}, "cache": {"type": "integer"},
    "processed": {"type": "integer", "description": "Those from the prefix cache included."},
    "time_ms": {"type": "number"}}})"},

    {"Alternative", R"({
  "type": "object", "required": ["token", "logprob", "bytes"], "properties": {
    "token": {"type": "string"}, "logprob": {"type": "number"},
    "bytes": {"type": "array", "items": {"type": "integer"}}}})"},

    {"TokenLogprob", R"({
  "type": "object", "required": ["token", "logprob", "bytes", "top_logprobs"], "properties": {
    "token": {"type": "string"}, "logprob": {"type": "number"},
    "bytes": {"type": "array", "items": {"type": "integer"}},
    "top_logprobs": {"type": "array",
      "items": {"$ref": "#/components/schemas/Alternative"}}}})"},

    {"ChatLogprobs", R"({
  "type": ["object", "null"], "required": ["content", "refusal"], "properties": {
    "content": {"type": "array", "items": {"$ref": "#/components/schemas/TokenLogprob"}},
    "refusal": {"type": "null"}}})"},

    {"AssistantMessage", R"({
  "type": "object", "required": ["role", "content", "refusal", "annotations"], "properties": {
    "role": {"const": "assistant"},
    "content": {"type": ["string", "null"], "description": "Null beside calls without a text."},
    "reasoning_content": {"type": "string"},
    "reasoning": {"type": "string", "description": "The same as reasoning_content."},
    "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCall"}},
    "function_call": {"$ref": "#/components/schemas/FunctionCall"},
    "refusal": {"type": "null"}, "annotations": {"type": "array", "items": {}}}})"},

    {"FinishReason", R"({"enum": ["stop", "length", "tool_calls", "function_call"]})"},

    {"ChatChoice", R"({
  "type": "object", "required": ["index", "message", "logprobs", "finish_reason"], "properties": {
    "index": {"type": "integer"},
    "message": {"$ref": "#/components/schemas/AssistantMessage"},
    "logprobs": {"$ref": "#/components/schemas/ChatLogprobs"},
    "finish_reason": {"$ref": "#/components/schemas/FinishReason"},
    "token_ids": {"$ref": "#/components/schemas/TokenIds"}}})"},

    {"ChatCompletion", R"({
  "type": "object", "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "chat.completion"},
    "created": {"type": "integer"}, "model": {"type": "string"},
    "choices": {"type": "array", "items": {"$ref": "#/components/schemas/ChatChoice"}},
    "prompt_token_ids": {"$ref": "#/components/schemas/TokenIds"},
    "prompt_logprobs": {"$ref": "#/components/schemas/PromptLogprobs"},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "timings": {"$ref": "#/components/schemas/Timings"}}})"},

    {"FunctionCallDelta", R"({
  "type": "object", "properties": {
    "name": {"type": "string", "description": "Once, in the first part."},
    "arguments": {"type": "string", "description": "A part of the JSON."}}})"},

    {"ToolCallDelta", R"({
  "type": "object", "required": ["index", "function"], "properties": {
    "index": {"type": "integer"},
    "id": {"type": "string", "description": "Once, in the first part, as type."},
    "type": {"const": "function"},
    "function": {"$ref": "#/components/schemas/FunctionCallDelta"}}})"},

    {"ChatDelta", R"({
  "type": "object", "properties": {
    "role": {"const": "assistant"}, "content": {"type": "string"},
    "reasoning_content": {"type": "string"}, "reasoning": {"type": "string"},
    "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/ToolCallDelta"}},
    "function_call": {"$ref": "#/components/schemas/FunctionCallDelta"}}})"},

    {"ChatChunkChoice", R"({
  "type": "object", "required": ["index", "delta", "logprobs", "finish_reason"], "properties": {
    "index": {"type": "integer"}, "delta": {"$ref": "#/components/schemas/ChatDelta"},
    "logprobs": {"$ref": "#/components/schemas/ChatLogprobs"},
    "finish_reason": {"anyOf": [{"$ref": "#/components/schemas/FinishReason"},
      {"type": "null"}]},
    "token_ids": {"$ref": "#/components/schemas/TokenIds"}}})"},

    {"ChatCompletionChunk", R"({
  "type": "object", "required": ["id", "object", "created", "model", "choices"], "properties": {
    "id": {"type": "string"}, "object": {"const": "chat.completion.chunk"},
    "created": {"type": "integer"}, "model": {"type": "string"},
    "choices": {"type": "array", "items": {"$ref": "#/components/schemas/ChatChunkChoice"}},
    "prompt_token_ids": {"$ref": "#/components/schemas/TokenIds"},
    "usage": {"description": "With include_usage, of the last chunk.",
      "anyOf": [{"$ref": "#/components/schemas/Usage"},
        {"$ref": "#/components/schemas/UsageSoFar"}, {"type": "null"}]},
    "timings": {"$ref": "#/components/schemas/Timings"},
    "prompt_progress": {"$ref": "#/components/schemas/PromptProgress"}}})"},

    {"CompletionLogprobs", R"({
  "type": ["object", "null"], "required": ["tokens", "token_logprobs", "top_logprobs",
    "text_offset"],
  "properties": {
    "tokens": {"type": "array", "items": {"type": "string"}},
    "token_logprobs": {"type": "array", "items": {"type": ["number", "null"]}},
    "top_logprobs": {"type": "array",
      "items": {"type": ["object", "null"], "additionalProperties": {"type": "number"}}},
    "text_offset": {"type": "array", "items": {"type": "integer"}}}})"},

    {"CompletionChoice", R"({
  "type": "object", "required": ["index", "text", "logprobs", "finish_reason"], "properties": {
    "index": {"type": "integer"}, "text": {"type": "string"},
    "logprobs": {"$ref": "#/components/schemas/CompletionLogprobs"},
    "finish_reason": {"enum": ["stop", "length"]},
    "token_ids": {"$ref": "#/components/schemas/TokenIds"},
    "prompt_token_ids": {"$ref": "#/components/schemas/TokenIds"},
    "prompt_logprobs": {"$ref": "#/components/schemas/PromptLogprobs"}}})"},

    {"Completion", R"({
  "type": "object", "required": ["id", "object", "created", "model", "choices", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "text_completion"},
    "created": {"type": "integer"}, "model": {"type": "string"},
    "choices": {"type": "array", "items": {"$ref": "#/components/schemas/CompletionChoice"}},
    "usage": {"$ref": "#/components/schemas/Usage"},
    "timings": {"$ref": "#/components/schemas/Timings"}}})"},

    {"CompletionChunkChoice", R"({
  "type": "object", "required": ["index", "text", "logprobs", "finish_reason"], "properties": {
    "index": {"type": "integer"}, "text": {"type": "string"},
    "logprobs": {"$ref": "#/components/schemas/CompletionLogprobs"},
    "finish_reason": {"enum": ["stop", "length", null]},
    "token_ids": {"$ref": "#/components/schemas/TokenIds"},
    "prompt_token_ids": {"$ref": "#/components/schemas/TokenIds"}}})"},

    {"CompletionChunk", R"({
  "type": "object", "required": ["id", "object", "created", "model", "choices"], "properties": {
    "id": {"type": "string"}, "object": {"const": "text_completion"},
    "created": {"type": "integer"}, "model": {"type": "string"},
    "choices": {"type": "array",
      "items": {"$ref": "#/components/schemas/CompletionChunkChoice"}},
    "usage": {"anyOf": [{"$ref": "#/components/schemas/Usage"},
      {"$ref": "#/components/schemas/UsageSoFar"}, {"type": "null"}]},
    "timings": {"$ref": "#/components/schemas/Timings"},
    "prompt_progress": {"$ref": "#/components/schemas/PromptProgress"}}})"},
});

}  // namespace

std::span<const Schema> chat_schemas() { return kSchemas; }

}  // namespace weir::api::reference
