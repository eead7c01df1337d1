// Vectors, scores, tokens, models, and what the server says about itself.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kSchemas = std::to_array<Schema>({
    {"TextUsage", R"({
  "type": "object", "required": ["prompt_tokens", "total_tokens"], "properties": {
    "prompt_tokens": {"type": "integer"}, "total_tokens": {"type": "integer"}}})"},

    {"Embedding", R"({
  "type": "object", "required": ["object", "index", "embedding"], "properties": {
    "object": {"const": "embedding"}, "index": {"type": "integer"},
    "embedding": {"anyOf": [{"type": "array", "items": {"type": "number"}},
      {"type": "string", "description": "base64 of float32, little-endian."}]}}})"},

    {"EmbeddingList", R"({
  "type": "object", "required": ["object", "data", "model", "usage"], "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "items": {"$ref": "#/components/schemas/Embedding"}},
    "model": {"type": "string"}, "usage": {"$ref": "#/components/schemas/TextUsage"}}})"},

    {"Document", R"({"anyOf": [
  {"type": "string"},
  {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}}]})"},

    {"RerankResult", R"({
  "type": "object", "required": ["index", "relevance_score"], "properties": {
    "index": {"type": "integer", "description": "Of the document in the request."},
    "relevance_score": {"type": "number",
      "description": "From 0 to 1; with raw_scores the difference of two logits."},
    "document": {"type": "object", "required": ["text"],
      "properties": {"text": {"type": "string"}}}}})"},

    {"RerankList", R"({
  "type": "object", "required": ["id", "object", "model", "results", "usage"], "properties": {
    "id": {"type": "string"}, "object": {"const": "list"}, "model": {"type": "string"},
    "results": {"type": "array", "description": "The best first.",
      "items": {"$ref": "#/components/schemas/RerankResult"}},
    "usage": {"$ref": "#/components/schemas/TextUsage"}}})"},

    {"TeiRank", R"({
  "type": "object", "required": ["index", "score"], "properties": {
    "index": {"type": "integer", "description": "Of the text in the request."},
    "score": {"type": "number"}, "text": {"type": "string"}}})"},

    {"RerankAnswer", R"({"anyOf": [
  {"$ref": "#/components/schemas/RerankList"},
  {"type": "array", "description": "Of a request with texts; the best first.",
    "items": {"$ref": "#/components/schemas/TeiRank"}}]})"},

    {"CohereRerankAnswer", R"({
  "type": "object", "required": ["id", "results", "meta"], "properties": {
    "id": {"type": "string"},
    "results": {"type": "array", "description": "The best first.",
      "items": {"$ref": "#/components/schemas/RerankResult"}},
    "meta": {"type": "object", "required": ["api_version", "billed_units"], "properties": {
      "api_version": {"type": "object", "properties": {
        "version": {"const": "2"}, "is_experimental": {"type": "boolean"}}},
      "billed_units": {"type": "object", "properties": {
        "search_units": {"type": "integer"}}}}}}})"},

    {"Score", R"({
  "type": "object", "required": ["object", "index", "score"], "properties": {
    "object": {"const": "score"}, "index": {"type": "integer"},
    "score": {"type": "number", "minimum": 0, "maximum": 1}}})"},

    {"ScoreList", R"({
  "type": "object", "required": ["id", "object", "created", "model", "data", "usage"],
  "properties": {
    "id": {"type": "string"}, "object": {"const": "list"}, "created": {"type": "integer"},
    "model": {"type": "string"},
    "data": {"type": "array", "items": {"$ref": "#/components/schemas/Score"}},
    "usage": {"$ref": "#/components/schemas/TextUsage"}}})"},

    {"DashboardQuantiles", R"({"anyOf": [{"type": "null"},
  {"type": "array", "description": "Half of them took no longer, 95 % of them no longer.",
    "items": {"type": "number"}, "minItems": 2, "maxItems": 2}]})"},

    {"DashboardModel", R"({
  "type": "object", "required": ["id", "state", "running", "waiting"], "properties": {
    "id": {"type": "string"}, "state": {"enum": ["ready", "draining"]},
    "running": {"type": "integer"}, "waiting": {"type": "integer"},
    "oldest_wait_s": {"type": "number"}, "output_tok_s": {"type": "number"},
    "prompt_tok_s": {"type": "number"}, "cached_share": {"type": ["number", "null"]},
    "kv_use": {"type": "number"}, "kv_bytes": {"type": "integer"},
    "weight_bytes": {"type": "integer"},
    "experts": {"type": "object", "description": "Of a model whose experts are on disk.",
      "properties": {"hit": {"type": ["number", "null"], "description": "Found in memory, 0 to 1."},
        "gbps": {"type": "number"}, "stall_ms_token": {"type": ["number", "null"]}}},
    "limits": {"type": "object", "properties": {
      "running": {"type": "integer"}, "open": {"type": "integer"},
      "context": {"type": "integer"}}},
    "ttft_ms": {"$ref": "#/components/schemas/DashboardQuantiles"},
    "gap_ms": {"$ref": "#/components/schemas/DashboardQuantiles"},
    "step_ms": {"$ref": "#/components/schemas/DashboardQuantiles"}}})"},

    {"DashboardFigures", R"({
  "type": "object", "required": ["t", "uptime_s", "rss", "models", "http"], "properties": {
    "t": {"type": "integer"}, "uptime_s": {"type": "integer"}, "rss": {"type": "integer"},
    "limit": {"type": "integer", "description": "What the process may have of memory, in bytes."},
    "models": {"type": "array", "description": "Those that are loaded.",
      "items": {"$ref": "#/components/schemas/DashboardModel"}},
    "pulls": {"type": "array", "items": {"type": "object", "properties": {
      "model": {"type": "string"}, "bytes": {"type": "integer"},
      "bytes_done": {"type": "integer"}}}},
    "http": {"type": "object", "properties": {
      "open": {"type": "integer"}, "c2xx": {"type": "integer"}, "c4xx": {"type": "integer"},
      "c5xx": {"type": "integer"}}}}})"},

    {"Model", R"({
  "type": "object", "required": ["id", "object", "created", "owned_by"], "properties": {
    "id": {"type": "string"}, "object": {"const": "model"}, "created": {"type": "integer"},
    "owned_by": {"type": "string"}, "max_model_len": {"type": "integer"},
    "aliases": {"type": "array", "items": {"type": "string"}},
    "status": {"type": "object", "required": ["value"], "properties": {
      "value": {"type": "string", "enum": ["unloaded", "downloading", "loading", "loaded"]},
      "progress": {"type": "integer", "description": "Per cent."},
      "failed": {"type": "boolean"}, "message": {"type": "string"}}},
    "architecture": {"type": "object", "properties": {
      "input_modalities": {"type": "array", "items": {"type": "string"}},
      "output_modalities": {"type": "array", "items": {"type": "string"}}}},
    "pinned": {"type": "boolean"},
    "expires_at": {"type": "integer",
      "description": "When it is unloaded if it is not used, in seconds since 1970."},
    "root": {"type": "string",
      "description": "Of an alias: the model's id; of an adapter: where it is."},
    "parent": {"type": "string", "description": "Of an adapter: the model that it is for."},
    "meta": {"type": "object", "properties": {
      "n_vocab": {"type": "integer"}, "n_ctx": {"type": "integer"},
      "n_ctx_train": {"type": "integer"}, "n_embd": {"type": "integer"},
      "n_params": {"type": "integer"}, "size": {"type": "integer"},
      "ftype": {"type": "string"}}}}})"},

    {"ModelList", R"({
  "type": "object", "required": ["object", "data"], "properties": {
    "object": {"const": "list"},
    "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}}}})"},

    {"Adapter", R"({
  "type": "object", "required": ["id", "path", "scale"], "properties": {
    "id": {"type": "integer"}, "name": {"type": "string"}, "path": {"type": "string"},
    "scale": {"type": "number", "description": "Where a request asks for none."}}})"},

    {"AdapterList", R"({
  "type": "array", "items": {"$ref": "#/components/schemas/Adapter"}})"},

    {"Success", R"({
  "type": "object", "required": ["success"], "properties": {"success": {"const": true}}})"},

    {"Fit", R"({
  "type": "object", "required": ["verdict", "text"], "properties": {
    "verdict": {"type": "string",
      "enum": ["fits", "short", "streams", "with less", "no", "unknown"]},
    "text": {"type": "string", "description": "The same in a sentence."},
    "reason": {"type": "string", "description": "Of unknown: what is not read."},
    "options": {"type": "string", "description": "Of the command line with which it runs so."},
    "context": {"type": "integer", "description": "Tokens of the longest sequence."},
    "context_max": {"type": "integer", "description": "The model's own."},
    "needed": {"type": "integer", "description": "Bytes, as are the others."},
    "limit": {"type": "integer"}, "limit_from": {"type": "string"},
    "lacks": {"type": "integer"}, "expert_memory": {"type": "integer"},
    "experts": {"type": "integer"}}})"},

    {"SpeedRange", R"({
  "type": "object", "required": ["low", "high"], "properties": {
    "low": {"type": "number"}, "high": {"type": "number"}}})"},

    {"FoundModel", R"({
  "type": "object", "required": ["id", "downloads", "likes", "gated", "private"], "properties": {
    "id": {"type": "string"}, "downloads": {"type": "integer"}, "likes": {"type": "integer"},
    "last_modified": {"type": "string"}, "pipeline_tag": {"type": "string"},
    "license": {"type": "string"}, "private": {"type": "boolean"},
    "gated": {"type": "boolean", "description": "Its terms have to be accepted on its page."},
    "parameters": {"type": "integer"}, "format": {"type": "string"},
    "file_bytes": {"type": "integer"},
    "fit": {"$ref": "#/components/schemas/Fit"},
    "speed": {"type": "object", "description": "Tokens a second, expected.",
      "required": ["decode"], "properties": {
        "decode": {"$ref": "#/components/schemas/SpeedRange"},
        "prompt": {"$ref": "#/components/schemas/SpeedRange"}}}}})"},

    {"FoundModels", R"({
  "type": "object", "required": ["models", "next"], "properties": {
    "models": {"type": "array", "items": {"$ref": "#/components/schemas/FoundModel"}},
    "next": {"type": ["string", "null"], "description": "The cursor of the next page."}}})"},

    {"TokenPiece", R"({
  "type": "object", "required": ["id", "piece"], "properties": {
    "id": {"type": "integer"},
    "piece": {"anyOf": [{"type": "string"},
      {"type": "array", "description": "Bytes that are no text.",
        "items": {"type": "integer"}}]}}})"},

    {"TokenList", R"({
  "type": "object", "required": ["count", "max_model_len", "tokens"], "properties": {
    "count": {"type": "integer"}, "max_model_len": {"type": "integer"},
    "tokens": {"anyOf": [{"type": "array", "items": {"type": "integer"}},
      {"type": "array", "items": {"$ref": "#/components/schemas/TokenPiece"}}]},
    "token_strs": {"type": "array", "items": {"type": "string"}}}})"},

    {"AppliedTemplate", R"({
  "type": "object", "required": ["prompt"], "properties": {"prompt": {"type": "string"}}})"},

    {"DetokenizedText", R"({
  "type": "object", "required": ["content", "prompt"], "properties": {
    "content": {"type": "string"},
    "prompt": {"type": "string", "description": "The same as content."}}})"},

    {"TokenizerInfo", R"({
  "type": "object", "required": ["bos_token", "eos_token", "pad_token", "chat_template"],
  "properties": {
    "bos_token": {"type": ["string", "null"]}, "eos_token": {"type": ["string", "null"]},
    "pad_token": {"type": ["string", "null"]},
    "chat_template": {"type": ["string", "null"], "description": "Jinja."}}})"},

    {"Health", R"({
  "type": "object", "required": ["status"], "properties": {"status": {"const": "ok"}}})"},

    {"Version", R"({
  "type": "object", "required": ["version", "commit"], "properties": {
    "version": {"type": "string"}, "commit": {"type": "string"}}})"},

    {"Props", R"({
  "type": "object", "required": ["default_generation_settings", "total_slots", "model_alias"],
  "properties": {
    "default_generation_settings": {"type": "object", "required": ["params", "n_ctx"],
      "properties": {
        "params": {"type": "object", "properties": {
          "temperature": {"type": "number"}, "top_k": {"type": "integer"},
          "top_p": {"type": "number"}, "min_p": {"type": "number"},
          "typical_p": {"type": "number"}, "top_n_sigma": {"type": "number"},
          "xtc_probability": {"type": "number"}, "xtc_threshold": {"type": "number"},
          "dynatemp_range": {"type": "number"}, "dynatemp_exponent": {"type": "number"},
          "repeat_penalty": {"type": "number"}, "repeat_last_n": {"type": "integer"},
          "presence_penalty": {"type": "number"}, "frequency_penalty": {"type": "number"},
          "dry_multiplier": {"type": "number"}, "dry_base": {"type": "number"},
          "dry_allowed_length": {"type": "integer"}, "dry_penalty_last_n": {"type": "integer"},
          "dry_sequence_breakers": {"type": "array", "items": {"type": "string"}},
          "n_predict": {"type": "integer"}}},
        "n_ctx": {"type": "integer"}}},
    "total_slots": {"type": "integer"}, "model_alias": {"type": "string"},
    "model_path": {"type": "string"}, "model_ftype": {"type": "string"},
    "modalities": {"type": "object", "properties": {"vision": {"type": "boolean"},
      "audio": {"type": "boolean"}, "video": {"type": "boolean"}}},
    "endpoint_slots": {"type": "boolean"}, "endpoint_props": {"type": "boolean"},
    "endpoint_metrics": {"type": "boolean"}, "chat_template": {"type": "string"},
    "bos_token": {"type": "string"}, "eos_token": {"type": "string"},
    "build_info": {"type": "string"}, "is_sleeping": {"type": "boolean"}}})"},

    {"Slot", R"({
  "type": "object", "required": ["id", "n_ctx", "is_processing"], "properties": {
    "id": {"type": "integer"}, "n_ctx": {"type": "integer"},
    "is_processing": {"type": "boolean"}, "id_task": {"type": "integer"},
    "priority": {"type": "integer"}, "n_prompt_tokens": {"type": "integer"},
    "age_seconds": {"type": "number"},
    "next_token": {"type": "object", "properties": {
      "has_next_token": {"type": "boolean"}, "n_decoded": {"type": "integer"},
      "n_remain": {"type": "integer"}}},
    "queue_position": {"type": "integer", "description": "Of a request that waits."}}})"},

    {"SlotList", R"({"type": "array", "items": {"$ref": "#/components/schemas/Slot"}})"},

    {"OpenApi", R"({
  "type": "object", "required": ["openapi", "info", "paths"], "additionalProperties": true,
  "properties": {
    "openapi": {"const": "3.1.0"},
    "info": {"type": "object", "additionalProperties": true},
    "paths": {"type": "object", "additionalProperties": true}}})"},
});

}  // namespace

std::span<const Schema> server_schemas() { return kSchemas; }

}  // namespace weir::api::reference
