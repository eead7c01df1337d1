// /v1/responses: items in and out, the response, the events of its stream.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kSchemas = std::to_array<Schema>({
    {"FunctionTool", R"({
  "type": "object", "required": ["type", "name"], "properties": {
    "type": {"const": "function"}, "name": {"type": "string"}, "description": {"type": "string"},
    "parameters": {"anyOf": [{"$ref": "#/components/schemas/JsonSchema"}, {"type": "null"}]},
    "strict": {"type": ["boolean", "null"]}}})"},

    {"CustomTool", R"({
  "type": "object", "required": ["type", "name"], "description": "Its input is a text.",
  "properties": {
    "type": {"const": "custom"}, "name": {"type": "string"}, "description": {"type": "string"},
    "format": {"anyOf": [
      {"type": "object", "required": ["type"], "properties": {"type": {"const": "text"}}},
      {"type": "object", "required": ["type", "syntax", "definition"], "properties": {
        "type": {"const": "grammar"}, "syntax": {"enum": ["lark", "regex"]},
        "definition": {"type": "string"}}},
      {"type": "null"}]}}})"},

    {"NamespaceTool", R"({
  "type": "object", "required": ["type", "name", "tools"], "properties": {
    "type": {"const": "namespace"}, "name": {"type": "string"},
    "description": {"type": "string"},
    "tools": {"type": "array", "items": {"anyOf": [
      {"$ref": "#/components/schemas/FunctionTool"},
      {"$ref": "#/components/schemas/CustomTool"}]}}}})"},

    {"VendorTool", R"({
  "type": "object", "required": ["type"], "additionalProperties": true,
  "description": "Run by OpenAI's servers: left out here.",
  "properties": {"type": {"type": "string",
    "not": {"enum": ["function", "custom", "namespace"]}}}})"},

    {"ResponseTool", R"({"anyOf": [
  {"$ref": "#/components/schemas/FunctionTool"},
  {"$ref": "#/components/schemas/CustomTool"},
  {"$ref": "#/components/schemas/NamespaceTool"},
  {"$ref": "#/components/schemas/VendorTool"}]})"},

    {"ResponseNamedTool", R"({
  "type": "object", "required": ["type", "name"], "properties": {
    "type": {"enum": ["function", "custom", "namespace"]}, "name": {"type": "string"},
    "namespace": {"type": "string"}}})"},

    {"ResponseToolChoice", R"({"anyOf": [
  {"enum": ["none", "auto", "required"]},
  {"$ref": "#/components/schemas/ResponseNamedTool"},
  {"type": "object", "required": ["type", "mode", "tools"], "properties": {
    "type": {"const": "allowed_tools"}, "mode": {"enum": ["auto", "required"]},
    "tools": {"type": "array", "minItems": 1,
      "items": {"$ref": "#/components/schemas/ResponseNamedTool"}}}}]})"},

    {"ResponseText", R"({
  "type": "object", "properties": {
    "verbosity": {"type": ["string", "null"]},
    "format": {"anyOf": [
      {"type": "object", "required": ["type"],
        "properties": {"type": {"enum": ["text", "json_object"]}}},
      {"type": "object", "required": ["type", "schema"], "properties": {
        "type": {"const": "json_schema"}, "name": {"type": "string"},
        "description": {"type": "string"}, "schema": {"$ref": "#/components/schemas/JsonSchema"},
        "strict": {"type": ["boolean", "null"]}}}]}}})"},

    {"ReasoningOptions", R"({
  "type": "object", "properties": {
    "effort": {"type": ["string", "null"]}, "summary": {"type": ["string", "null"]},
    "generate_summary": {"type": ["string", "null"]}}})"},

    {"OutputText", R"({
  "type": "object", "required": ["type", "text", "annotations", "logprobs"], "properties": {
    "type": {"const": "output_text"}, "text": {"type": "string"},
    "annotations": {"type": "array", "items": {}},
    "logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/TokenLogprob"}}}})"},

    {"ReasoningText", R"({
  "type": "object", "required": ["type", "text"], "properties": {
    "type": {"const": "reasoning_text"}, "text": {"type": "string"}}})"},

    {"SummaryText", R"({
  "type": "object", "required": ["type", "text"], "properties": {
    "type": {"const": "summary_text"}, "text": {"type": "string"}}})"},

    {"ItemStatus", R"({"enum": ["in_progress", "completed", "incomplete", "failed"]})"},

    {"OutputMessage", R"({
  "type": "object", "required": ["id", "type", "role", "status", "content"], "properties": {
    "id": {"type": "string"}, "type": {"const": "message"}, "role": {"const": "assistant"},
    "status": {"$ref": "#/components/schemas/ItemStatus"},
    "content": {"type": "array", "items": {"$ref": "#/components/schemas/OutputText"}}}})"},

    {"FunctionCallItem", R"({
  "type": "object", "required": ["id", "type", "status", "call_id", "name", "arguments"],
  "properties": {
    "id": {"type": "string"}, "type": {"const": "function_call"},
    "status": {"$ref": "#/components/schemas/ItemStatus"}, "call_id": {"type": "string"},
    "name": {"type": "string"}, "namespace": {"type": "string"},
    "arguments": {"type": "string", "description": "JSON."}}})"},

    {"CustomCallItem", R"({
  "type": "object", "required": ["id", "type", "status", "call_id", "name", "input"],
  "properties": {
    "id": {"type": "string"}, "type": {"const": "custom_tool_call"},
    "status": {"$ref": "#/components/schemas/ItemStatus"}, "call_id": {"type": "string"},
    "name": {"type": "string"}, "namespace": {"type": "string"},
    "input": {"type": "string"}}})"},

    {"ReasoningItem", R"({
  "type": "object", "required": ["id", "type", "status", "summary", "content"], "properties": {
    "id": {"type": "string"}, "type": {"const": "reasoning"},
    "status": {"$ref": "#/components/schemas/ItemStatus"},
    "summary": {"type": "array", "items": {"$ref": "#/components/schemas/SummaryText"}},
    "content": {"type": "array", "items": {"$ref": "#/components/schemas/ReasoningText"}},
    "encrypted_content": {"type": "null"}}})"},

    {"OutputItem", R"({"anyOf": [
  {"$ref": "#/components/schemas/OutputMessage"},
  {"$ref": "#/components/schemas/FunctionCallItem"},
  {"$ref": "#/components/schemas/CustomCallItem"},
  {"$ref": "#/components/schemas/ReasoningItem"}]})"},

    {"InputMessage", R"({
  "type": "object", "required": ["role", "content"], "properties": {
    "id": {"type": "string"}, "type": {"const": "message"}, "status": {"type": "string"},
    "role": {"enum": ["user", "assistant", "system", "developer"]},
    "content": {"anyOf": [{"type": "string"},
      {"type": "array", "items": {"$ref": "#/components/schemas/ContentPart"}}]}}})"},

    {"InputFunctionCall", R"({
  "type": "object", "required": ["type", "call_id", "name", "arguments"], "properties": {
    "id": {"type": "string"}, "type": {"const": "function_call"}, "status": {"type": "string"},
    "call_id": {"type": "string"}, "name": {"type": "string"}, "namespace": {"type": "string"},
    "arguments": {"type": "string", "description": "JSON."}}})"},

    {"InputCustomCall", R"({
  "type": "object", "required": ["type", "call_id", "name", "input"], "properties": {
    "id": {"type": "string"}, "type": {"const": "custom_tool_call"}, "status": {"type": "string"},
    "call_id": {"type": "string"}, "name": {"type": "string"}, "namespace": {"type": "string"},
    "input": {"type": "string"}}})"},

    {"AdditionalTools", R"({
  "type": "object", "required": ["type", "tools"], "properties": {
    "id": {"type": "string"}, "type": {"const": "additional_tools"}, "role": {"type": "string"},
    "tools": {"type": "array", "items": {"$ref": "#/components/schemas/ResponseTool"}}}})"},

    {"FunctionCallOutput", R"({
  "type": "object", "required": ["type", "call_id", "output"], "properties": {
    "id": {"type": "string"},
    "type": {"enum": ["function_call_output", "custom_tool_call_output"]},
    "status": {"type": "string"}, "call_id": {"type": "string"},
    "output": {"anyOf": [{"type": "string"},
      {"type": "array", "items": {"$ref": "#/components/schemas/ContentPart"}}]}}})"},

    {"InputReasoning", R"({
  "type": "object", "required": ["type"], "properties": {
    "id": {"type": "string"}, "type": {"const": "reasoning"}, "status": {"type": "string"},
    "summary": {"type": "array", "items": {"$ref": "#/components/schemas/SummaryText"}},
    "content": {"type": "array", "items": {"$ref": "#/components/schemas/ReasoningText"}},
    "encrypted_content": {"type": ["string", "null"]}}})"},

    {"ItemReference", R"({
  "type": "object", "required": ["type", "id"], "properties": {
    "type": {"const": "item_reference"}, "id": {"type": "string"}}})"},

    {"InputItem", R"({"anyOf": [
  {"$ref": "#/components/schemas/InputMessage"},
  {"$ref": "#/components/schemas/InputFunctionCall"},
  {"$ref": "#/components/schemas/InputCustomCall"},
  {"$ref": "#/components/schemas/AdditionalTools"},
  {"$ref": "#/components/schemas/FunctionCallOutput"},
  {"$ref": "#/components/schemas/InputReasoning"},
  {"$ref": "#/components/schemas/ItemReference"}]})"},

    {"ResponseUsage", R"({
  "type": "object",
  "required": ["input_tokens", "input_tokens_details", "output_tokens", "output_tokens_details",
    "total_tokens"],
  "properties": {
    "input_tokens": {"type": "integer"},
    "input_tokens_details": {"type": "object", "required": ["cached_tokens"],
      "properties": {"cached_tokens": {"type": "integer"},
        "image_tokens": {"type": "integer", "description": "Where the input has images."},
        "audio_tokens": {"type": "integer", "description": "Where the input has sounds."}}},
    "output_tokens": {"type": "integer"},
    "output_tokens_details": {"type": "object", "required": ["reasoning_tokens"],
      "properties": {"reasoning_tokens": {"type": "integer"}}},
    "total_tokens": {"type": "integer"}}})"},

    {"Response", R"({
  "type": "object",
  "required": ["id", "object", "created_at", "status", "error", "incomplete_details", "model",
    "output", "usage", "instructions", "metadata", "parallel_tool_calls", "previous_response_id",
    "store", "temperature", "text", "tool_choice", "tools", "top_p", "truncation"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "response"}, "created_at": {"type": "integer"},
    "status": {"enum": ["in_progress", "completed", "incomplete", "failed"]},
    "background": {"type": "boolean"},
    "error": {"type": ["object", "null"], "required": ["code", "message"],
      "properties": {"code": {"type": "string"}, "message": {"type": "string"}}},
    "incomplete_details": {"type": ["object", "null"], "required": ["reason"],
      "properties": {"reason": {"const": "max_output_tokens"}}},
    "model": {"type": "string"}, "instructions": {"type": ["string", "null"]},
    "max_output_tokens": {"type": ["integer", "null"]},
    "max_tool_calls": {"type": ["integer", "null"]},
    "metadata": {"type": ["object", "null"], "additionalProperties": {"type": "string"}},
    "parallel_tool_calls": {"type": "boolean"},
    "previous_response_id": {"type": ["string", "null"]},
    "prompt_cache_key": {"type": ["string", "null"]},
    "reasoning": {"anyOf": [{"$ref": "#/components/schemas/ReasoningOptions"},
      {"type": "null"}]},
    "safety_identifier": {"type": ["string", "null"]}, "service_tier": {"type": "string"},
    "store": {"type": "boolean"}, "temperature": {"type": "number"},
    "text": {"$ref": "#/components/schemas/ResponseText"},
    "tool_choice": {"$ref": "#/components/schemas/ResponseToolChoice"},
    "tools": {"type": "array", "items": {"$ref": "#/components/schemas/ResponseTool"}},
    "top_logprobs": {"type": "integer"}, "top_p": {"type": "number"},
    "truncation": {"enum": ["auto", "disabled"]}, "user": {"type": ["string", "null"]},
    "output": {"type": "array", "items": {"$ref": "#/components/schemas/OutputItem"}},
    "usage": {"anyOf": [{"$ref": "#/components/schemas/ResponseUsage"}, {"type": "null"}]}}})"},

    {"ResponseTokenCount", R"({
  "type": "object", "required": ["object", "input_tokens"], "properties": {
    "object": {"const": "response.input_tokens"}, "input_tokens": {"type": "integer"}}})"},

    {"DeletedResponse", R"({
  "type": "object", "required": ["id", "object", "deleted"], "properties": {
    "id": {"type": "string"}, "object": {"const": "response"}, "deleted": {"const": true}}})"},

    {"InputItemList", R"({
  "type": "object", "required": ["object", "data", "first_id", "last_id", "has_more"],
  "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "items": {"$ref": "#/components/schemas/InputItem"}},
    "first_id": {"type": ["string", "null"]}, "last_id": {"type": ["string", "null"]},
    "has_more": {"type": "boolean"}}})"},

    {"ResponseStateEvent", R"({
  "type": "object", "required": ["type", "sequence_number", "response"], "properties": {
    "type": {"enum": ["response.created", "response.in_progress", "response.completed",
      "response.incomplete", "response.failed"]},
    "sequence_number": {"type": "integer"},
    "response": {"$ref": "#/components/schemas/Response"}}})"},

    {"ResponseItemEvent", R"({
  "type": "object", "required": ["type", "sequence_number", "output_index", "item"],
  "properties": {
    "type": {"enum": ["response.output_item.added", "response.output_item.done"]},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item": {"$ref": "#/components/schemas/OutputItem"}}})"},

    {"ResponsePartEvent", R"({
  "type": "object",
  "required": ["type", "sequence_number", "output_index", "item_id", "content_index", "part"],
  "properties": {
    "type": {"enum": ["response.content_part.added", "response.content_part.done"]},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "content_index": {"type": "integer"},
    "part": {"anyOf": [{"$ref": "#/components/schemas/OutputText"},
      {"$ref": "#/components/schemas/ReasoningText"}]}}})"},

    {"ResponseTextDeltaEvent", R"({
  "type": "object",
  "required": ["type", "sequence_number", "output_index", "item_id", "content_index", "delta",
    "logprobs"],
  "properties": {
    "type": {"const": "response.output_text.delta"},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "content_index": {"type": "integer"},
    "delta": {"type": "string"},
    "logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/TokenLogprob"}}}})"},

    {"ResponseTextDoneEvent", R"({
  "type": "object",
  "required": ["type", "sequence_number", "output_index", "item_id", "content_index", "text",
    "logprobs"],
  "properties": {
    "type": {"const": "response.output_text.done"},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "content_index": {"type": "integer"},
    "text": {"type": "string"},
    "logprobs": {"type": "array", "items": {"$ref": "#/components/schemas/TokenLogprob"}}}})"},

    {"ResponseReasoningEvent", R"({
  "type": "object",
  "required": ["type", "sequence_number", "output_index", "item_id"],
  "properties": {
    "type": {"enum": ["response.reasoning_text.delta", "response.reasoning_text.done",
      "response.reasoning_summary_text.delta", "response.reasoning_summary_text.done"]},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "content_index": {"type": "integer"},
    "summary_index": {"type": "integer"},
    "delta": {"type": "string"}, "text": {"type": "string"}}})"},

    {"ResponseSummaryPartEvent", R"({
  "type": "object",
  "required": ["type", "sequence_number", "output_index", "item_id", "summary_index", "part"],
  "properties": {
    "type": {"enum": ["response.reasoning_summary_part.added",
      "response.reasoning_summary_part.done"]},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "summary_index": {"type": "integer"},
    "part": {"$ref": "#/components/schemas/SummaryText"}}})"},

    {"ResponseArgumentsDeltaEvent", R"({
  "type": "object", "required": ["type", "sequence_number", "output_index", "item_id", "delta"],
  "properties": {
    "type": {"const": "response.function_call_arguments.delta"},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "delta": {"type": "string"}}})"},

    {"ResponseArgumentsDoneEvent", R"({
  "type": "object",
  "required": ["type", "sequence_number", "output_index", "item_id", "name", "arguments"],
  "properties": {
    "type": {"const": "response.function_call_arguments.done"},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "name": {"type": "string"},
    "arguments": {"type": "string"}}})"},

    {"ResponseInputDeltaEvent", R"({
  "type": "object", "required": ["type", "sequence_number", "output_index", "item_id", "delta"],
  "properties": {
    "type": {"const": "response.custom_tool_call_input.delta"},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "delta": {"type": "string"}}})"},

    {"ResponseInputDoneEvent", R"({
  "type": "object", "required": ["type", "sequence_number", "output_index", "item_id", "input"],
  "properties": {
    "type": {"const": "response.custom_tool_call_input.done"},
    "sequence_number": {"type": "integer"}, "output_index": {"type": "integer"},
    "item_id": {"type": "string"}, "input": {"type": "string"}}})"},

    {"ResponseErrorEvent", R"({
  "type": "object", "required": ["type", "sequence_number", "code", "message", "param", "error"],
  "properties": {
    "type": {"const": "error"}, "sequence_number": {"type": "integer"},
    "code": {"type": "string"}, "message": {"type": "string"}, "param": {"type": "null"},
    "error": {"type": "object", "description": "As in Error.",
      "required": ["message", "type", "param", "code"], "properties": {
        "message": {"type": "string"}, "type": {"type": "string"},
        "param": {"type": ["string", "null"]}, "code": {"type": ["string", "null"]}}}}})"},

    {"ResponseStreamEvent", R"({"anyOf": [
  {"$ref": "#/components/schemas/ResponseStateEvent"},
  {"$ref": "#/components/schemas/ResponseItemEvent"},
  {"$ref": "#/components/schemas/ResponsePartEvent"},
  {"$ref": "#/components/schemas/ResponseTextDeltaEvent"},
  {"$ref": "#/components/schemas/ResponseTextDoneEvent"},
  {"$ref": "#/components/schemas/ResponseReasoningEvent"},
  {"$ref": "#/components/schemas/ResponseSummaryPartEvent"},
  {"$ref": "#/components/schemas/ResponseArgumentsDeltaEvent"},
  {"$ref": "#/components/schemas/ResponseArgumentsDoneEvent"},
  {"$ref": "#/components/schemas/ResponseInputDeltaEvent"},
  {"$ref": "#/components/schemas/ResponseInputDoneEvent"},
  {"$ref": "#/components/schemas/ResponseErrorEvent"}]})"},
});

}  // namespace

std::span<const Schema> response_schemas() { return kSchemas; }

}  // namespace weir::api::reference
