#include "api/answer/echo.h"

#include <algorithm>

#include "base/check.h"

namespace weir::api {

namespace {

int64_t characters(std::string_view text) {
  return std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; });
}

// How many of the prompt's first tokens are those that the tokenizer puts before any text.
int32_t added_before(const text::Tokenizer& tokenizer, const std::vector<int32_t>& prompt) {
  const std::vector<int32_t> around = tokenizer.surrounding_ids();
  const auto differ = std::ranges::mismatch(prompt, around).in1;
  return static_cast<int32_t>(differ - prompt.begin());
}

}  // namespace

Echo::Echo(const text::Tokenizer& tokenizer)
    : tokenizer_(tokenizer),
      detokenizer_(tokenizer, {.skip_special = false, .strip_leading_space = true}) {}

std::string Echo::take(const sched::Request& request, size_t bytes_max, LogprobList* logprobs) {
  CHECK(!done_);
  const auto length = static_cast<int32_t>(request.prompt.size());
  if (next_ == 0) added_ = added_before(tokenizer_, request.prompt);
  std::string text;
  const auto json_bytes = [&] { return logprobs ? logprobs->json_bytes() : 0; };
  const size_t json_before = json_bytes();
  while (next_ < length && text.size() + json_bytes() - json_before < bytes_max) {
    const int32_t token = request.prompt[static_cast<size_t>(next_)];
    text::Detokenizer::Place begin;
    if (next_ >= added_) {
      text += detokenizer_.push(token);
      begin = detokenizer_.token_begin();
    }
    if (logprobs && next_ == 0)
      logprobs->add_first(token);
    else if (logprobs)
      logprobs->add((*request.prompt_log)[next_ - 1], request.prompt_log->top(next_ - 1), begin);
    ++next_;
  }
  if (next_ == length) {
    text += detokenizer_.finish();
    done_ = true;
  }
  end_.bytes += static_cast<int64_t>(text.size());
  end_.characters += characters(text);
  return text;
}

}  // namespace weir::api
