// Embeddings, reranking, tokens.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kExamples = std::to_array<Example>({
    {"POST", "/v1/embeddings", "Two texts", "",
     R"({
  "model": "weir-tiny-moe", "input": ["The sea is salty.", "Stories are told."],
  "dimensions": 4
})",
     R"({
  "object": "list",
  "data": [
    {
      "object": "embedding", "index": 0,
      "embedding": [0.28321108, 0.6319994, 0.6819743, -0.23511553]
    },
    {
      "object": "embedding", "index": 1,
      "embedding": [0.063368745, 0.7470464, 0.6526542, 0.10930969]
    }
  ],
  "model": "weir-tiny-moe", "usage": {"prompt_tokens": 11, "total_tokens": 11}
})"},
    // With --reranker yes-no; the built-in model knows nothing about relevance.
    {"POST", "/v1/rerank", "Two documents", "",
     R"({
  "model": "weir-tiny-moe", "query": "What is told?",
  "documents": ["The sea is salty.", {"text": "Stories are told."}], "return_documents": true
})",
     R"({
  "id": "rerank-b88984c9f71bbc6cbce521aeee79a379", "object": "list", "model": "weir-tiny-moe",
  "results": [
    {
      "index": 1, "relevance_score": 0.9849601400001576,
      "document": {"text": "Stories are told."}
    },
    {
      "index": 0, "relevance_score": 0.9493100568853853,
      "document": {"text": "The sea is salty."}
    }
  ],
  "usage": {"prompt_tokens": 205, "total_tokens": 205}
})"},
    {"POST", "/v1/rerank", "The same in TEI's words", "",
     R"({"query": "What is told?", "texts": ["The sea is salty.", "Stories are told."]})",
     R"([{"index": 1, "score": 0.9849601400001576}, {"index": 0, "score": 0.9493100568853853}])"},
    {"POST", "/v2/rerank", "The best of two documents", "",
     R"({
  "model": "weir-tiny-moe", "query": "What is told?",
  "documents": ["The sea is salty.", "Stories are told."], "top_n": 1
})",
     R"({
  "id": "rerank-383c1a75e095f95f492586aa421cefa3",
  "results": [{"index": 1, "relevance_score": 0.9849601400001576}],
  "meta": {
    "api_version": {"version": "2", "is_experimental": false},
    "billed_units": {"search_units": 1}
  }
})"},
    {"POST", "/v1/score", "A text against two", "",
     R"({
  "model": "weir-tiny-moe", "text_1": "What is told?",
  "text_2": ["The sea is salty.", "Stories are told."]
})",
     R"({
  "id": "score-be2636a894d7ee893c1aceffdaeb026e", "object": "list", "created": 1795370361,
  "model": "weir-tiny-moe",
  "data": [
    {"object": "score", "index": 0, "score": 0.9493100568853853},
    {"object": "score", "index": 1, "score": 0.9849601400001576}
  ],
  "usage": {"prompt_tokens": 205, "total_tokens": 205}
})"},
    {"POST", "/tokenize", "A text", "", R"({"content": "The sea is salty.", "with_pieces": true})",
     R"({
  "count": 6, "max_model_len": 2048,
  "tokens": [
    {"id": 311, "piece": "The"},
    {"id": 1246, "piece": " sea"},
    {"id": 356, "piece": " is"},
    {"id": 2617, "piece": " salt"},
    {"id": 88, "piece": "y"},
    {"id": 13, "piece": "."}
  ]
})"},
    {"POST", "/tokenize", "A conversation", "",
     R"({
  "messages": [{"role": "user", "content": "Tell me a short story."}],
  "add_generation_prompt": true
})",
     R"({
  "count": 17, "max_model_len": 2048,
  "tokens": [
    8186, 304, 271, 198, 811, 455, 257, 1281, 436, 13, 8187, 198, 8186, 586, 426, 402, 198
  ]
})"},
    {"POST", "/apply-template", "A conversation", "",
     R"({"messages": [{"role": "user", "content": "Tell me a short story."}]})",
     R"({
  "prompt": "<|im_start|>user\nTell me a short story.<|im_end|>\n<|im_start|>assistant\n"
})"},
    {"POST", "/detokenize", "Three tokens", "", R"({"tokens": [50, 68, 64]})",
     R"({"content": "Sea", "prompt": "Sea"})"},
});

}  // namespace

std::span<const Example> vector_examples() { return kExamples; }

}  // namespace weir::api::reference
