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
     R"({"model": "weir-tiny-moe", "created_at": "", "message": {"role": "assistant", "content": ""}, "done": true})"},
    {"POST", "/api/chat", "The same as lines", "",
     R"({
  "model": "weir-tiny-moe:latest", "stream": true,
  "messages": [{"role": "user", "content": "What is the sea?"}],
  "options": {"temperature": 0, "num_predict": 3}
})",
     R"([{"model": "weir-tiny-moe", "created_at": "", "message": {"role": "assistant", "content": ""}, "done": true}])"},
    {"POST", "/api/generate", "A text", "",
     R"({
  "model": "weir-tiny-moe", "stream": false, "raw": true, "prompt": "Once upon a time",
  "options": {"temperature": 0, "num_predict": 8}
})",
     R"({"model": "weir-tiny-moe", "created_at": "", "response": "", "done": true})"},
    {"POST", "/api/generate", "The model is loaded, which it always is", "",
     R"({"model": "weir-tiny-moe", "stream": false})",
     R"({"model": "weir-tiny-moe", "created_at": "", "response": "", "done": true})"},
    {"POST", "/api/generate", "A text as lines", "",
     R"({
  "model": "weir-tiny-moe", "stream": true, "raw": true, "prompt": "Once upon a time",
  "options": {"temperature": 0, "num_predict": 2}
})",
     R"([{"model": "weir-tiny-moe", "created_at": "", "response": "", "done": true}])"},
    {"POST", "/api/embed", "Two texts", "",
     R"({
  "model": "weir-tiny-moe", "input": ["The sea is salty.", "Stories are told."], "dimensions": 4
})",
     R"({"model": "weir-tiny-moe", "embeddings": [[1]]})"},
    {"POST", "/api/embeddings", "A text; the built-in model's vectors have 256 numbers", "",
     R"({"model": "weir-tiny-moe", "prompt": "The sea is salty."})", R"({"embedding": [1]})"},
    {"GET", "/api/version", "The version", "", "", R"({"version": "0.12.0"})"},
    {"GET", "/api/tags", "The model", "", "", R"({"models": []})"},
    {"GET", "/api/ps", "The model", "", "", R"({"models": []})"},
    {"POST", "/api/show", "The model", "", R"({"model": "weir-tiny-moe"})",
     R"({"details": {}, "model_info": {"general.architecture": "", "general.parameter_count": 1}, "capabilities": []})"},
    // Of another model: the built-in one is not at the hub.
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
