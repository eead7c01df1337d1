// AnswerShape: how a protocol writes an answer. A Stream tells it what the model says, in order; it
// writes events, or collects the whole answer and writes that at the end. One object per answer.
//
// Threads: owned by one stream.
//
// Invariants, of the calls:
// (1) begin() comes first, once; prompt() and begin_choice() before anything else of a choice;
//     finish() last.
//     All choices are finished when end() comes. fail() may stand in end()'s place, wherever the
//     answer is then, also before begin().
// (2) A call of a function is begin_call(), call_arguments(), end_call(), with nothing of the
//     choice in between. One that the answer's end has cut lacks end_call().
// (3) What a whole answer's shape appends before end() is nothing; an event is appended whole.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/logprob_list.h"
#include "api/answer/timings.h"
#include "base/result.h"

namespace weir::api {

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // Of the prompt.
  int64_t image_tokens = 0;   // Of the prompt: those that stand for images.
  int64_t audio_tokens = 0;   // The same of sounds.
  int64_t completion_tokens = 0;
  int64_t reasoning_tokens = 0;  // Of the completion.
  int64_t predicted_right = 0;   // Of the completion: from the request's prediction,
  int64_t predicted_wrong = 0;   // and drafts from there that were not.
  Timings timings{};             // Of the choices that have ended.
};

enum class FinishKind : uint8_t { kStop, kLength, kCalls };

struct Finish {
  FinishKind kind = FinishKind::kStop;
  std::string_view stop_string;  // That the choice has met, if any.
  Timings timings{};             // Of the choice.
};

// The choice that something belongs to.
struct ChoiceRef {
  int32_t index = 0;
  // Of the tokens up to here that are not yet written; null: not asked for. The shape takes out
  // what it writes.
  LogprobList* logprobs = nullptr;
  // The ids of these tokens, in the same way; null: not asked for.
  std::vector<int32_t>* tokens = nullptr;
  // Up to here.
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;  // Of the prompt.
  int64_t completion_tokens = 0;
  const Timings* timings = nullptr;  // Null: not asked for with every event.

  // The choice before its first token, which may be read already: the prompt's counts alone.
  ChoiceRef before_text() const {
    return {.index = index, .prompt_tokens = prompt_tokens, .cached_tokens = cached_tokens};
  }
};

// A choice's prompt, where the answer shows it.
struct PromptRef {
  std::span<const int32_t> tokens;
  // A JSON array with an entry for each token, in parts; empty: not asked for.
  std::vector<std::string> logprobs{};
};

// A beginning call of a function.
struct CallRef {
  int32_t number = 0;  // Of the choice's calls, from 0.
  std::string_view id;
  std::string_view name;
};

// A whole answer that is longer is sent in parts, as the client takes them.
inline constexpr size_t kAnswerPartBytes = 256 << 10;

class AnswerShape {
 public:
  virtual ~AnswerShape() = default;

  // `usage`: of the prompts; nothing is generated yet.
  virtual void begin(std::string& out, const Usage& usage) = 0;
  // Before begin_choice(), where the request asks to see the prompt.
  virtual void prompt(ChoiceRef /*choice*/, PromptRef /*prompt*/) {}
  virtual void begin_choice(std::string& out, ChoiceRef choice) = 0;
  // How far the prompt is computed, if the request asks for it.
  virtual void progress(std::string& /*out*/, ChoiceRef /*choice*/, const PromptProgress&) {}
  // The text may be empty, where log-probabilities have waited for long.
  virtual void text(std::string& out, ChoiceRef choice, std::string_view text) = 0;
  virtual void reasoning(std::string& out, ChoiceRef choice, std::string_view text) = 0;
  virtual void begin_call(std::string& out, ChoiceRef choice, const CallRef& call) = 0;
  // A part of the arguments' JSON, of the call number `call`.
  virtual void call_arguments(std::string& out, ChoiceRef choice, int32_t call,
                              std::string_view text) = 0;
  virtual void end_call(std::string& out, ChoiceRef choice, int32_t call) = 0;
  virtual void finish(std::string& out, ChoiceRef choice, const Finish& finish) = 0;
  // Before end() of a whole answer: only these choices are sent, in this order, counted anew.
  virtual void keep(std::vector<int32_t> /*choices*/) {}
  // The last events, or the whole answer, of which a long one leaves something for later.
  virtual void end(std::string& out, const Usage& usage) = 0;
  // After end(): whether something is left, and the next part of it, kAnswerPartBytes at most.
  virtual bool has_more() const { return false; }
  virtual void append_more(std::string& /*out*/) {}
  // An error in mid-stream: the last events. Whole answers fail as plain responses.
  virtual void fail(std::string& out, const Error& error) = 0;
  // What a stream says after a long silence, also before begin().
  virtual std::string_view keep_alive() const { return ": keep-alive\n\n"; }
  // Of a stream.
  virtual std::string_view content_type() const { return "text/event-stream; charset=utf-8"; }
};

}  // namespace weir::api
