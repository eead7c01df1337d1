// What Ollama's clients send, and the built-in model's answers.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kExamples = std::to_array<Example>({
    {"POST", "/api/chat", "A question", "",
     R"({
  "model": "weir-tiny-moe", "stream": false,
  "messages": [{"role": "user", "content": "What is the sea?"}],
  "options": {"temperature": 0, "num_predict": 16}
})",
     R"({
  "model": "weir-tiny-moe", "created_at": "2026-11-26T03:30:43.991658Z",
  "message": {
    "role": "assistant",
    "content": "The ocean is a vast and mysterious realm that covers about 71%"
  },
  "done": true, "done_reason": "length", "total_duration": 23130528, "load_duration": 0,
  "prompt_eval_count": 16, "prompt_eval_duration": 2519358, "eval_count": 16,
  "eval_duration": 7395741
})"},
    {"POST", "/api/chat", "The same as lines", "",
     R"({
  "model": "weir-tiny-moe:latest", "stream": true,
  "messages": [{"role": "user", "content": "What is the sea?"}],
  "options": {"temperature": 0, "num_predict": 3}
})",
     R"([
  {
    "model": "weir-tiny-moe:latest", "created_at": "2026-11-26T03:30:43.997717Z",
    "message": {"role": "assistant", "content": "The"}, "done": false
  },
  {
    "model": "weir-tiny-moe:latest", "created_at": "2026-11-26T03:30:43.997731Z",
    "message": {"role": "assistant", "content": " ocean"}, "done": false
  },
  {
    "model": "weir-tiny-moe:latest", "created_at": "2026-11-26T03:30:43.997732Z",
    "message": {"role": "assistant", "content": " is"}, "done": false
  },
  {
    "model": "weir-tiny-moe:latest", "created_at": "2026-11-26T03:30:43.997738Z",
    "message": {"role": "assistant", "content": ""}, "done": true, "done_reason": "length",
    "total_duration": 4939888, "load_duration": 0, "prompt_eval_count": 16,
    "prompt_eval_duration": 1187210, "eval_count": 3, "eval_duration": 3331019
  }
])"},
    {"POST", "/api/generate", "A text", "",
     R"({
  "model": "weir-tiny-moe", "stream": false, "raw": true, "prompt": "Once upon a time",
  "options": {"temperature": 0, "num_predict": 8}
})",
     R"({
  "model": "weir-tiny-moe", "created_at": "2026-11-26T03:30:44.003482Z",
  "response": ", there was a little fox named F", "done": true, "done_reason": "length",
  "total_duration": 4561053, "load_duration": 0, "prompt_eval_count": 4,
  "prompt_eval_duration": 785121, "eval_count": 8, "eval_duration": 3357779
})"},
    {"POST", "/api/generate", "The model is loaded, which it always is", "",
     R"({"model": "weir-tiny-moe", "stream": false})",
     R"({
  "model": "weir-tiny-moe", "created_at": "2026-11-26T03:30:44.004941Z", "response": "",
  "done": true, "done_reason": "load"
})"},
    {"POST", "/api/generate", "A text as lines", "",
     R"({
  "model": "weir-tiny-moe", "stream": true, "raw": true, "prompt": "Once upon a time",
  "options": {"temperature": 0, "num_predict": 2}
})",
     R"([
  {
    "model": "weir-tiny-moe", "created_at": "2026-11-26T03:30:44.010558Z", "response": ",",
    "done": false
  },
  {
    "model": "weir-tiny-moe", "created_at": "2026-11-26T03:30:44.011021Z", "response": " there",
    "done": false
  },
  {
    "model": "weir-tiny-moe", "created_at": "2026-11-26T03:30:44.011028Z", "response": "",
    "done": true, "done_reason": "length", "total_duration": 5690017, "load_duration": 0,
    "prompt_eval_count": 4, "prompt_eval_duration": 804490, "eval_count": 2,
    "eval_duration": 516972
  }
])"},
    {"POST", "/api/embed", "Two texts", "",
     R"({
  "model": "weir-tiny-moe", "input": ["The sea is salty.", "Stories are told."], "dimensions": 4
})",
     R"({
  "model": "weir-tiny-moe",
  "embeddings": [
    [0.28321108, 0.6319994, 0.6819743, -0.23511553],
    [0.063368745, 0.7470464, 0.6526542, 0.10930969]
  ],
  "total_duration": 1252698, "load_duration": 0, "prompt_eval_count": 11
})"},
    {"POST", "/api/embeddings", "A text; the built-in model's vectors have 256 numbers", "",
     R"({"model": "weir-tiny-moe", "prompt": "The sea is salty."})",
     R"({"embedding": [0.055563543, 0.12399276, 0.1337974, -0.046127614]})"},
    {"GET", "/api/version", "The version", "", "", R"({"version": "0.12.0"})"},
    {"GET", "/api/tags", "The model", "", "", R"({
  "models": [
    {
      "name": "weir-tiny-moe:latest", "model": "weir-tiny-moe:latest", "size": 17325056,
      "digest": "b33a2fac44ffc947099b2c1384170821a6d6691b8e54e11537f1d43912b31b7d",
      "details": {
        "parent_model": "", "format": "safetensors", "family": "qwen3_moe",
        "families": ["qwen3_moe"], "parameter_size": "28.9M", "quantization_level": "4bit",
        "context_length": 2048, "embedding_length": 256
      },
      "capabilities": ["completion", "tools"], "modified_at": "2026-11-26T03:07:58Z"
    }
  ]
})"},
    {"GET", "/api/ps", "The model", "", "", R"({
  "models": [
    {
      "name": "weir-tiny-moe:latest", "model": "weir-tiny-moe:latest", "size": 17325056,
      "digest": "b33a2fac44ffc947099b2c1384170821a6d6691b8e54e11537f1d43912b31b7d",
      "details": {
        "parent_model": "", "format": "safetensors", "family": "qwen3_moe",
        "families": ["qwen3_moe"], "parameter_size": "28.9M", "quantization_level": "4bit",
        "context_length": 2048, "embedding_length": 256
      },
      "expires_at": "2319-03-08T03:18:00Z", "size_vram": 0, "context_length": 2048
    }
  ]
})"},
    {"POST", "/api/show", "The model", "", R"({"model": "weir-tiny-moe"})",
     R"({
  "license": "", "modelfile": "FROM weir-tiny-moe:latest\n",
  "parameters": "temperature 0.7\ntop_k 40\ntop_p 0.9\nmin_p 0.05\nrepeat_penalty 1.1",
  "template": "{% for message in messages %}...",
  "details": {
    "parent_model": "", "format": "safetensors", "family": "qwen3_moe",
    "families": ["qwen3_moe"], "parameter_size": "28.9M", "quantization_level": "4bit",
    "context_length": 2048, "embedding_length": 256
  },
  "model_info": {
    "general.architecture": "qwen3_moe", "general.parameter_count": 28873984,
    "qwen3_moe.context_length": 2048, "qwen3_moe.embedding_length": 256,
    "qwen3_moe.block_count": 8, "qwen3_moe.attention.head_count": 4,
    "qwen3_moe.attention.head_count_kv": 2
  },
  "capabilities": ["completion", "tools"], "modified_at": "2026-11-26T03:07:58Z"
})"},
    // Not recorded, as the built-in model is not at the hub.
    {"POST", "/api/pull", "A model, when it is here", "",
     R"({"model": "mlx-community/Qwen3-0.6B-4bit", "stream": false})", R"({"status": "success"})"},
    {"POST", "/api/pull", "The same as lines", "",
     R"({"model": "hf.co/mlx-community/Qwen3-0.6B-4bit", "stream": true})",
     R"([
  {"status": "pulling manifest"},
  {
    "status": "pulling 3ac9c0d5c9bb",
    "digest": "sha256:3ac9c0d5c9bb7d1b4d5bd6ff5cd2c1b8c9f5e6c0e9f4e7b2a1d0c3b4a5968778",
    "total": 351397563, "completed": 104857600
  },
  {"status": "verifying sha256 digest"},
  {"status": "writing manifest"},
  {"status": "success"}
])"},
    {"DELETE", "/api/delete", "A model", "", R"({"model": "mlx-community/Qwen3-0.6B-4bit"})", ""},
});

}  // namespace

std::span<const Example> ollama_examples() { return kExamples; }

}  // namespace weir::api::reference
