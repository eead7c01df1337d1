// Answers of llama-server's own endpoints: /completion and /infill.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kSchemas = std::to_array<Schema>({
    {"InfillFile", R"({
  "type": "object", "required": ["text"], "properties": {
    "text": {"type": "string"}, "filename": {"type": "string"}}})"},

    {"MixedPrompt", R"({
  "type": "array", "minItems": 1,
  "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}})"},

    {"PromptObject", R"({
  "type": "object", "required": ["prompt_string"], "properties": {
    "prompt_string": {"type": "string"},
    "multimodal_data": {"type": "array", "items": {"type": "string"},
      "description": "Images in base64, one for each <__media__> of the text."}}})"},

    {"LlamaPrompt", R"({"anyOf": [
  {"type": "string"},
  {"$ref": "#/components/schemas/MixedPrompt"},
  {"$ref": "#/components/schemas/PromptObject"},
  {"type": "array", "minItems": 1, "description": "Several prompts.",
    "items": {"anyOf": [{"type": "string"}, {"$ref": "#/components/schemas/MixedPrompt"},
      {"$ref": "#/components/schemas/PromptObject"}]}}]})"},

    {"LlamaBias", R"({"anyOf": [
  {"type": "object", "additionalProperties": {"type": "number"}},
  {"type": "array", "items": {"type": "array", "minItems": 2, "maxItems": 2,
    "items": {"type": ["integer", "string", "number", "boolean"]}}}]})"},

    {"LlamaAlternative", R"({
  "type": "object", "required": ["id", "token", "logprob", "bytes"], "properties": {
    "id": {"type": "integer"}, "token": {"type": "string"}, "logprob": {"type": "number"},
    "bytes": {"type": "array", "items": {"type": "integer"}}}})"},

    {"LlamaProbability", R"({
  "type": "object", "required": ["id", "token", "logprob", "bytes", "top_logprobs"],
  "properties": {
    "id": {"type": "integer"}, "token": {"type": "string"}, "logprob": {"type": "number"},
    "bytes": {"type": "array", "items": {"type": "integer"}},
    "top_logprobs": {"type": "array",
      "items": {"$ref": "#/components/schemas/LlamaAlternative"}}}})"},

    {"LlamaTokens", R"({"type": "array", "description": "With return_tokens, or streamed.",
  "items": {"type": "integer"}})"},

    {"GenerationSettings", R"({
  "type": "object", "description": "The parameters in force.", "properties": {
    "n_predict": {"type": "integer"}, "seed": {"type": "integer"},
    "temperature": {"type": "number"}, "top_k": {"type": "integer"},
    "top_p": {"type": "number"}, "min_p": {"type": "number"},
    "typical_p": {"type": "number"}, "top_n_sigma": {"type": "number"},
    "xtc_probability": {"type": "number"}, "xtc_threshold": {"type": "number"},
    "dynatemp_range": {"type": "number"}, "dynatemp_exponent": {"type": "number"},
    "repeat_penalty": {"type": "number"}, "repeat_last_n": {"type": "integer"},
    "presence_penalty": {"type": "number"}, "frequency_penalty": {"type": "number"},
    "dry_multiplier": {"type": "number"}, "dry_base": {"type": "number"},
    "dry_allowed_length": {"type": "integer"}, "dry_penalty_last_n": {"type": "integer"},
    "min_keep": {"type": "integer"},
    "max_tokens": {"type": "integer"}, "stop": {"type": "array", "items": {"type": "string"}},
    "logit_bias": {"type": "array", "items": {"type": "object", "required": ["token", "bias"],
      "properties": {"token": {"type": "integer"},
        "bias": {"type": ["number", "null"], "description": "Null: never."}}}},
    "ignore_eos": {"type": "boolean"}, "stream": {"type": "boolean"},
    "n_probs": {"type": "integer"}}})"},

    {"LlamaAnswer", R"({
  "type": "object",
  "required": ["index", "content", "tokens", "stop", "model", "tokens_predicted",
    "tokens_evaluated", "generation_settings", "prompt", "truncated", "stop_type",
    "stopping_word", "tokens_cached", "timings"],
  "properties": {
    "index": {"type": "integer"}, "content": {"type": "string"},
    "tokens": {"$ref": "#/components/schemas/LlamaTokens"}, "id_slot": {"type": "integer"},
    "stop": {"const": true}, "model": {"type": "string"},
    "tokens_predicted": {"type": "integer"}, "tokens_evaluated": {"type": "integer"},
    "generation_settings": {"$ref": "#/components/schemas/GenerationSettings"},
    "prompt": {"type": "string"}, "has_new_line": {"type": "boolean"},
    "truncated": {"type": "boolean"}, "stop_type": {"enum": ["eos", "limit", "word"]},
    "stopping_word": {"type": "string"}, "tokens_cached": {"type": "integer"},
    "completion_probabilities": {"type": "array",
      "items": {"$ref": "#/components/schemas/LlamaProbability"}},
    "timings": {"$ref": "#/components/schemas/Timings"}}})"},

    {"LlamaAnswers", R"({"anyOf": [
  {"$ref": "#/components/schemas/LlamaAnswer"},
  {"type": "array", "description": "Of several prompts, or with n_cmpl.",
    "items": {"$ref": "#/components/schemas/LlamaAnswer"}}]})"},

    {"LlamaPart", R"({
  "type": "object",
  "required": ["index", "content", "tokens", "stop", "tokens_predicted", "tokens_evaluated"],
  "properties": {
    "index": {"type": "integer"}, "content": {"type": "string"},
    "tokens": {"$ref": "#/components/schemas/LlamaTokens"}, "id_slot": {"type": "integer"},
    "stop": {"const": false}, "tokens_predicted": {"type": "integer"},
    "tokens_evaluated": {"type": "integer"},
    "completion_probabilities": {"type": "array",
      "items": {"$ref": "#/components/schemas/LlamaProbability"}},
    "timings": {"$ref": "#/components/schemas/Timings"},
    "prompt_progress": {"$ref": "#/components/schemas/PromptProgress"}}})"},

    {"LlamaEvent", R"({"anyOf": [
  {"$ref": "#/components/schemas/LlamaPart"}, {"$ref": "#/components/schemas/LlamaAnswer"}]})"},
});

}  // namespace

std::span<const Schema> llama_schemas() { return kSchemas; }

}  // namespace weir::api::reference
