// /api: what Ollama's clients send and read.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kSchemas = std::to_array<Schema>({
    {"OllamaError", R"({
  "type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}})"},

    {"OllamaCall", R"({
  "type": "object", "required": ["function"], "properties": {
    "id": {"type": "string"},
    "function": {"type": "object", "required": ["name", "arguments"], "properties": {
      "index": {"type": "integer"}, "name": {"type": "string"},
      "arguments": {"type": "object", "additionalProperties": true}}}}})"},

    {"OllamaMessageParam", R"({
  "type": "object", "required": ["role"], "properties": {
    "role": {"enum": ["system", "user", "assistant", "tool"]},
    "content": {"type": ["string", "null"]}, "thinking": {"type": ["string", "null"]},
    "images": {"type": ["array", "null"], "items": {"type": "string"},
      "description": "In base64; they stand before the content."},
    "tool_calls": {"type": ["array", "null"],
      "items": {"$ref": "#/components/schemas/OllamaCall"}},
    "tool_name": {"type": ["string", "null"], "description": "Of a tool's result."},
    "tool_call_id": {"type": ["string", "null"], "description": "The same by the call's id."}}})"},

    {"OllamaOptions", R"({
  "type": "object", "additionalProperties": true, "properties": {
    "num_predict": {"type": "integer",
      "description": "Most tokens; below 1: as many as there is room for."},
    "temperature": {"type": "number", "minimum": 0, "maximum": 2},
    "top_k": {"type": "integer"}, "top_p": {"type": "number"}, "min_p": {"type": "number"},
    "typical_p": {"type": "number"},
    "seed": {"type": "integer", "description": "-1: random."},
    "stop": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
    "repeat_penalty": {"type": "number"}, "presence_penalty": {"type": "number"},
    "frequency_penalty": {"type": "number"}},
  "description": "Those of the machine (num_ctx, num_gpu, num_thread ...) have no effect."})"},

    {"OllamaMessage", R"({
  "type": "object", "required": ["role", "content"], "properties": {
    "role": {"const": "assistant"}, "content": {"type": "string"},
    "thinking": {"type": "string"},
    "tool_calls": {"type": "array", "items": {"$ref": "#/components/schemas/OllamaCall"}}}})"},

    {"OllamaLogprobs", R"({"type": "array", "items": {
  "type": "object", "required": ["token", "logprob", "bytes"], "properties": {
    "token": {"type": "string"}, "logprob": {"type": "number"},
    "bytes": {"type": "array", "items": {"type": "integer"}},
    "top_logprobs": {"type": "array", "items": {
      "type": "object", "required": ["token", "logprob"], "properties": {
        "token": {"type": "string"}, "logprob": {"type": "number"},
        "bytes": {"type": "array", "items": {"type": "integer"}}}}}}}})"},

    {"OllamaChatPart", R"({
  "type": "object", "required": ["model", "created_at", "message", "done"], "properties": {
    "model": {"type": "string"}, "created_at": {"type": "string"},
    "message": {"$ref": "#/components/schemas/OllamaMessage"},
    "logprobs": {"$ref": "#/components/schemas/OllamaLogprobs"},
    "done": {"type": "boolean", "description": "The last part has this and what follows."},
    "done_reason": {"enum": ["stop", "length", "load", "unload"]},
    "total_duration": {"type": "integer", "description": "Nanoseconds, as are the others."},
    "load_duration": {"type": "integer"},
    "prompt_eval_count": {"type": "integer", "description": "Tokens."},
    "prompt_eval_duration": {"type": "integer"},
    "eval_count": {"type": "integer"}, "eval_duration": {"type": "integer"}}})"},

    {"OllamaChatAnswer", R"({"$ref": "#/components/schemas/OllamaChatPart"})"},

    {"OllamaGeneratePart", R"({
  "type": "object", "required": ["model", "created_at", "response", "done"], "properties": {
    "model": {"type": "string"}, "created_at": {"type": "string"},
    "response": {"type": "string"}, "thinking": {"type": "string"},
    "logprobs": {"$ref": "#/components/schemas/OllamaLogprobs"},
    "done": {"type": "boolean", "description": "The last part has this and what follows."},
    "done_reason": {"enum": ["stop", "length", "load", "unload"]},
    "total_duration": {"type": "integer", "description": "Nanoseconds, as are the others."},
    "load_duration": {"type": "integer"},
    "prompt_eval_count": {"type": "integer", "description": "Tokens."},
    "prompt_eval_duration": {"type": "integer"},
    "eval_count": {"type": "integer"}, "eval_duration": {"type": "integer"}}})"},

    {"OllamaGenerateAnswer", R"({"$ref": "#/components/schemas/OllamaGeneratePart"})"},

    {"OllamaVectors", R"({
  "type": "object", "required": ["model", "embeddings"], "properties": {
    "model": {"type": "string"},
    "embeddings": {"type": "array", "items": {"type": "array", "items": {"type": "number"}}},
    "total_duration": {"type": "integer", "description": "Nanoseconds."},
    "load_duration": {"type": "integer"},
    "prompt_eval_count": {"type": "integer", "description": "Tokens."}}})"},

    {"OllamaVector", R"({
  "type": "object", "required": ["embedding"], "properties": {
    "embedding": {"type": "array", "items": {"type": "number"}}}})"},

    {"OllamaVersion", R"({
  "type": "object", "required": ["version"], "properties": {"version": {"type": "string"}}})"},

    {"OllamaDetails", R"({
  "type": "object", "properties": {
    "parent_model": {"type": "string"}, "format": {"type": "string"},
    "family": {"type": "string"},
    "families": {"type": "array", "items": {"type": "string"}},
    "parameter_size": {"type": "string"}, "quantization_level": {"type": "string"},
    "context_length": {"type": "integer"}, "embedding_length": {"type": "integer"}}})"},

    {"OllamaCapabilities", R"({"type": "array",
  "items": {"enum": ["completion", "tools", "insert", "vision", "thinking", "embedding"]}})"},

    {"OllamaModels", R"({
  "type": "object", "required": ["models"], "properties": {
    "models": {"type": "array", "items": {
      "type": "object", "required": ["name", "model", "size", "digest", "details"],
      "properties": {
        "name": {"type": "string"}, "model": {"type": "string"},
        "size": {"type": "integer", "description": "Bytes of the weights."},
        "digest": {"type": "string"}, "details": {"$ref": "#/components/schemas/OllamaDetails"},
        "capabilities": {"$ref": "#/components/schemas/OllamaCapabilities"},
        "modified_at": {"type": "string"}}}}}})"},

    {"OllamaLoadedModels", R"({
  "type": "object", "required": ["models"], "properties": {
    "models": {"type": "array", "items": {
      "type": "object", "required": ["name", "model", "size", "digest", "details", "expires_at"],
      "properties": {
        "name": {"type": "string"}, "model": {"type": "string"},
        "size": {"type": "integer", "description": "Bytes of the weights."},
        "digest": {"type": "string"}, "details": {"$ref": "#/components/schemas/OllamaDetails"},
        "expires_at": {"type": "string"}, "size_vram": {"type": "integer"},
        "context_length": {"type": "integer"}}}}}})"},

    {"OllamaModelDetails", R"({
  "type": "object", "required": ["details", "model_info", "capabilities"], "properties": {
    "license": {"type": "string", "description": "Empty."}, "modelfile": {"type": "string"},
    "parameters": {"type": "string", "description": "Defaults of sampling, a line each."},
    "template": {"type": "string", "description": "Jinja."},
    "details": {"$ref": "#/components/schemas/OllamaDetails"},
    "model_info": {"type": "object", "additionalProperties": true, "required":
      ["general.architecture", "general.parameter_count"], "properties": {
        "general.architecture": {"type": "string"},
        "general.parameter_count": {"type": "integer"}}},
    "capabilities": {"$ref": "#/components/schemas/OllamaCapabilities"},
    "modified_at": {"type": "string"}}})"},

    {"OllamaPullStatus", R"({
  "type": "object", "required": ["status"], "properties": {
    "status": {"type": "string", "description": "The last one is success."},
    "digest": {"type": "string"}, "total": {"type": "integer", "description": "Bytes."},
    "completed": {"type": "integer"}}})"},
});

}  // namespace

std::span<const Schema> ollama_schemas() { return kSchemas; }

}  // namespace weir::api::reference
