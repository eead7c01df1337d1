#include "api/answer/answer_options.h"

#include <algorithm>
#include <utility>

#include "api/memory/memory_cost.h"

namespace weir::api {

AnswerOptions answer_options(const ProtocolTraits& protocol, const GenerateRequest& request) {
  AnswerOptions options;
  options.stream = request.stream;
  options.collected = !request.stream || protocol.repeats_answer;
  options.timings_per_token = request.stream && request.timings_per_token;
  options.logprobs = request.logprobs;
  options.top_logprobs =
      request.logprobs ? static_cast<int32_t>(request.top_logprobs.value_or(0)) : 0;
  options.logprob_style = {protocol.logprobs, request.tokens_by_id};
  options.return_token_ids = request.return_token_ids;
  if (request.prompt_logprobs)
    options.prompt_logprobs = static_cast<int32_t>(*request.prompt_logprobs);
  options.shows_prompt =
      request.shows_prompt || request.return_token_ids || request.prompt_logprobs;
  options.drop_reasoning = !request.include_reasoning;
  // The answer's role is the assistant's where its turn is opened, else the last message's.
  if (request.echo_message &&
      (!request.add_generation_prompt.value_or(true) || request.last_role == "assistant"))
    options.preamble = request.last_content;
  options.skip_special_tokens = request.skip_special_tokens;
  options.begins_text = protocol.is_chat && !request.continue_final_message;
  options.include_stop = request.include_stop_str_in_output;
  options.stop = request.stop;
  options.choices_per_prompt = request.candidates_per_prompt();
  options.shown_per_prompt = request.choices_per_prompt();
  options.echo = request.echo;
  options.may_call = request.may_call();
  options.ignored = request.ignored;
  options.call_id_prefix = protocol.call_id_prefix;
  return options;
}

size_t choice_bytes(const AnswerOptions& options, const sched::Prompt& prompt, int32_t max_tokens) {
  const size_t prompt_tokens = prompt.size();
  const int32_t echo_top = options.echo && options.logprobs ? options.top_logprobs : -1;
  const int32_t prompt_top = std::max(echo_top, options.prompt_logprobs.value_or(-1));
  return request_bytes(sched::prompt_bytes(prompt), max_tokens, options.top_logprobs) +
         options.biases * sizeof(std::pair<int32_t, float>) +
         (prompt_top >= 0 ? prompt_log_bytes(prompt_tokens, prompt_top) : 0) +
         (options.may_call ? held_call_bytes(max_tokens) : 0) +
         (options.copies && max_tokens > 1
              ? sched::TextIndex::memory_bytes(static_cast<int64_t>(prompt_tokens) + max_tokens)
              : 0) +
         (options.remembers ? history_bytes(prompt_tokens, max_tokens) : 0);
}

namespace {

// What an answer holds of a prompt and of settings that it shows, for each of its choices.
size_t shown_request_bytes(const AnswerOptions& options, size_t prompt_tokens, int32_t max_tokens) {
  size_t bytes = kAnswerCopies * (options.preamble.size() + options.settings_bytes);
  if (options.return_token_ids)
    bytes += token_ids_bytes(prompt_tokens + static_cast<size_t>(max_tokens));
  if (options.shows_prompt) bytes += answer_bytes(static_cast<int32_t>(prompt_tokens), false, 0);
  if (options.prompt_logprobs)
    bytes += answer_bytes(static_cast<int32_t>(prompt_tokens), true, *options.prompt_logprobs);
  return bytes;
}

}  // namespace

AnswerCost cost_of(const AnswerOptions& options, const std::vector<sched::Prompt>& prompts,
                   const std::vector<int32_t>& limits) {
  AnswerCost cost;
  const auto choices = static_cast<size_t>(options.choices_per_prompt);
  for (size_t i = 0; i < prompts.size(); ++i) {
    cost.requests += choices * choice_bytes(options, prompts[i], limits[i]);
    if (options.collected)
      cost.whole += choices * answer_bytes(limits[i], options.logprobs, options.top_logprobs);
    if (options.collected && options.stream) cost.whole += choices * last_events_bytes(limits[i]);
    cost.whole += choices * shown_request_bytes(options, prompts[i].size(), limits[i]);
    if (!options.stream && options.echo)
      cost.whole += choices * answer_bytes(static_cast<int32_t>(prompts[i].size()),
                                           options.logprobs, options.top_logprobs);
  }
  return cost;
}

}  // namespace weir::api
