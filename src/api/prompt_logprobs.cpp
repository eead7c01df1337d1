#include "api/prompt_logprobs.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "api/logprob_list.h"
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

void append_prompt_logprobs(std::string& out, const sched::Request& request,
                            const text::Tokenizer& tokenizer, int32_t top_count) {
  JsonWriter json(out);
  json.begin_array().null();
  const int32_t count = request.prompt_log ? request.prompt_log->size() : 0;
  for (int32_t i = 0; i < count; ++i) {
    const TokenLogprob own = (*request.prompt_log)[i];
    json.begin_object();
    write_entry(json, own, request.prompt_ranks[static_cast<size_t>(i)], tokenizer);
    std::span<const TokenLogprob> top = request.prompt_log->top(i);
    top = top.first(std::min(top.size(), static_cast<size_t>(top_count)));
    int32_t rank = 0;
    for (const TokenLogprob& alternative : top) {
      ++rank;
      if (alternative.token >= 0 && alternative.token != own.token)
        write_entry(json, alternative, rank, tokenizer);
    }
    json.end_object();
  }
  json.end_array();
}

}  // namespace weir::api
