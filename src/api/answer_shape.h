// AnswerShape: the JSON of an answer, whole or in events, for chat and for completions. What does
// not change from event to event is built once.
//
// Threads: immutable after construction.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/generate_request.h"

namespace weir::api {

// A call of a function, whole or cut by the answer's end.
struct ToolCall {
  std::string id;
  std::string name;
  std::string arguments;  // JSON, unless it was cut.
};

// What a whole choice says.
struct AnswerText {
  std::string_view content;
  std::string_view reasoning;
  std::span<const ToolCall> calls;
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // Of the prompt.
  int64_t completion_tokens = 0;
  int64_t reasoning_tokens = 0;  // Of the completion.
};

class AnswerShape {
 public:
  struct Facts {
    Endpoint endpoint = Endpoint::kChat;
    std::string id;     // "chatcmpl-..." or "cmpl-...".
    std::string model;  // The served model's id.
    int64_t created = 0;
    bool include_usage = false;     // Events say "usage":null until the last.
    bool legacy_functions = false;  // A call is a `function_call`.
  };
  explicit AnswerShape(const Facts& facts);

  // Events, appended whole. `logprobs` is JSON.
  void append_role(std::string& out, int32_t index) const;  // Nothing in completions.
  void append_text(std::string& out, int32_t index, std::string_view text,
                   std::string_view logprobs) const;
  void append_reasoning(std::string& out, int32_t index, std::string_view text,
                        std::string_view logprobs) const;
  // The beginning of call number `call` of the choice, and pieces of its arguments.
  void append_call(std::string& out, int32_t index, int32_t call, std::string_view id,
                   std::string_view name, std::string_view logprobs) const;
  void append_arguments(std::string& out, int32_t index, int32_t call, std::string_view arguments,
                        std::string_view logprobs) const;
  void append_finish(std::string& out, int32_t index, std::string_view reason,
                     std::string_view logprobs) const;
  void append_usage(std::string& out, const Usage& usage) const;
  static void append_done(std::string& out);

  // A whole answer. Between begin and end of a choice stands the JSON of its log-probabilities.
  void begin_whole(std::string& out) const;
  void begin_whole_choice(std::string& out, int32_t index, const AnswerText& text) const;
  static void end_whole_choice(std::string& out, std::string_view reason);
  static void end_whole(std::string& out, const Usage& usage);

 private:
  void begin_choice(std::string& out, int32_t index) const;
  void end_delta(std::string& out, std::string_view logprobs) const;
  void append_whole_calls(std::string& out, std::span<const ToolCall> calls) const;

  const bool chat_;
  const bool legacy_functions_;
  const std::string_view tail_;  // Of an event, from the end of the choice.
  std::string facts_;            // "id":...,"object":...,"created":...,"model":...
  std::string whole_facts_;
  std::string head_;  // Of an event, up to the choice's index.
};

}  // namespace weir::api
