// /v1/responses and /v1/messages.
#include <array>

#include "api/reference/reference.h"

namespace weir::api::reference {

namespace {

constexpr auto kExamples = std::to_array<Example>({
    {"POST", "/v1/responses", "A question", "",
     R"({
  "model": "weir-tiny-moe", "input": "Tell me a short story.", "max_output_tokens": 12,
  "seed": 1
})",
     R"({
  "id": "resp_49eb69f211d0df73b7952d3c0183db9e", "object": "response",
  "created_at": 1795369338, "status": "incomplete", "background": false, "error": null,
  "incomplete_details": {"reason": "max_output_tokens"}, "model": "weir-tiny-moe",
  "instructions": null, "max_output_tokens": 12, "max_tool_calls": null, "metadata": {},
  "parallel_tool_calls": true, "previous_response_id": null, "prompt_cache_key": null,
  "reasoning": {"effort": null, "summary": null}, "safety_identifier": null,
  "service_tier": "default", "store": true, "temperature": 0.7,
  "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_logprobs": 0,
  "top_p": 0.9, "truncation": "disabled", "user": null,
  "output": [
    {
      "id": "msg_49eb69f211d0df73b7952d3c0183db9e1", "type": "message", "role": "assistant",
      "status": "incomplete",
      "content": [
        {
          "type": "output_text", "annotations": [], "logprobs": [],
          "text": "There was a time when the internet had been transformed into a"
        }
      ]
    }
  ],
  "usage": {
    "input_tokens": 17, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 29
  }
})"},
    {"POST", "/v1/responses", "A question, its answer streamed", "",
     R"({
  "model": "weir-tiny-moe", "instructions": "Be brief.",
  "input": [{"role": "user", "content": "Tell me a short story."}], "max_output_tokens": 2,
  "seed": 1, "store": false, "stream": true
})",
     R"([
  {
    "type": "response.created", "sequence_number": 0,
    "response": {
      "id": "resp_f8356d4fe304db2d724514e8b2bed4aa", "object": "response",
      "created_at": 1795369338, "status": "in_progress", "background": false, "error": null,
      "incomplete_details": null, "model": "weir-tiny-moe", "instructions": "Be brief.",
      "max_output_tokens": 2, "max_tool_calls": null, "metadata": {},
      "parallel_tool_calls": true, "previous_response_id": null, "prompt_cache_key": null,
      "reasoning": {"effort": null, "summary": null}, "safety_identifier": null,
      "service_tier": "default", "store": false, "temperature": 0.7,
      "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
      "top_logprobs": 0, "top_p": 0.9, "truncation": "disabled", "user": null, "output": [],
      "usage": null
    }
  },
  {
    "type": "response.in_progress", "sequence_number": 1,
    "response": {
      "id": "resp_f8356d4fe304db2d724514e8b2bed4aa", "object": "response",
      "created_at": 1795369338, "status": "in_progress", "background": false, "error": null,
      "incomplete_details": null, "model": "weir-tiny-moe", "instructions": "Be brief.",
      "max_output_tokens": 2, "max_tool_calls": null, "metadata": {},
      "parallel_tool_calls": true, "previous_response_id": null, "prompt_cache_key": null,
      "reasoning": {"effort": null, "summary": null}, "safety_identifier": null,
      "service_tier": "default", "store": false, "temperature": 0.7,
      "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
      "top_logprobs": 0, "top_p": 0.9, "truncation": "disabled", "user": null, "output": [],
      "usage": null
    }
  },
  {
    "type": "response.output_item.added", "sequence_number": 2, "output_index": 0,
    "item": {
      "id": "msg_f8356d4fe304db2d724514e8b2bed4aa0", "type": "message", "role": "assistant",
      "status": "in_progress", "content": []
    }
  },
  {
    "type": "response.content_part.added", "sequence_number": 3, "output_index": 0,
    "item_id": "msg_f8356d4fe304db2d724514e8b2bed4aa0", "content_index": 0,
    "part": {"type": "output_text", "annotations": [], "logprobs": [], "text": ""}
  },
  {
    "type": "response.output_text.delta", "sequence_number": 4, "output_index": 0,
    "item_id": "msg_f8356d4fe304db2d724514e8b2bed4aa0", "content_index": 0, "delta": "I",
    "logprobs": []
  },
  {
    "type": "response.output_text.delta", "sequence_number": 5, "output_index": 0,
    "item_id": "msg_f8356d4fe304db2d724514e8b2bed4aa0", "content_index": 0, "delta": " was",
    "logprobs": []
  },
  {
    "type": "response.output_text.done", "sequence_number": 6, "output_index": 0,
    "item_id": "msg_f8356d4fe304db2d724514e8b2bed4aa0", "content_index": 0, "text": "I was",
    "logprobs": []
  },
  {
    "type": "response.content_part.done", "sequence_number": 7, "output_index": 0,
    "item_id": "msg_f8356d4fe304db2d724514e8b2bed4aa0", "content_index": 0,
    "part": {"type": "output_text", "annotations": [], "logprobs": [], "text": "I was"}
  },
  {
    "type": "response.output_item.done", "sequence_number": 8, "output_index": 0,
    "item": {
      "id": "msg_f8356d4fe304db2d724514e8b2bed4aa0", "type": "message", "role": "assistant",
      "status": "incomplete",
      "content": [{"type": "output_text", "annotations": [], "logprobs": [], "text": "I was"}]
    }
  },
  {
    "type": "response.incomplete", "sequence_number": 9,
    "response": {
      "id": "resp_f8356d4fe304db2d724514e8b2bed4aa", "object": "response",
      "created_at": 1795369338, "status": "incomplete", "background": false, "error": null,
      "incomplete_details": {"reason": "max_output_tokens"}, "model": "weir-tiny-moe",
      "instructions": "Be brief.", "max_output_tokens": 2, "max_tool_calls": null,
      "metadata": {}, "parallel_tool_calls": true, "previous_response_id": null,
      "prompt_cache_key": null, "reasoning": {"effort": null, "summary": null},
      "safety_identifier": null, "service_tier": "default", "store": false, "temperature": 0.7,
      "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [],
      "top_logprobs": 0, "top_p": 0.9, "truncation": "disabled", "user": null,
      "output": [
        {
          "id": "msg_f8356d4fe304db2d724514e8b2bed4aa0", "type": "message",
          "role": "assistant", "status": "incomplete",
          "content": [
            {"type": "output_text", "annotations": [], "logprobs": [], "text": "I was"}
          ]
        }
      ],
      "usage": {
        "input_tokens": 29, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 2,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 31
      }
    }
  }
])"},
    {"POST", "/v1/responses", "A call of a function", "",
     R"({
  "model": "weir-tiny-moe", "input": "What is the weather in Rome?",
  "tools": [
    {
      "type": "function", "name": "get_weather", "description": "The weather in a city.",
      "parameters": {
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}, "unit": {"enum": ["C", "F"]}},
        "required": ["city", "unit"]
      }
    }
  ],
  "tool_choice": "required", "parallel_tool_calls": false, "seed": 1
})",
     R"({
  "id": "resp_3286e789be81c636e4aee024c1efc8d1", "object": "response",
  "created_at": 1795369338, "status": "completed", "background": false, "error": null,
  "incomplete_details": null, "model": "weir-tiny-moe", "instructions": null,
  "max_output_tokens": null, "max_tool_calls": null, "metadata": {},
  "parallel_tool_calls": false, "previous_response_id": null, "prompt_cache_key": null,
  "reasoning": {"effort": null, "summary": null}, "safety_identifier": null,
  "service_tier": "default", "store": true, "temperature": 0.7,
  "text": {"format": {"type": "text"}}, "tool_choice": "required",
  "tools": [
    {
      "type": "function", "name": "get_weather", "description": "The weather in a city.",
      "parameters": {
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}, "unit": {"enum": ["C", "F"]}},
        "required": ["city", "unit"]
      }
    }
  ],
  "top_logprobs": 0, "top_p": 0.9, "truncation": "disabled", "user": null,
  "output": [
    {
      "id": "fc_3286e789be81c636e4aee024c1efc8d11", "type": "function_call",
      "status": "completed", "call_id": "call_abf8a3a4eaef2fd7850727e69ce56e51",
      "name": "get_weather",
      "arguments": "{\"city\":\n    \"Rome\",\n  \"unit\":\n    \"C\"\n  }"
    }
  ],
  "usage": {
    "input_tokens": 179, "input_tokens_details": {"cached_tokens": 160}, "output_tokens": 64,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 243
  }
})"},
    {"POST", "/v1/responses/input_tokens", "The length of a question", "",
     R"({"model": "weir-tiny-moe", "input": "Tell me a short story."})",
     R"({"object": "response.input_tokens", "input_tokens": 17})"},
    {"GET", "/v1/responses/{id}", "A response that was kept",
     "resp_49eb69f211d0df73b7952d3c0183db9e", "",
     R"({
  "id": "resp_49eb69f211d0df73b7952d3c0183db9e", "object": "response",
  "created_at": 1795369338, "status": "incomplete", "background": false, "error": null,
  "incomplete_details": {"reason": "max_output_tokens"}, "model": "weir-tiny-moe",
  "instructions": null, "max_output_tokens": 12, "max_tool_calls": null, "metadata": {},
  "parallel_tool_calls": true, "previous_response_id": null, "prompt_cache_key": null,
  "reasoning": {"effort": null, "summary": null}, "safety_identifier": null,
  "service_tier": "default", "store": true, "temperature": 0.7,
  "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_logprobs": 0,
  "top_p": 0.9, "truncation": "disabled", "user": null,
  "output": [
    {
      "id": "msg_49eb69f211d0df73b7952d3c0183db9e1", "type": "message", "role": "assistant",
      "status": "incomplete",
      "content": [
        {
          "type": "output_text", "annotations": [], "logprobs": [],
          "text": "There was a time when the internet had been transformed into a"
        }
      ]
    }
  ],
  "usage": {
    "input_tokens": 17, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 29
  }
})"},
    {"GET", "/v1/responses/{id}/input_items", "What it was asked",
     "resp_49eb69f211d0df73b7952d3c0183db9e", "",
     R"({
  "object": "list",
  "data": [
    {
      "id": "msg_49eb69f211d0df73b7952d3c0183db9e0", "type": "message", "status": "completed",
      "role": "user", "content": [{"type": "input_text", "text": "Tell me a short story."}]
    }
  ],
  "first_id": "msg_49eb69f211d0df73b7952d3c0183db9e0",
  "last_id": "msg_49eb69f211d0df73b7952d3c0183db9e0", "has_more": false
})"},
    {"DELETE", "/v1/responses/{id}", "Gone", "resp_49eb69f211d0df73b7952d3c0183db9e", "",
     R"({"id": "resp_49eb69f211d0df73b7952d3c0183db9e", "object": "response", "deleted": true})"},
    {"POST", "/v1/messages", "A question", "",
     R"({
  "model": "weir-tiny-moe", "system": "You tell stories.",
  "messages": [{"role": "user", "content": "Tell me a short story."}], "max_tokens": 12
})",
     R"({
  "id": "msg_84ad9fa32d5841143a17e7c987efe4d6", "type": "message", "role": "assistant",
  "model": "weir-tiny-moe",
  "content": [{"type": "text", "text": "There was a time when the word \"I am not there"}],
  "stop_reason": "max_tokens", "stop_sequence": null,
  "usage": {
    "input_tokens": 28, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
    "output_tokens": 12, "output_tokens_details": {"thinking_tokens": 0}
  }
})"},
    {"POST", "/v1/messages", "A question, its answer streamed", "",
     R"({
  "model": "weir-tiny-moe",
  "messages": [{"role": "user", "content": "Tell me a short story."}], "max_tokens": 2,
  "stream": true
})",
     R"([
  {
    "type": "message_start",
    "message": {
      "id": "msg_a00bad349c87db76368b2656a33e94b2", "type": "message", "role": "assistant",
      "model": "weir-tiny-moe", "content": [], "stop_reason": null, "stop_sequence": null,
      "usage": {
        "input_tokens": 17, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
        "output_tokens": 1, "output_tokens_details": {"thinking_tokens": 0}
      }
    }
  },
  {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
  {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "In"}},
  {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": " the"}},
  {"type": "content_block_stop", "index": 0},
  {
    "type": "message_delta", "delta": {"stop_reason": "max_tokens", "stop_sequence": null},
    "usage": {
      "input_tokens": 17, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
      "output_tokens": 2, "output_tokens_details": {"thinking_tokens": 0}
    }
  },
  {"type": "message_stop"}
])"},
    {"POST", "/v1/messages", "A call of a function", "",
     R"({
  "model": "weir-tiny-moe",
  "messages": [{"role": "user", "content": "What is the weather in Rome?"}],
  "tools": [
    {
      "name": "get_weather", "description": "The weather in a city.",
      "input_schema": {
        "type": "object",
        "properties": {"city": {"enum": ["Oslo", "Rome"]}, "unit": {"enum": ["C", "F"]}},
        "required": ["city", "unit"]
      }
    }
  ],
  "tool_choice": {"type": "tool", "name": "get_weather"}, "max_tokens": 200
})",
     R"({
  "id": "msg_588b8af320c46e24a5af0e38f18740a1", "type": "message", "role": "assistant",
  "model": "weir-tiny-moe",
  "content": [
    {
      "type": "tool_use", "id": "toolu_dfff471b020ca11330c0b2a70c3c7e45",
      "name": "get_weather", "input": {"city": "Rome", "unit": "F"}
    }
  ],
  "stop_reason": "tool_use", "stop_sequence": null,
  "usage": {
    "input_tokens": 19, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 160,
    "output_tokens": 62, "output_tokens_details": {"thinking_tokens": 0}
  }
})"},
    {"POST", "/v1/messages/count_tokens", "A question", "",
     R"({
  "model": "weir-tiny-moe",
  "messages": [{"role": "user", "content": "Tell me a short story."}]
})",
     R"({"input_tokens": 17})"},
});

}  // namespace

std::span<const Example> conversation_examples() { return kExamples; }

}  // namespace weir::api::reference
