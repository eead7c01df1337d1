// The answers of /v1/chat/completions and /v1/completions.
//
// Threads: as AnswerShape.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/answer/answer_shape.h"
#include "api/openai/request_fields.h"

namespace weir::api::openai {

struct ChatFacts {
  Endpoint endpoint = Endpoint::kChat;
  std::string id;     // "chatcmpl-..." or "cmpl-...".
  std::string model;  // The served model's id, or its adapter's name.
  int64_t created = 0;
  bool stream = false;
  int32_t choices = 1;  // Of all prompts.
  int32_t choices_per_prompt = 1;
  bool include_usage = false;     // Events say "usage":null until the last,
  bool continuous_usage = false;  // or each what its choice has used so far.
  bool legacy_functions = false;  // A call is a `function_call`.
};

std::unique_ptr<AnswerShape> make_chat_shape(const ChatFacts& facts);

}  // namespace weir::api::openai
