// LogprobList: log-probabilities of the tokens that wait to be sent, as the JSON of their
// endpoint.
//
// Threads: owned by one stream.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/token_log.h"
#include "text/detokenizer.h"
#include "text/tokenizer.h"

namespace weir::api {

// Whose JSON, and how a token is named in it.
struct LogprobStyle {
  enum class Form : uint8_t { kChat, kCompletions, kResponses, kLlama };
  Form form = Form::kChat;
  bool by_id = false;  // "token_id:123" (vLLM), else by its text.
};

// JSON has no infinity; OpenAI writes this for a token that cannot occur.
inline constexpr float kImpossibleLogprob = -9999;

class LogprobList {
 public:
  LogprobList(LogprobStyle style, const text::Tokenizer& tokenizer, int32_t top_count)
      : style_(style), tokenizer_(tokenizer), top_count_(top_count) {}

  // `begin`: where the token begins in the text.
  void add(TokenLogprob chosen, std::span<const TokenLogprob> top,
           const text::Detokenizer::Place& begin);
  // Completions: the first token of a prompt, which nothing precedes.
  void add_first(int32_t token);
  // Takes back the tokens that begin at or after this byte of the text: they lie in a stop string.
  void drop_from(int64_t text_bytes);

  bool empty() const { return marks_.empty(); }
  // About the length of the JSON value.
  size_t json_bytes() const;
  // Appends the JSON value, {"content":[...]} or {"tokens":[...], ...}, and forgets its tokens. Of
  // responses: the members of an array; of llama-server's: the array.
  void write_and_clear(std::string& out);
  void clear();

 private:
  // Where an entry begins in the text and in the four lists.
  struct Mark {
    int64_t text_byte = 0;
    size_t list[4] = {};
  };

  void add_chat(TokenLogprob chosen, std::span<const TokenLogprob> top);
  void add_completion(TokenLogprob chosen, std::span<const TokenLogprob> top, int64_t text_offset);
  void append_chat_token(std::string& out, TokenLogprob token) const;
  std::string chat_name(int32_t token) const;
  std::string completion_name(int32_t token) const;

  const LogprobStyle style_;
  const text::Tokenizer& tokenizer_;
  const int32_t top_count_;
  std::vector<Mark> marks_;
  // All but completions use the first; completions: tokens, token_logprobs, top_logprobs,
  // text_offset.
  std::string lists_[4];
};

}  // namespace weir::api
