// /v1/messages: what Anthropic's clients send and read.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kSchemas = std::to_array<Schema>({
    {"MessageError", R"({
  "type": "object", "required": ["type", "error"], "properties": {
    "type": {"const": "error"},
    "error": {"type": "object", "required": ["type", "message"], "properties": {
      "type": {"enum": ["invalid_request_error", "authentication_error", "permission_error",
        "not_found_error", "request_too_large", "rate_limit_error", "timeout_error",
        "overloaded_error", "api_error"]},
      "message": {"type": "string"}}},
    "request_id": {"type": "string"}}})"},

    {"TextBlock", R"({
  "type": "object", "required": ["type", "text"], "properties": {
    "type": {"const": "text"}, "text": {"type": "string"}}})"},

    {"ThinkingBlock", R"({
  "type": "object", "required": ["type", "thinking", "signature"], "properties": {
    "type": {"const": "thinking"}, "thinking": {"type": "string"},
    "signature": {"type": "string", "description": "Empty."}}})"},

    {"ToolUseBlock", R"({
  "type": "object", "required": ["type", "id", "name", "input"], "properties": {
    "type": {"const": "tool_use"}, "id": {"type": "string"}, "name": {"type": "string"},
    "input": {"type": "object", "additionalProperties": true}}})"},

    {"AnswerBlock", R"({"anyOf": [
  {"$ref": "#/components/schemas/TextBlock"},
  {"$ref": "#/components/schemas/ThinkingBlock"},
  {"$ref": "#/components/schemas/ToolUseBlock"}]})"},

    {"CacheControl", R"({"type": ["object", "null"], "additionalProperties": true})"},

    {"TextBlockParam", R"({
  "type": "object", "required": ["type", "text"], "properties": {
    "type": {"const": "text"}, "text": {"type": "string"},
    "cache_control": {"$ref": "#/components/schemas/CacheControl"}}})"},

    {"ImageBlockParam", R"({
  "type": "object", "required": ["type", "source"], "properties": {
    "type": {"const": "image"},
    "source": {"anyOf": [
      {"type": "object", "required": ["type", "media_type", "data"], "properties": {
        "type": {"const": "base64"}, "media_type": {"type": "string"},
        "data": {"type": "string"}}},
      {"type": "object", "required": ["type", "url"], "properties": {
        "type": {"const": "url"}, "url": {"type": "string"}}}]},
    "cache_control": {"$ref": "#/components/schemas/CacheControl"}}})"},

    {"DocumentBlockParam", R"({
  "type": "object", "required": ["type", "source"], "properties": {
    "type": {"const": "document"}, "title": {"type": ["string", "null"]},
    "context": {"type": ["string", "null"]},
    "source": {"anyOf": [
      {"type": "object", "required": ["type", "data"], "properties": {
        "type": {"const": "text"}, "media_type": {"const": "text/plain"},
        "data": {"type": "string"}}},
      {"type": "object", "required": ["type", "content"], "properties": {
        "type": {"const": "content"},
        "content": {"anyOf": [{"type": "string"},
          {"type": "array", "items": {"$ref": "#/components/schemas/TextBlockParam"}}]}}}]},
    "cache_control": {"$ref": "#/components/schemas/CacheControl"}}})"},

    {"SearchResultBlockParam", R"({
  "type": "object", "required": ["type", "title", "source", "content"], "properties": {
    "type": {"const": "search_result"}, "title": {"type": "string"},
    "source": {"type": "string"},
    "content": {"type": "array", "items": {"$ref": "#/components/schemas/TextBlockParam"}},
    "cache_control": {"$ref": "#/components/schemas/CacheControl"}}})"},

    {"ToolResultBlockParam", R"({
  "type": "object", "required": ["type", "tool_use_id"], "properties": {
    "type": {"const": "tool_result"}, "tool_use_id": {"type": "string"},
    "is_error": {"type": "boolean"},
    "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"anyOf": [
      {"$ref": "#/components/schemas/TextBlockParam"},
      {"$ref": "#/components/schemas/ImageBlockParam"},
      {"$ref": "#/components/schemas/DocumentBlockParam"},
      {"$ref": "#/components/schemas/SearchResultBlockParam"}]}}]},
    "cache_control": {"$ref": "#/components/schemas/CacheControl"}}})"},

    {"ToolUseBlockParam", R"({
  "type": "object", "required": ["type", "id", "name", "input"], "properties": {
    "type": {"const": "tool_use"}, "id": {"type": "string"}, "name": {"type": "string"},
    "input": {"type": "object", "additionalProperties": true},
    "cache_control": {"$ref": "#/components/schemas/CacheControl"}}})"},

    {"ThinkingBlockParam", R"({
  "type": "object", "required": ["type", "thinking"], "properties": {
    "type": {"const": "thinking"}, "thinking": {"type": "string"},
    "signature": {"type": "string"}}})"},

    {"MessageParam", R"({
  "type": "object", "required": ["role", "content"], "properties": {
    "role": {"enum": ["user", "assistant", "system"]},
    "content": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"anyOf": [
      {"$ref": "#/components/schemas/TextBlockParam"},
      {"$ref": "#/components/schemas/ImageBlockParam"},
      {"$ref": "#/components/schemas/DocumentBlockParam"},
      {"$ref": "#/components/schemas/SearchResultBlockParam"},
      {"$ref": "#/components/schemas/ToolResultBlockParam"},
      {"$ref": "#/components/schemas/ToolUseBlockParam"},
      {"$ref": "#/components/schemas/ThinkingBlockParam"}]}}]}}})"},

    {"MessageTool", R"({
  "type": "object", "required": ["name", "input_schema"], "properties": {
    "type": {"const": "custom"}, "name": {"type": "string"}, "description": {"type": "string"},
    "input_schema": {"$ref": "#/components/schemas/JsonSchema"}, "strict": {"type": "boolean"},
    "cache_control": {"$ref": "#/components/schemas/CacheControl"}}})"},

    {"MessageToolChoice", R"({
  "type": "object", "required": ["type"], "properties": {
    "type": {"enum": ["auto", "any", "tool", "none"]},
    "name": {"type": "string", "description": "Of type tool."},
    "disable_parallel_tool_use": {"type": "boolean"}}})"},

    {"Thinking", R"({
  "type": "object", "required": ["type"], "properties": {
    "type": {"enum": ["enabled", "disabled", "adaptive"]},
    "budget_tokens": {"type": "integer"}, "display": {"type": "string"}}})"},

    {"OutputFormat", R"({
  "type": "object", "required": ["type", "schema"], "properties": {
    "type": {"const": "json_schema"},
    "schema": {"$ref": "#/components/schemas/JsonSchema"}}})"},

    {"OutputConfig", R"({
  "type": "object", "properties": {
    "effort": {"type": "string"},
    "format": {"$ref": "#/components/schemas/OutputFormat"}}})"},

    {"MessageUsage", R"({
  "type": "object",
  "required": ["input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens",
    "output_tokens"],
  "properties": {
    "input_tokens": {"type": "integer", "description": "Without those from the cache."},
    "cache_creation_input_tokens": {"type": "integer"},
    "cache_read_input_tokens": {"type": "integer"}, "output_tokens": {"type": "integer"},
    "output_tokens_details": {"type": "object", "required": ["thinking_tokens"],
      "properties": {"thinking_tokens": {"type": "integer"}}}}})"},

    {"StopReason", R"({"enum": ["end_turn", "max_tokens", "stop_sequence", "tool_use", null]})"},

    {"Message", R"({
  "type": "object",
  "required": ["id", "type", "role", "model", "content", "stop_reason", "stop_sequence", "usage"],
  "properties": {
    "id": {"type": "string"}, "type": {"const": "message"}, "role": {"const": "assistant"},
    "model": {"type": "string"},
    "content": {"type": "array", "items": {"$ref": "#/components/schemas/AnswerBlock"}},
    "stop_reason": {"$ref": "#/components/schemas/StopReason"},
    "stop_sequence": {"type": ["string", "null"]},
    "usage": {"$ref": "#/components/schemas/MessageUsage"}}})"},

    {"MessageStartEvent", R"({
  "type": "object", "required": ["type", "message"], "properties": {
    "type": {"const": "message_start"},
    "message": {"$ref": "#/components/schemas/Message"}}})"},

    {"BlockStartEvent", R"({
  "type": "object", "required": ["type", "index", "content_block"], "properties": {
    "type": {"const": "content_block_start"}, "index": {"type": "integer"},
    "content_block": {"$ref": "#/components/schemas/AnswerBlock"}}})"},

    {"BlockDeltaEvent", R"({
  "type": "object", "required": ["type", "index", "delta"], "properties": {
    "type": {"const": "content_block_delta"}, "index": {"type": "integer"},
    "delta": {"anyOf": [
      {"type": "object", "required": ["type", "text"], "properties": {
        "type": {"const": "text_delta"}, "text": {"type": "string"}}},
      {"type": "object", "required": ["type", "thinking"], "properties": {
        "type": {"const": "thinking_delta"}, "thinking": {"type": "string"}}},
      {"type": "object", "required": ["type", "signature"], "properties": {
        "type": {"const": "signature_delta"}, "signature": {"type": "string"}}},
      {"type": "object", "required": ["type", "partial_json"], "properties": {
        "type": {"const": "input_json_delta"}, "partial_json": {"type": "string"}}}]}}})"},

    {"BlockStopEvent", R"({
  "type": "object", "required": ["type", "index"], "properties": {
    "type": {"const": "content_block_stop"}, "index": {"type": "integer"}}})"},

    {"MessageDeltaEvent", R"({
  "type": "object", "required": ["type", "delta", "usage"], "properties": {
    "type": {"const": "message_delta"},
    "delta": {"type": "object", "required": ["stop_reason", "stop_sequence"], "properties": {
      "stop_reason": {"$ref": "#/components/schemas/StopReason"},
      "stop_sequence": {"type": ["string", "null"]}}},
    "usage": {"$ref": "#/components/schemas/MessageUsage"}}})"},

    {"MessageStopEvent", R"({
  "type": "object", "required": ["type"], "properties": {
    "type": {"enum": ["message_stop", "ping"]}}})"},

    {"MessageStreamEvent", R"({"anyOf": [
  {"$ref": "#/components/schemas/MessageStartEvent"},
  {"$ref": "#/components/schemas/BlockStartEvent"},
  {"$ref": "#/components/schemas/BlockDeltaEvent"},
  {"$ref": "#/components/schemas/BlockStopEvent"},
  {"$ref": "#/components/schemas/MessageDeltaEvent"},
  {"$ref": "#/components/schemas/MessageStopEvent"},
  {"$ref": "#/components/schemas/MessageError"}]})"},

    {"MessageTokenCount", R"({
  "type": "object", "required": ["input_tokens"], "properties": {
    "input_tokens": {"type": "integer"}}})"},
});

}  // namespace

std::span<const Schema> message_schemas() { return kSchemas; }

}  // namespace weir::api::reference
