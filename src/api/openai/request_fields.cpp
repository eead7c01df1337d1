#include "api/openai/request_fields.h"

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "api/openai/chat_messages.h"
#include "api/openai/tool_fields.h"
#include "api/openai/vllm_fields.h"
#include "api/request/request_values.h"
#include "api/request/structured_output.h"
#include "sched/request.h"

namespace weir::api::openai {

namespace {

Result<void> parse_stop_token_ids(const FieldInput& in, GenerateRequest& out) {
  JsonArray array;
  if (in.value.get(array) != simdjson::SUCCESS)
    return wrong_type(in.path, "an array of integers", in.value);
  if (array.size() > kStopTokenIdsMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kStopTokenIdsMax) +
                                     " ids, found " + std::to_string(array.size()));
  return parse_token_ids(in.path, array, in.limits, out.stop_token_ids);
}

Result<void> parse_stream_options(const FieldInput& in, Request& out) {
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  out.has_stream_options = true;
  const auto read = [&](std::string_view key, bool& flag) -> Result<void> {
    const auto value = json_get(object, key);
    if (value && value->get(flag) != simdjson::SUCCESS)
      return wrong_type(join(in.path, key), "a boolean", *value);
    return {};
  };
  WEIR_TRY(read("include_usage", out.include_usage));
  return read("continuous_usage_stats", out.continuous_usage);
}

Result<void> parse_prompt(const FieldInput& in, GenerateRequest& out) {
  return parse_prompts(in.path, in.value, kChoicesMax, in.limits, out.prompts);
}

// Completions: `logprobs` is the number of alternatives.
Result<void> parse_completion_logprobs(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t count, integer_of(in.path, in.value));
  WEIR_TRY(check_range(in.path, static_cast<double>(count), 0, sched::kTopLogprobsMax));
  out.logprobs = true;
  out.top_logprobs = count;
  return {};
}

Result<void> parse_modalities(const FieldInput& in, GenerateRequest&) {
  JsonArray array;
  if (in.value.get(array) != simdjson::SUCCESS)
    return wrong_type(in.path, "an array of strings", in.value);
  size_t index = 0;
  for (const JsonValue value : array) {
    WEIR_ASSIGN(const std::string_view text, as_string(at(in.path, index), value));
    if (text != "text")
      return unsupported(at(in.path, index),
                         "expected \"text\", found \"" + std::string(shown(text)) + "\"");
    ++index;
  }
  return {};
}

Result<void> parse_template_kwargs(const FieldInput& in, GenerateRequest& out) {
  if (!in.value.is_object()) return wrong_type(in.path, "an object", in.value);
  JsonWriter(out.template_kwargs).value(in.value);
  return {};
}

Result<void> parse_breakers(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray array, as_array(in.path, in.value));
  if (array.size() > kBreakersMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kBreakersMax) +
                                     " strings, found " + std::to_string(array.size()));
  std::vector<std::string>& breakers = out.dry_sequence_breakers.emplace();
  for (const JsonValue value : array) {
    const std::string path = at(in.path, breakers.size());
    WEIR_ASSIGN(const std::string_view text, as_string(path, value));
    if (text.empty() || text.size() > kBreakerBytesMax)
      return out_of_range(path, "expected 1 to " + std::to_string(kBreakerBytesMax) +
                                    " bytes, found " + std::to_string(text.size()));
    breakers.emplace_back(text);
  }
  return {};
}

Result<void> parse_budget_message(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const std::string_view text, as_string(in.path, in.value));
  if (text.size() > kReasoningMessageBytesMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kReasoningMessageBytesMax) +
                                     " bytes, found " + std::to_string(text.size()));
  out.reasoning_budget_message = std::string(text);
  return {};
}

Result<void> parse_reasoning_format(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const std::string_view text, as_string(in.path, in.value));
  if (text != "auto" && text != "none" && text != "deepseek")
    return out_of_range(
        in.path, "expected auto, none or deepseek, found \"" + std::string(shown(text)) + "\"");
  out.reasoning_format = std::string(text);
  return {};
}

// {"type": "content", "content": a string or parts}
Result<void> parse_prediction(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonObject object, as_object(in.path, in.value));
  WEIR_ASSIGN(const std::string_view type, required_string(in.path, object, "type"));
  if (type != "content")
    return out_of_range(join(in.path, "type"),
                        "expected \"content\", found \"" + std::string(shown(type)) + "\"");
  const auto content = json_get(object, "content");
  if (!content) return missing(join(in.path, "content"));
  WEIR_ASSIGN(out.prediction, content_text(join(in.path, "content"), *content));
  return {};
}

using G = Request;
constexpr uint8_t kChat = static_cast<uint8_t>(Endpoint::kChat);
constexpr uint8_t kCompletions = static_cast<uint8_t>(Endpoint::kCompletions);
constexpr uint8_t kResponses = static_cast<uint8_t>(Endpoint::kResponses);
constexpr uint8_t kInfill = static_cast<uint8_t>(Endpoint::kInfill);
constexpr uint8_t kLlama = static_cast<uint8_t>(Endpoint::kLlama);
constexpr double kCountMax = INT32_MAX;
constexpr double kSeedMax = 0x1p63;

constexpr auto kFields = std::to_array<RequestField>({
    // OpenAI requires it; requests that are typed by hand leave it out, for there is one model.
    {"model", "string", &G::model, "The model's id or one of its aliases."},
    {"messages", "array", &parse_messages, "The conversation.", 0, 0, kChat, true},
    {"prompt", "string or array", &parse_prompt, "Text or token ids, one or several.", 0, 0,
     kCompletions, true},
    {"tools", "array", &parse_tools,
     "Functions that the model may call. What of a schema cannot be enforced is left out and named "
     "in "
     "x-weir-ignored, or refused if the function is strict.",
     0, 0, kChat},
    {"tool_choice", "string or object", &parse_tool_choice,
     "none, auto, required, a named function, or allowed_tools.", 0, 0, kChat},
    {"parallel_tool_calls", "boolean", &G::parallel_tool_calls, "More than one call an answer.", 0,
     0, kChat | kResponses},
    {"chat_template_kwargs", "object", &parse_template_kwargs, "Variables for the chat template.",
     0, 0, kChat | kResponses},
    {"chat_template", "string", &G::chat_template,
     "A Jinja template in the place of the model's, where --trust-request-template allows it "
     "(vLLM).",
     0, 0, kChat},
    {"reasoning_effort", "string", &G::reasoning_effort,
     "A variable for the chat template; none turns thinking off.", 0, 0, kChat},
    {"enable_thinking", "boolean", &G::enable_thinking,
     "A variable for the chat template: the model thinks before it answers.", 0, 0,
     kChat | kResponses},
    {"reasoning_format", "string", &parse_reasoning_format,
     "none leaves the reasoning in the content; auto, deepseek: reasoning_content (llama.cpp).", 0,
     0, kChat | kResponses},
    {"reasoning_budget", "integer", &G::reasoning_budget,
     "Most tokens of the reasoning: then it is closed, and the answer begins. 0: none, and the "
     "chat template is told so; -1: any number; absent: as --reasoning-budget says.",
     -1, kCountMax, kChat | kResponses},
    {"reasoning_budget_tokens", "integer", &G::reasoning_budget, "The same (llama.cpp).", -1,
     kCountMax, kChat | kResponses},
    {"thinking_budget_tokens", "integer", &G::reasoning_budget, "The same (llama.cpp).", -1,
     kCountMax, kChat | kResponses},
    {"thinking_token_budget", "integer", &G::reasoning_budget, "The same (vLLM).", -1, kCountMax,
     kChat | kResponses},
    {"reasoning_budget_message", "string", &parse_budget_message,
     "What closes reasoning that has used up its budget (llama.cpp).", 0, 0, kChat | kResponses},
    {"add_generation_prompt", "boolean", &G::add_generation_prompt,
     "Ends the prompt where the assistant's turn begins; unless the last message is continued.", 0,
     0, kChat},
    {"continue_final_message", "boolean", &G::continue_final_message,
     "Continues the last message, which must be the assistant's.", 0, 0, kChat},

    {"temperature", "number", &G::temperature, "0 is greedy.", 0, 2},
    {"top_p", "number", &G::top_p, "Nucleus sampling.", 0, 1},
    {"top_k", "integer", &G::top_k, "The k most likely tokens; 0 or -1: all.", -1, kCountMax},
    {"min_p", "number", &G::min_p, "Least share of the most likely token's probability.", 0, 1},
    {"typical_p", "number", &G::typical_p, "Locally typical sampling.", 0, 1},
    {"repeat_penalty", "number", &G::repetition_penalty, "llama.cpp's name of repetition_penalty.",
     0.01, 10},
    {"repetition_penalty", "number", &G::repetition_penalty, "Over prompt and output; 1: none.",
     0.01, 10},
    {"repeat_last_n", "integer", &G::repeat_last_n,
     "How many of the last tokens the three penalties see; -1: all, 0: none (llama.cpp).", -1,
     kCountMax},
    {"frequency_penalty", "number", &G::frequency_penalty, "For each occurrence in the output.", -2,
     2},
    {"presence_penalty", "number", &G::presence_penalty, "For any occurrence in the output.", -2,
     2},
    {"top_n_sigma", "number", &G::top_n_sigma,
     "Logits within so many standard deviations of the best; 0 or less: all (llama.cpp).", -1, 100},
    {"xtc_probability", "number", &G::xtc_probability,
     "How often all but the least of the likely tokens are left out (llama.cpp).", 0, 1},
    {"xtc_threshold", "number", &G::xtc_threshold,
     "From this probability on a token is likely; above 0.5: off (llama.cpp).", 0, 1},
    {"dynatemp_range", "number", &G::dynatemp_range,
     "The temperature lies so far below or above, by the entropy; 0: it is fixed (llama.cpp).", 0,
     100},
    {"dynatemp_exponent", "number", &G::dynatemp_exponent, "Of the entropy's share (llama.cpp).", 0,
     100},
    {"dry_multiplier", "number", &G::dry_multiplier,
     "Penalty of a token that goes on with a repetition; 0: none (llama.cpp).", 0, 100},
    {"dry_base", "number", &G::dry_base, "By this the penalty grows with each token repeated.", 0,
     100},
    {"dry_allowed_length", "integer", &G::dry_allowed_length,
     "Repetitions of fewer tokens are free.", 0, kCountMax},
    {"dry_penalty_last_n", "integer", &G::dry_penalty_last_n,
     "How many of the last tokens are searched; -1: prompt and output, 0: none.", -1, kCountMax},
    {"dry_sequence_breakers", "array", &parse_breakers,
     "Texts that no repetition reaches across; absent: line feed, colon, quote and asterisk."},
    {"logit_bias", "object", &parse_logit_bias, "Token id to addend, -100 to 100.", 0, 0,
     kChat | kCompletions | kResponses},
    {"seed", "integer", &G::seed, "The same seed and request give the same text.", -kSeedMax,
     kSeedMax, kChat | kCompletions | kResponses},
    {"bad_words", "array", &parse_bad_words,
     "Texts whose tokens must not be written, with and without a space before (vLLM)."},
    {"allowed_token_ids", "array", &parse_allowed_token_ids,
     "No other tokens are written, end tokens included (vLLM)."},
    {"use_beam_search", "boolean", &refuse, "Not supported (vLLM); n, best_of and sampling are.", 0,
     0, kChat | kCompletions},

    {"max_tokens", "integer", &G::max_tokens, "Most tokens of each choice.", 1, kCountMax, kChat},
    {"max_tokens", "integer", &G::max_tokens, "Most tokens of each choice; 0 beside echo.", 0,
     kCountMax, kCompletions},
    {"max_completion_tokens", "integer", &G::max_completion_tokens, "Newer name of max_tokens.", 1,
     kCountMax, kChat},
    {"min_tokens", "integer", &G::min_tokens, "No end of sequence before this many.", 0, kCountMax},
    {"stop", "string or array", &parse_stop, "Strings that end a choice."},
    {"stop_token_ids", "array", &parse_stop_token_ids, "Tokens that end a choice."},
    {"ignore_eos", "boolean", &G::ignore_eos, "Goes on after the end-of-sequence token."},
    {"include_stop_str_in_output", "boolean", &G::include_stop_str_in_output,
     "Keeps the stop string in the text."},

    {"n", "integer", &G::n, "Choices; choice i is sampled with seed + i.", 1, kChoicesMax,
     kChat | kCompletions},
    {"stream", "boolean", &G::stream, "Server-sent events."},
    {"stream_options", "object", &parse_stream_options,
     "include_usage: a last chunk with usage; "
     "continuous_usage_stats: usage so far in each.",
     0, 0, kChat | kCompletions},
    {"timings_per_token", "boolean", &G::timings_per_token,
     "timings in every chunk; they are in the last one always (llama.cpp).", 0, 0,
     kChat | kCompletions | kInfill | kLlama},
    {"return_progress", "boolean", &G::return_progress,
     "With stream: chunks with prompt_progress while the prompt is computed (llama.cpp).", 0, 0,
     kChat | kCompletions | kInfill | kLlama},
    {"skip_special_tokens", "boolean", &G::skip_special_tokens,
     "Leaves special tokens out of the text."},
    {"logprobs", "boolean", &G::logprobs, "Log-probabilities of the tokens.", 0, 0, kChat},
    {"top_logprobs", "integer", &G::top_logprobs, "Alternatives of each token.", 0, 20, kChat},
    {"logprobs", "integer", &parse_completion_logprobs, "Alternatives of each token.", 0, 20,
     kCompletions},
    {"best_of", "integer", &G::best_of,
     "So many are sampled, and the n with the highest mean log-probability sent; not streamed.", 0,
     20, kCompletions},
    {"echo", "boolean", &G::echo,
     "The text begins with the prompt; with logprobs those of its tokens too.", 0, 0, kCompletions},
    {"echo", "boolean", &G::echo_message,
     "The answer's text begins with the last message, if that is of the same role (vLLM).", 0, 0,
     kChat},
    {"prompt_logprobs", "integer", &parse_prompt_logprobs,
     "Log-probabilities and ranks of the prompt's tokens, with so many alternatives (vLLM); not "
     "streamed.",
     0, 20, kChat | kCompletions},
    {"return_token_ids", "boolean", &G::return_token_ids,
     "prompt_token_ids and token_ids beside the text (vLLM).", 0, 0, kChat | kCompletions},
    {"return_tokens_as_token_ids", "boolean", &G::tokens_by_id,
     "Log-probabilities name tokens \"token_id:ID\" (vLLM).", 0, 0, kChat | kCompletions},
    {"include_reasoning", "boolean", &G::include_reasoning,
     "Off: what the model thinks is left out of the answer (vLLM).", 0, 0, kChat},
    {"truncate_prompt_tokens", "integer", &parse_truncation,
     "Of a longer prompt the last so many tokens; -1: as many as there is room for (vLLM).", -1,
     kCountMax, kChat | kCompletions},
    {"truncation_side", "string", &parse_truncation_side,
     "left, or right: then the first tokens are kept (vLLM).", 0, 0, kChat | kCompletions},
    {"suffix", "string", &G::suffix,
     "The text after the answer, for models with fill-in-the-middle tokens.", 0, 0, kCompletions},

    {"cache_salt", "string", &G::cache_salt, "Prompts of different salts share no cache."},
    {"priority", "integer", &G::priority,
     "Lower goes first (vLLM); below 0 only with a key that has one.", -0x1p31, kCountMax},
    {"cache_prompt", "boolean", {}, "Accepted; the prefix cache is always on."},

    {"response_format", "object", &parse_response_format,
     "type text, json_object or json_schema. A schema's keyword that cannot be enforced is "
     "refused, "
     "or left out and named in x-weir-ignored if json_schema.strict is false.",
     0, 0, kChat | kCompletions},
    {"modalities", "array", &parse_modalities, "[\"text\"].", 0, 0, kChat},
    {"functions", "array", &parse_functions, "The older name of tools.", 0, 0, kChat},
    {"function_call", "string or object", &parse_function_call, "The older name of tool_choice.", 0,
     0, kChat},
    {"guided_json", "object or string", &parse_guided_json, "A JSON schema (vLLM)."},
    {"guided_regex", "string", &parse_guided_regex,
     "A regular expression for the whole answer (vLLM)."},
    {"guided_choice", "array", &parse_guided_choice, "The answers to choose from (vLLM)."},
    {"guided_grammar", "string", &parse_guided_grammar, "A GBNF or Lark grammar (vLLM)."},
    {"structured_outputs", "object", &parse_structured_outputs,
     "json, regex, choice, grammar or json_object (vLLM)."},
    {"grammar", "string", &parse_gbnf, "A GBNF grammar (llama.cpp)."},
    {"json_schema", "object or string", &parse_guided_json, "A JSON schema (llama.cpp)."},

    {"user", "string", {}, "Accepted.", 0, 0, kChat | kCompletions},
    {"metadata", "object", {}, "Accepted.", 0, 0, kChat | kCompletions},
    {"store", "boolean", {}, "Accepted; nothing is stored.", 0, 0, kChat | kCompletions},
    {"service_tier", "string", {}, "Accepted."},
    {"verbosity", "string", {}, "Accepted."},
    {"prediction", "object", &parse_prediction,
     "{type: content, content: a text}: what of the answer is known beforehand, such as a file that "
     "it edits. Where it is right the answer comes faster; it never changes."},
    {"speculative.n_max", "integer", &G::draft_max,
     "Most drafts of a step, within the server's --num-draft-tokens; 0: none (llama.cpp).", 0,
     kCountMax},
    {"speculative.n_min", "integer", &G::draft_min, "Fewer drafts are left out (llama.cpp).", 0,
     kCountMax},
    {"speculative.p_min", "number", &G::draft_p_min,
     "How likely a draft must be, as its source sees it (llama.cpp).", 0, 1},
    {"prompt_cache_key", "string", {}, "Accepted.", 0, 0, kChat | kCompletions},
    {"safety_identifier", "string", {}, "Accepted.", 0, 0, kChat | kCompletions},
});

// Rules between fields.
Result<void> check_chat(Request& request) {
  if (request.top_logprobs.value_or(0) > 0 && !request.logprobs)
    return out_of_range("top_logprobs", "expected logprobs to be true beside it");
  WEIR_TRY(check_tool_choice(request.legacy_functions ? "function_call" : "tool_choice", request));
  if (request.continue_final_message && request.add_generation_prompt.value_or(false))
    return out_of_range("add_generation_prompt",
                        "expected false beside continue_final_message: the prompt ends either in "
                        "the last message or where another begins");
  if (request.continue_final_message && request.last_role != "assistant")
    return out_of_range(
        "continue_final_message",
        "expected the last message to be the assistant's, found " + request.last_role);
  return {};
}

Result<void> check_completions(const Request& request) {
  const int32_t n = request.choices_per_prompt(), candidates = request.candidates_per_prompt();
  if (request.best_of.value_or(0) > 0 && *request.best_of < n)
    return out_of_range("best_of", "expected at least n, " + std::to_string(n) + ", found " +
                                       std::to_string(*request.best_of));
  if (request.stream && candidates > n)
    return out_of_range("best_of",
                        "expected stream to be false beside it: which are best is known "
                        "at the end");
  if (request.token_limit() == 0 && !request.echo)
    return out_of_range("max_tokens", "expected at least 1, or echo to be true beside 0");
  if (!request.suffix.empty() && request.echo)
    return out_of_range("echo", "expected no suffix beside it");
  if (!request.suffix.empty())
    for (const Prompt& prompt : request.prompts)
      if (!std::holds_alternative<std::string>(prompt))
        return out_of_range("suffix", "expected prompts of text beside it, found token ids");
  return check_choices(request);
}

Result<void> check_both(const Request& request) {
  WEIR_TRY(check_vllm_fields(request));
  if (request.has_stream_options && !request.stream)
    return out_of_range("stream_options", "expected stream to be true beside it");
  const auto limit = request.token_limit();
  if (request.min_tokens && limit && *request.min_tokens > *limit)
    return out_of_range("min_tokens", "expected at most max_tokens, " + std::to_string(*limit) +
                                          ", found " + std::to_string(*request.min_tokens));
  return {};
}

}  // namespace

std::span<const RequestField> request_fields() { return kFields; }

std::vector<FieldDoc> fields_of(Endpoint endpoint) {
  return field_docs(kFields, static_cast<uint8_t>(endpoint));
}
std::vector<FieldDoc> chat_fields() { return fields_of(Endpoint::kChat); }
std::vector<FieldDoc> completion_fields() { return fields_of(Endpoint::kCompletions); }

Result<void> parse_fields(Endpoint endpoint, JsonObject body, const RequestLimits& limits,
                          Request& out) {
  return read_fields(kFields, static_cast<uint8_t>(endpoint), body, limits, out);
}

Result<Request> parse_generate(Endpoint endpoint, std::string_view body,
                               const RequestLimits& limits) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  Request request;
  WEIR_TRY(parse_fields(endpoint, object, limits, request));
  static const std::vector<FieldDoc> kChatFields = chat_fields();
  static const std::vector<FieldDoc> kCompletionFields = completion_fields();
  request.ignored.add_unknown(object,
                              endpoint == Endpoint::kChat ? kChatFields : kCompletionFields);
  request.infill = !request.suffix.empty();
  WEIR_TRY(check_both(request));
  WEIR_TRY(endpoint == Endpoint::kChat ? check_chat(request) : check_completions(request));
  return request;
}

}  // namespace weir::api::openai
