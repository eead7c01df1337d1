// Chat and text completions.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kExamples = std::to_array<Example>({
    {"POST", "/v1/chat/completions", "A question", "",
     R"({
  "model": "weir-tiny-moe",
  "messages": [{"role": "user", "content": "Tell me a short story."}], "max_tokens": 12,
  "seed": 1
})",
     R"({
  "id": "chatcmpl-1f9136fe675ee572e850a1dc10c64dca", "object": "chat.completion",
  "created": 1795369338, "model": "weir-tiny-moe",
  "choices": [
    {
      "index": 0,
      "message": {
        "role": "assistant",
        "content": "There was a time when the internet had been transformed into a",
        "refusal": null, "annotations": []
      },
      "logprobs": null, "finish_reason": "length"
    }
  ],
  "usage": {
    "prompt_tokens": 17, "completion_tokens": 12, "total_tokens": 29,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {
      "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
      "rejected_prediction_tokens": 0
    }
  },
  "timings": {
    "cache_n": 0, "prompt_n": 17, "prompt_ms": 11.9, "prompt_per_token_ms": 0.7,
    "prompt_per_second": 1428.6, "predicted_n": 12, "predicted_ms": 24,
    "predicted_per_token_ms": 2, "predicted_per_second": 500
  }
})"},
    {"POST", "/v1/chat/completions", "A question, its answer streamed", "",
     R"({
  "model": "weir-tiny-moe",
  "messages": [{"role": "user", "content": "Tell me a short story."}], "max_tokens": 2,
  "seed": 1, "stream": true, "stream_options": {"include_usage": true}
})",
     R"([
  {
    "id": "chatcmpl-8447ebefb67f706e8580c05ca993ac06", "object": "chat.completion.chunk",
    "created": 1795369338, "model": "weir-tiny-moe",
    "choices": [
      {
        "index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": null,
        "finish_reason": null
      }
    ],
    "usage": null
  },
  {
    "id": "chatcmpl-8447ebefb67f706e8580c05ca993ac06", "object": "chat.completion.chunk",
    "created": 1795369338, "model": "weir-tiny-moe",
    "choices": [
      {"index": 0, "delta": {"content": "There"}, "logprobs": null, "finish_reason": null}
    ],
    "usage": null
  },
  {
    "id": "chatcmpl-8447ebefb67f706e8580c05ca993ac06", "object": "chat.completion.chunk",
    "created": 1795369338, "model": "weir-tiny-moe",
    "choices": [
      {"index": 0, "delta": {"content": " was"}, "logprobs": null, "finish_reason": null}
    ],
    "usage": null
  },
  {
    "id": "chatcmpl-8447ebefb67f706e8580c05ca993ac06", "object": "chat.completion.chunk",
    "created": 1795369338, "model": "weir-tiny-moe",
    "choices": [{"index": 0, "delta": {}, "logprobs": null, "finish_reason": "length"}],
    "usage": null
  },
  {
    "id": "chatcmpl-8447ebefb67f706e8580c05ca993ac06", "object": "chat.completion.chunk",
    "created": 1795369338, "model": "weir-tiny-moe", "choices": [],
    "usage": {
      "prompt_tokens": 17, "completion_tokens": 2, "total_tokens": 19,
      "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
      "completion_tokens_details": {
        "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0
      }
    }
  }
])"},
    {"POST", "/v1/chat/completions", "A call of a function", "",
     R"({
  "model": "weir-tiny-moe",
  "messages": [{"role": "user", "content": "What is the weather in Rome?"}],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "get_weather", "description": "The weather in a city.",
        "parameters": {
          "type": "object",
          "properties": {"city": {"enum": ["Oslo", "Rome"]}, "unit": {"enum": ["C", "F"]}},
          "required": ["city", "unit"]
        }
      }
    }
  ],
  "tool_choice": "required", "parallel_tool_calls": false, "seed": 1
})",
     R"({
  "id": "chatcmpl-d1b18429ed8af65817db4c0dd78e4e09", "object": "chat.completion",
  "created": 1795369338, "model": "weir-tiny-moe",
  "choices": [
    {
      "index": 0,
      "message": {
        "role": "assistant", "content": null,
        "tool_calls": [
          {
            "id": "call_b67dcaf938ca0be50ab79fd4e5bf10a6", "type": "function",
            "function": {
              "name": "get_weather",
              "arguments": "{\"city\":\n    \"Rome\",\n  \"unit\":\n    \"C\"\n  }"
            }
          }
        ],
        "refusal": null, "annotations": []
      },
      "logprobs": null, "finish_reason": "tool_calls"
    }
  ],
  "usage": {
    "prompt_tokens": 179, "completion_tokens": 64, "total_tokens": 243,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {
      "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
      "rejected_prediction_tokens": 0
    }
  }
})"},
    {"POST", "/v1/chat/completions", "What the function said", "",
     R"({
  "model": "weir-tiny-moe",
  "messages": [
    {"role": "user", "content": "What is the weather in Rome?"},
    {
      "role": "assistant", "content": null,
      "tool_calls": [
        {
          "id": "call_1", "type": "function",
          "function": {
            "name": "get_weather", "arguments": "{\"city\":\"Rome\",\"unit\":\"C\"}"
          }
        }
      ]
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "21 degrees and sunny"}
  ],
  "tools": [
    {
      "type": "function",
      "function": {
        "name": "get_weather", "description": "The weather in a city.",
        "parameters": {
          "type": "object",
          "properties": {"city": {"enum": ["Oslo", "Rome"]}, "unit": {"enum": ["C", "F"]}},
          "required": ["city", "unit"]
        }
      }
    }
  ],
  "max_tokens": 12, "seed": 1
})",
     R"({
  "id": "chatcmpl-0b5dc546d8a7b2499864168a734fc2ef", "object": "chat.completion",
  "created": 1795369338, "model": "weir-tiny-moe",
  "choices": [
    {
      "index": 0,
      "message": {
        "role": "assistant", "content": "I'm glad to help you with your homework!\nYour",
        "refusal": null, "annotations": []
      },
      "logprobs": null, "finish_reason": "length"
    }
  ],
  "usage": {
    "prompt_tokens": 233, "completion_tokens": 12, "total_tokens": 245,
    "prompt_tokens_details": {"cached_tokens": 160, "audio_tokens": 0},
    "completion_tokens_details": {
      "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
      "rejected_prediction_tokens": 0
    }
  }
})"},
    {"POST", "/v1/chat/completions", "An answer bound to a JSON schema", "",
     R"({
  "model": "weir-tiny-moe", "messages": [{"role": "user", "content": "Is the sea salty?"}],
  "response_format": {
    "type": "json_schema",
    "json_schema": {
      "name": "verdict",
      "schema": {
        "type": "object", "properties": {"answer": {"enum": ["yes", "no"]}},
        "required": ["answer"], "additionalProperties": false
      }
    }
  },
  "seed": 1
})",
     R"({
  "id": "chatcmpl-15bb19d0f3b5557838a522ba68a8d500", "object": "chat.completion",
  "created": 1795369338, "model": "weir-tiny-moe",
  "choices": [
    {
      "index": 0,
      "message": {
        "role": "assistant", "content": "{\"answer\": \"yes\"\n      }", "refusal": null,
        "annotations": []
      },
      "logprobs": null, "finish_reason": "stop"
    }
  ],
  "usage": {
    "prompt_tokens": 18, "completion_tokens": 18, "total_tokens": 36,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {
      "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
      "rejected_prediction_tokens": 0
    }
  }
})"},
    {"POST", "/v1/completions", "A text to go on with", "",
     R"({
  "model": "weir-tiny-moe", "prompt": "Once upon a time", "max_tokens": 12, "seed": 1,
  "logprobs": 1
})",
     R"({
  "id": "cmpl-9b328e8b645964878db0551d33bf6e37", "object": "text_completion",
  "created": 1795369338, "model": "weir-tiny-moe",
  "choices": [
    {
      "index": 0, "text": " there was a paper boat who saves the village. Tell the",
      "logprobs": {
        "tokens": [
          " there", " was", " a", " paper", " boat", " who", " saves", " the", " village", ".",
          " Tell", " the"
        ],
        "token_logprobs": [
          -1.2741804, -0.005689621, -0.023321152, -4.571286, -0.013317108, -0.031417847,
          -3.3815536, -0.98431015, -0.00866127, -0.03738594, -7.6293945e-06, -0.0002632141
        ],
        "top_logprobs": [
          {",": -0.3761301, " there": -1.2741804},
          {" was": -0.005689621},
          {" a": -0.023321152},
          {" little": -3.771388, " paper": -4.571286},
          {" boat": -0.013317108},
          {" who": -0.031417847},
          {" finds": -2.2197886, " saves": -3.3815536},
          {" a": -0.47154427, " the": -0.98431015},
          {" village": -0.00866127},
          {".": -0.03738594},
          {" Tell": -7.6293945e-06},
          {" the": -0.0002632141}
        ],
        "text_offset": [0, 6, 10, 12, 18, 23, 27, 33, 37, 45, 46, 51]
      },
      "finish_reason": "length"
    }
  ],
  "usage": {
    "prompt_tokens": 4, "completion_tokens": 12, "total_tokens": 16,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {
      "reasoning_tokens": 0, "audio_tokens": 0, "accepted_prediction_tokens": 0,
      "rejected_prediction_tokens": 0
    }
  }
})"},
    {"POST", "/v1/completions", "The same, streamed", "",
     R"({
  "model": "weir-tiny-moe", "prompt": "Once upon a time", "max_tokens": 2, "seed": 1,
  "stream": true
})",
     R"([
  {
    "id": "cmpl-2dd306ee690a76c3b257a92f315e32c3", "object": "text_completion",
    "created": 1795369338, "model": "weir-tiny-moe",
    "choices": [{"index": 0, "text": " there", "logprobs": null, "finish_reason": null}]
  },
  {
    "id": "cmpl-2dd306ee690a76c3b257a92f315e32c3", "object": "text_completion",
    "created": 1795369338, "model": "weir-tiny-moe",
    "choices": [{"index": 0, "text": " was", "logprobs": null, "finish_reason": null}]
  },
  {
    "id": "cmpl-2dd306ee690a76c3b257a92f315e32c3", "object": "text_completion",
    "created": 1795369338, "model": "weir-tiny-moe",
    "choices": [{"index": 0, "text": "", "logprobs": null, "finish_reason": "length"}]
  }
])"},
});

}  // namespace

std::span<const Example> chat_examples() { return kExamples; }

}  // namespace weir::api::reference
