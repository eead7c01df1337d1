#include "api/answer/prompt_logprobs.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "api/answer/logprob_list.h"
#include "base/json.h"

namespace weir::api {

namespace {

void write_entry(JsonWriter& json, TokenLogprob token, int32_t rank,
                 const text::Tokenizer& tokenizer) {
  json.key(std::to_string(token.token)).begin_object();
  json.field("logprob", std::isfinite(token.logprob) ? token.logprob : kImpossibleLogprob);
  json.field("rank", rank).field("decoded_token", tokenizer.piece(token.token)).end_object();
}

}  // namespace

void PromptLogprobs::make(const sched::Request& request, size_t bytes_max) {
  const int32_t count = request.prompt_log ? request.prompt_log->size() : 0;
  std::string& out = parts_.emplace_back();
  out.reserve(bytes_max + bytes_max / 8);
  if (next_ == 0) out += "[null";
  for (; next_ < count && out.size() < bytes_max; ++next_) append_token(out, request, next_);
  done_ = next_ == count;
  if (done_) out += ']';
}

void PromptLogprobs::append_token(std::string& out, const sched::Request& request,
                                  int32_t index) const {
  out += ',';
  JsonWriter json(out);
  const TokenLogprob own = (*request.prompt_log)[index];
  json.begin_object();
  write_entry(json, own, request.prompt_ranks[static_cast<size_t>(index)], tokenizer_);
  std::span<const TokenLogprob> top = request.prompt_log->top(index);
  top = top.first(std::min(top.size(), static_cast<size_t>(top_count_)));
  int32_t rank = 0;
  for (const TokenLogprob& alternative : top) {
    ++rank;
    if (alternative.token >= 0 && alternative.token != own.token)
      write_entry(json, alternative, rank, tokenizer_);
  }
  json.end_object();
}

}  // namespace weir::api
