// llama-server's own endpoints: a text to go on with, and a hole to fill.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kExamples = std::to_array<Example>({
    {"POST", "/completion", "A text to go on with", "",
     R"({"prompt": "Once upon a time", "n_predict": 6, "temperature": 0, "seed": 1})",
     R"({
  "index": 0, "content": ", there was a little fox", "tokens": [], "id_slot": -1, "stop": true,
  "model": "weir-tiny-moe", "tokens_predicted": 6, "tokens_evaluated": 4,
  "generation_settings": {
    "n_predict": 6, "seed": 1, "temperature": 0, "top_k": 40, "top_p": 0.9,
    "min_p": 0.05, "typical_p": 1,
    "repeat_penalty": 1.1, "presence_penalty": 0,
    "frequency_penalty": 0, "min_keep": 1, "max_tokens": 6, "stop": [], "logit_bias": [],
    "ignore_eos": false, "stream": false, "n_probs": 0
  },
  "prompt": "Once upon a time", "has_new_line": false, "truncated": false,
  "stop_type": "limit", "stopping_word": "", "tokens_cached": 10,
  "timings": {
    "cache_n": 0, "prompt_n": 4, "prompt_ms": 2.8, "prompt_per_token_ms": 0.7,
    "prompt_per_second": 1428.6, "predicted_n": 6, "predicted_ms": 12,
    "predicted_per_token_ms": 2, "predicted_per_second": 500
  }
})"},
    {"POST", "/completion", "The same, streamed", "",
     R"({
  "prompt": "Once upon a time", "n_predict": 2, "temperature": 0, "seed": 1, "stream": true
})",
     R"([
  {
    "index": 0, "content": ",", "tokens": [11], "id_slot": -1, "stop": false,
    "tokens_predicted": 1, "tokens_evaluated": 4
  },
  {
    "index": 0, "content": " there", "tokens": [499], "id_slot": -1, "stop": false,
    "tokens_predicted": 2, "tokens_evaluated": 4
  },
  {
    "index": 0, "content": "", "tokens": [], "id_slot": -1, "stop": true,
    "model": "weir-tiny-moe", "tokens_predicted": 2, "tokens_evaluated": 4,
    "generation_settings": {
      "n_predict": 2, "seed": 1, "temperature": 0, "top_k": 40, "top_p": 0.9,
    "min_p": 0.05, "typical_p": 1,
      "repeat_penalty": 1.1, "presence_penalty": 0,
      "frequency_penalty": 0, "min_keep": 1, "max_tokens": 2, "stop": [], "logit_bias": [],
      "ignore_eos": false, "stream": true, "n_probs": 0
    },
    "prompt": "Once upon a time", "has_new_line": false, "truncated": false,
    "stop_type": "limit", "stopping_word": "", "tokens_cached": 6,
    "timings": {
      "cache_n": 0, "prompt_n": 4, "prompt_ms": 2.8, "prompt_per_token_ms": 0.7,
      "prompt_per_second": 1428.6, "predicted_n": 2, "predicted_ms": 4,
      "predicted_per_token_ms": 2, "predicted_per_second": 500
    }
  }
])"},
    {"POST", "/completions", "Ids of the prompt's tokens", "",
     R"({"prompt": [50, 68, 64], "n_predict": 2, "temperature": 0, "seed": 1})",
     R"({
  "index": 0, "content": ", I", "tokens": [], "id_slot": -1, "stop": true,
  "model": "weir-tiny-moe", "tokens_predicted": 2, "tokens_evaluated": 3,
  "generation_settings": {
    "n_predict": 2, "seed": 1, "temperature": 0, "top_k": 40, "top_p": 0.9,
    "min_p": 0.05, "typical_p": 1,
    "repeat_penalty": 1.1, "presence_penalty": 0,
    "frequency_penalty": 0, "min_keep": 1, "max_tokens": 2, "stop": [], "logit_bias": [],
    "ignore_eos": false, "stream": false, "n_probs": 0
  },
  "prompt": "Sea", "has_new_line": false, "truncated": false,
  "stop_type": "limit", "stopping_word": "", "tokens_cached": 5,
  "timings": {
    "cache_n": 0, "prompt_n": 3, "prompt_ms": 2.1, "prompt_per_token_ms": 0.7,
    "prompt_per_second": 1428.6, "predicted_n": 2, "predicted_ms": 4,
    "predicted_per_token_ms": 2, "predicted_per_second": 500
  }
})"},
    {"POST", "/completions", "A text to go on with, streamed", "",
     R"({
  "prompt": "Once upon a time", "n_predict": 2, "temperature": 0, "seed": 1, "stream": true
})",
     R"([
  {
    "index": 0, "content": ",", "tokens": [11], "id_slot": -1, "stop": false,
    "tokens_predicted": 1, "tokens_evaluated": 4
  },
  {
    "index": 0, "content": " there", "tokens": [499], "id_slot": -1, "stop": false,
    "tokens_predicted": 2, "tokens_evaluated": 4
  },
  {
    "index": 0, "content": "", "tokens": [], "id_slot": -1, "stop": true,
    "model": "weir-tiny-moe", "tokens_predicted": 2, "tokens_evaluated": 4,
    "generation_settings": {
      "n_predict": 2, "seed": 1, "temperature": 0, "top_k": 40, "top_p": 0.9,
    "min_p": 0.05, "typical_p": 1,
      "repeat_penalty": 1.1, "presence_penalty": 0,
      "frequency_penalty": 0, "min_keep": 1, "max_tokens": 2, "stop": [], "logit_bias": [],
      "ignore_eos": false, "stream": true, "n_probs": 0
    },
    "prompt": "Once upon a time", "has_new_line": false, "truncated": false,
    "stop_type": "limit", "stopping_word": "", "tokens_cached": 6,
    "timings": {
      "cache_n": 0, "prompt_n": 4, "prompt_ms": 2.8, "prompt_per_token_ms": 0.7,
      "prompt_per_second": 1428.6, "predicted_n": 2, "predicted_ms": 4,
      "predicted_per_token_ms": 2, "predicted_per_second": 500
    }
  }
])"},
    // Of a model that has fill-in-the-middle tokens.
    {"POST", "/infill", "A hole in a function", "",
     R"({
  "input_prefix": "def add(a, b):\n", "input_suffix": "\nprint(add(1, 2))\n", "n_predict": 16,
  "temperature": 0, "seed": 1
})",
     R"({
  "index": 0, "content": "    return a + b", "tokens": [], "id_slot": -1, "stop": true,
  "model": "weir-tiny-moe", "tokens_predicted": 6, "tokens_evaluated": 24,
  "generation_settings": {
    "n_predict": 16, "seed": 1, "temperature": 0, "top_k": 40, "top_p": 0.95,
    "min_p": 0.05, "typical_p": 1,
    "repeat_penalty": 1, "presence_penalty": 0,
    "frequency_penalty": 0, "min_keep": 1, "max_tokens": 16, "stop": [], "logit_bias": [],
    "ignore_eos": false, "stream": false, "n_probs": 0
  },
  "prompt": "<|fim_prefix|>def add(a, b):\n<|fim_suffix|>\nprint(add(1, 2))\n<|fim_middle|>",
  "has_new_line": false, "truncated": false, "stop_type": "eos", "stopping_word": "",
  "tokens_cached": 30,
  "timings": {
    "cache_n": 0, "prompt_n": 24, "prompt_ms": 16.8, "prompt_per_token_ms": 0.7,
    "prompt_per_second": 1428.6, "predicted_n": 6, "predicted_ms": 12,
    "predicted_per_token_ms": 2, "predicted_per_second": 500
  }
})"},
    // Of a model that has fill-in-the-middle tokens.
    {"POST", "/infill", "The same, streamed", "",
     R"({
  "input_prefix": "def add(a, b):\n", "input_suffix": "\nprint(add(1, 2))\n", "n_predict": 16,
  "temperature": 0, "seed": 1, "stream": true
})",
     R"([
  {
    "index": 0, "content": "    return", "tokens": [262, 470], "id_slot": -1, "stop": false,
    "tokens_predicted": 2, "tokens_evaluated": 24
  },
  {
    "index": 0, "content": " a + b", "tokens": [264, 489, 293], "id_slot": -1, "stop": false,
    "tokens_predicted": 5, "tokens_evaluated": 24
  },
  {
    "index": 0, "content": "", "tokens": [2], "id_slot": -1, "stop": true,
    "model": "weir-tiny-moe", "tokens_predicted": 5, "tokens_evaluated": 24,
    "generation_settings": {
      "n_predict": 16, "seed": 1, "temperature": 0, "top_k": 40, "top_p": 0.95,
    "min_p": 0.05, "typical_p": 1,
      "repeat_penalty": 1, "presence_penalty": 0,
      "frequency_penalty": 0, "min_keep": 1, "max_tokens": 16, "stop": [], "logit_bias": [],
      "ignore_eos": false, "stream": true, "n_probs": 0
    },
    "prompt": "<|fim_prefix|>def add(a, b):\n<|fim_suffix|>\nprint(add(1, 2))\n<|fim_middle|>",
    "has_new_line": false, "truncated": false, "stop_type": "eos", "stopping_word": "",
    "tokens_cached": 29,
  "timings": {
    "cache_n": 0, "prompt_n": 24, "prompt_ms": 16.8, "prompt_per_token_ms": 0.7,
    "prompt_per_second": 1428.6, "predicted_n": 5, "predicted_ms": 10,
    "predicted_per_token_ms": 2, "predicted_per_second": 500
  }
  }
])"},
});

}  // namespace

std::span<const Example> llama_examples() { return kExamples; }

}  // namespace weir::api::reference
