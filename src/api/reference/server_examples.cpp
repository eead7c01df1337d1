// Models, and what the server says about itself.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kExamples = std::to_array<Example>({
    {"GET", "/v1/models", "The list", "", "",
     R"({
  "object": "list",
  "data": [
    {
      "id": "weir-tiny-moe", "object": "model", "created": 1795369334, "owned_by": "weir",
      "max_model_len": 2048, "status": {"value": "loaded"},
      "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]},
      "pinned": true,
      "meta": {
        "n_vocab": 8192, "n_ctx": 2048, "n_ctx_train": 2048, "n_embd": 256,
        "n_params": 28873984, "size": 17325056, "ftype": "4-bit g64 93 %, 8-bit g64 7 %"
      }
    }
  ]
})"},
    {"GET", "/v1/models/{id}", "The model", "weir-tiny-moe", "",
     R"({
  "id": "weir-tiny-moe", "object": "model", "created": 1795369334, "owned_by": "weir",
  "max_model_len": 2048, "status": {"value": "loaded"},
  "architecture": {"input_modalities": ["text"], "output_modalities": ["text"]}, "pinned": true,
  "meta": {
    "n_vocab": 8192, "n_ctx": 2048, "n_ctx_train": 2048, "n_embd": 256, "n_params": 28873984,
    "size": 17325056, "ftype": "4-bit g64 93 %, 8-bit g64 7 %"
  }
})"},
    // Of a server with --enable-lora.
    {"POST", "/v1/load_lora_adapter", "A folder below --lora-dir", "",
     R"({"lora_name": "sql", "lora_path": "sql-adapter"})",
     "Success: LoRA adapter 'sql' added successfully."},
    {"POST", "/v1/unload_lora_adapter", "It goes again", "", R"({"lora_name": "sql"})",
     "Success: LoRA adapter 'sql' removed successfully."},
    {"GET", "/lora-adapters", "One adapter, named by requests only", "", "",
     R"([{"id": 0, "name": "sql", "path": "sql-adapter", "scale": 0}])"},
    {"POST", "/lora-adapters", "Without a body: requests have no adapter unless they ask", "", "",
     R"({"success": true})"},
    {"GET", "/",
     "What Ollama's clients look for; browsers get a page, Accept: text/plain gets lines", "", "",
     "Ollama is running"},
    {"GET", "/models/search", "One of the catalogue", "", "",
     R"({
  "models": [
    {
      "id": "mlx-community/Qwen3-8B-4bit", "downloads": 31337, "likes": 12,
      "last_modified": "2025-04-28T20:34:06.000Z", "pipeline_tag": "text-generation",
      "license": "apache-2.0", "gated": false, "private": false, "format": "4-bit g64",
      "file_bytes": 4607731712,
      "fit": {
        "verdict": "fits",
        "text": "fits: needs 10.3 GiB of the 21.6 GiB that MemAvailable allows; contexts up to 40,960 tokens",
        "options": "", "context": 40960, "context_max": 40960, "needed": 11059593216,
        "limit": 23192823398, "limit_from": "MemAvailable"
      },
      "speed": {"decode": {"low": 4.2, "high": 7.2}, "prompt": {"low": 51, "high": 88}}
    }
  ],
  "next": null
})"},
    {"POST", "/models", "From the hub into the cache", "",
     R"({"model": "mlx-community/Qwen3-8B-4bit"})", R"({"success": true})"},
    {"DELETE", "/models", "Out of the cache again", "?model=mlx-community/Qwen3-8B-4bit", "",
     R"({"success": true})"},
    {"POST", "/models/load", "For ten minutes after its last use", "",
     R"({"model": "weir-tiny-moe", "keep_alive": "10m"})", R"({"success": true})"},
    // Of several models.
    {"POST", "/models/unload", "At once", "", R"({"model": "weir-tiny-moe"})",
     R"({"success": true})"},
    {"GET", "/models/sse", "A model is loaded", "", "",
     R"(data: {"model":"qwen","event":"model_status","data":{"value":"unloaded"}}

data: {"model":"qwen","event":"model_status","data":{"value":"loading","progress":48}}

data: {"model":"qwen","event":"model_status","data":{"value":"loaded"}})"},
    {"GET", "/health", "Alive", "", "", R"({"status": "ok"})"},
    {"GET", "/v1/health", "Alive", "", "", R"({"status": "ok"})"},
    {"GET", "/ready", "Ready", "", "", R"({"status": "ok"})"},
    {"GET", "/props", "The properties", "", "",
     R"({
  "default_generation_settings": {
    "params": {
      "temperature": 0.7, "top_k": 40, "top_p": 0.9, "min_p": 0.05, "typical_p": 1,
      "top_n_sigma": -1, "xtc_probability": 0, "xtc_threshold": 0.1, "dynatemp_range": 0,
      "dynatemp_exponent": 1, "repeat_penalty": 1.1, "repeat_last_n": -1, "presence_penalty": 0,
      "frequency_penalty": 0, "dry_multiplier": 0, "dry_base": 1.75, "dry_allowed_length": 2,
      "dry_penalty_last_n": 64, "dry_sequence_breakers": ["\n", ":", "\"", "*"], "n_predict": 2048
    },
    "n_ctx": 2048
  },
  "total_slots": 128, "model_alias": "weir-tiny-moe", "model_path": "weir-tiny-moe",
  "model_ftype": "4-bit g64 93 %, 8-bit g64 7 %",
  "modalities": {"vision": false, "audio": false, "video": false}, "endpoint_slots": true,
  "endpoint_props": false, "endpoint_metrics": true,
  "chat_template": "{% for message in messages %}...", "bos_token": "",
  "eos_token": "<|im_end|>", "build_info": "weir-0.1.0", "is_sleeping": false
})"},
    {"GET", "/tokenizer_info", "Of the built-in model", "", "",
     R"({
  "bos_token": null, "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>",
  "chat_template": "{% for message in messages %}..."
})"},
    {"GET", "/slots", "One request runs", "", "",
     R"([
  {
    "id": 0, "n_ctx": 2048, "is_processing": true, "id_task": 7, "priority": 0,
    "n_prompt_tokens": 17, "age_seconds": 0.25,
    "next_token": {"has_next_token": true, "n_decoded": 12, "n_remain": 52}
  },
  {"id": 1, "n_ctx": 2048, "is_processing": false}
])"},
    {"GET", "/metrics", "The beginning of the page", "", "",
     R"(# HELP weir_requests_running Sequences with KV pages.
# TYPE weir_requests_running gauge
weir_requests_running 0
# HELP weir_requests_waiting Requests without KV pages.
# TYPE weir_requests_waiting gauge
weir_requests_waiting 0)"},
    {"GET", "/dashboard", "The figures", "", "",
     R"({
  "t": 1795369334, "uptime_s": 4021, "rss": 93454336, "limit": 8589934592,
  "models": [
    {
      "id": "weir-tiny-moe", "state": "ready", "running": 3, "waiting": 0, "oldest_wait_s": 0,
      "output_tok_s": 412.5, "prompt_tok_s": 96.1, "cached_share": 0.82, "kv_use": 0.04,
      "kv_bytes": 4194304, "weight_bytes": 17325056, "ttft_ms": [12.1, 30.4],
      "gap_ms": [6.2, 9.8], "step_ms": [5.9, 9.1],
      "limits": {"running": 32, "open": 128, "context": 2048}
    }
  ],
  "pulls": [
    {"model": "mlx-community/Qwen3-0.6B-4bit", "bytes": 351397563, "bytes_done": 104857600}
  ],
  "http": {"open": 4, "c2xx": 212, "c4xx": 1, "c5xx": 0}
})"},
    {"GET", "/version", "The version", "", "",
     R"({"version": "0.1.0", "commit": "v0.1.0-12-g8aa1861"})"},
    {"GET", "/openapi.json", "The beginning of the page", "", "",
     R"({"openapi": "3.1.0", "info": {"title": "Weir", "version": "0.1.0"}, "paths": {}})"},
});

}  // namespace

std::span<const Example> server_examples() { return kExamples; }

}  // namespace weir::api::reference
