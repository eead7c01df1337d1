#include "api/prepare.h"

#include <algorithm>
#include <array>
#include <functional>

#include "api/api_error.h"
#include "api/bias_list.h"
#include "api/breaker_store.h"
#include "api/grammar_store.h"
#include "api/memory_cost.h"
#include "api/output_plan.h"
#include "api/prompt_tokens.h"
#include "api/reasoning_limit.h"
#include "api/sampling_fields.h"

namespace weir::api {

namespace {

// Variables of ours, which chat_template_kwargs cannot replace.
constexpr std::array<std::string_view, 3> kReservedVariables = {"messages", "tools",
                                                                "add_generation_prompt"};

Result<void> write_kwargs(const std::string& kwargs, JsonWriter& json) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(kwargs));
  JsonObject object;
  if (doc.root().get(object) != simdjson::SUCCESS) return {};
  for (const auto [key, value] : object)
    if (std::find(kReservedVariables.begin(), kReservedVariables.end(), key) ==
        kReservedVariables.end())
      json.field(key, value);
  return {};
}

// A template is a program: the interpreter's limits bound it, but that a client may send one at all
// is for whoever runs the server to say.
Result<text::ChatTemplate> template_of(const ApiConfig& config, const std::string& source) {
  if (!config.trust_request_template)
    return unsupported("chat_template",
                       "this server takes no templates from requests (--trust-request-template)");
  Result<text::ChatTemplate> parsed = text::ChatTemplate::parse(source);
  if (!parsed)
    return fail(ErrorCode::kInvalid, "Invalid value for 'chat_template': " + parsed.error().message,
                "chat_template", "invalid_value");
  return parsed;
}

// Templates know the switch by two names. What chat_template_kwargs says wins.
void write_thinking(const ApiConfig& config, const GenerateRequest& request, JsonWriter& json) {
  const auto said = [&](std::string_view name) {
    std::string key;
    append_json_string(key, name);
    return request.template_kwargs.find(key + ":") != std::string::npos;
  };
  std::optional<bool> thinking = config.thinking ? config.thinking : request.thinking_unasked;
  if (request.reasoning_effort == "none" || reasoning_budget(config, request) == 0)
    thinking = false;
  if (request.enable_thinking) thinking = request.enable_thinking;
  for (const char* name : {"enable_thinking", "thinking"})
    if (thinking && !said(name)) json.field(name, *thinking);
  if (request.reasoning_effort && request.reasoning_effort != "none" && !said("reasoning_effort"))
    json.field("reasoning_effort", *request.reasoning_effort);
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\f\v";
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

// Ends the prompt where the last message's text ends, as transformers does it: templates may trim
// the text and always close the turn.
Result<void> cut_after_final_message(std::string& prompt, const std::string& content) {
  const std::string_view text = trim(content);
  const size_t begin = prompt.rfind(text);
  if (text.empty() || begin == std::string::npos)
    return out_of_range("continue_final_message",
                        "the chat template does not repeat the last message's text, so there is "
                        "nothing to continue");
  // The client's own trailing space belongs to the text if the template kept it.
  const size_t kept =
      prompt.compare(begin, content.size(), content) == 0 ? content.size() : text.size();
  prompt.resize(begin + kept);
  return {};
}

// Alternatives of each token of the prompt: for echo, or for prompt_logprobs.
int32_t prompt_top_of(const GenerateRequest& request) {
  const int64_t echoed = request.echo && request.logprobs ? request.top_logprobs.value_or(0) : 0;
  return static_cast<int32_t>(std::max(echoed, request.prompt_logprobs.value_or(0)));
}

// A text is forbidden as its tokens, with and without a space before it.
std::shared_ptr<const sample::TokenBounds> bounds_of(const ApiConfig& config,
                                                     const GenerateRequest& request) {
  if (request.bad_words.empty() && !request.allowed_token_ids) return nullptr;
  std::vector<std::vector<int32_t>> banned;
  for (const std::string& word : request.bad_words) {
    const std::string bare = word.substr(word.find_first_not_of(' '));
    for (const std::string& text : {bare, " " + bare}) {
      std::vector<int32_t> ids = config.tokenizer->encode(text, {.parse_special = true});
      const bool known = ids.empty() || std::ranges::find(banned, ids) != banned.end();
      if (!known) banned.push_back(std::move(ids));
    }
  }
  return std::make_shared<const sample::TokenBounds>(
      request.allowed_token_ids.value_or(std::vector<int32_t>()), std::move(banned));
}

Result<std::vector<std::pair<int32_t, float>>> biases_of(const ApiConfig& config,
                                                         const GenerateRequest& request) {
  BiasList biases;
  for (const auto& [token, bias] : request.logit_bias) WEIR_TRY(biases.add(token, bias));
  for (const auto& [text, bias] : request.text_bias)
    for (const int32_t token : config.tokenizer->encode(text, {.parse_special = true}))
      WEIR_TRY(biases.add(token, bias));
  return std::move(biases).take();
}

Result<sample::SamplingParams> sampling_of(const ServingContext& serving,
                                           const GenerateRequest& request, uint64_t seed) {
  sample::SamplingParams params = serving.config.defaults.sampling;
  apply_asked(request, params);
  if (params.has_dry()) params.dry_breakers = serving.breakers.get(request.dry_sequence_breakers);
  params.seed = seed;
  WEIR_ASSIGN(params.logit_bias, biases_of(serving.config, request));
  params.top_logprobs =
      request.logprobs ? static_cast<int32_t>(request.top_logprobs.value_or(0)) : 0;
  params.prompt_top_logprobs = prompt_top_of(request);
  params.min_tokens = static_cast<int32_t>(request.min_tokens.value_or(0));
  if (!request.ignore_eos) params.stop_token_ids = serving.config.defaults.eos_ids;
  if (!request.ignore_eos && request.infill && serving.infill)
    params.stop_token_ids.insert(params.stop_token_ids.end(), serving.infill->ends.begin(),
                                 serving.infill->ends.end());
  params.stop_token_ids.insert(params.stop_token_ids.end(), request.stop_token_ids.begin(),
                               request.stop_token_ids.end());
  return params;
}

// What max_tokens becomes: never more than the context leaves, which is at least 1 unless 0 is
// asked.
int32_t output_limit(const ApiConfig& config, const ProtocolTraits& protocol,
                     const GenerateRequest& request, int32_t left) {
  int64_t limit = left;
  if (const auto asked = request.token_limit())
    limit = *asked;
  else if (protocol.max_tokens_default > 0)
    limit = protocol.max_tokens_default;
  else if (config.max_tokens_default > 0)
    limit = config.max_tokens_default;
  return static_cast<int32_t>(std::min<int64_t>(limit, left));
}

// How much each prompt's choices may say; a prompt that is too long is refused.
Result<std::vector<int32_t>> output_limits(const ApiConfig& config, const PrepareInput& in,
                                           const ProtocolTraits& protocol,
                                           const GenerateRequest& request,
                                           const std::vector<std::vector<int32_t>>& prompts) {
  std::vector<int32_t> limits;
  for (const std::vector<int32_t>& prompt : prompts) {
    const auto length = static_cast<int64_t>(prompt.size());
    const int32_t output_min = request.token_limit() == 0 ? 0 : 1;
    WEIR_TRY(check_prompt_length(config, std::string(protocol.prompt_field), length, output_min,
                                 in.tokens_max));
    limits.push_back(
        output_limit(config, protocol, request, in.tokens_max - static_cast<int32_t>(length)));
  }
  return limits;
}

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

// Memory of all choices of an answer.
struct AnswerCost {
  size_t requests = 0;  // Each choice has a lease of its own part, until it ends.
  size_t whole = 0;     // Until the answer is sent.
};

size_t choice_bytes(const AnswerOptions& options, size_t prompt_tokens, int32_t max_tokens) {
  const int32_t echo_top = options.echo && options.logprobs ? options.top_logprobs : -1;
  const int32_t prompt_top = std::max(echo_top, options.prompt_logprobs.value_or(-1));
  return request_bytes(prompt_tokens, max_tokens, options.top_logprobs) +
         options.biases * sizeof(std::pair<int32_t, float>) +
         (prompt_top >= 0 ? prompt_log_bytes(prompt_tokens, prompt_top) : 0) +
         (options.may_call ? held_call_bytes(max_tokens) : 0) +
         (options.remembers ? history_bytes(prompt_tokens, max_tokens) : 0);
}

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

AnswerCost cost_of(const AnswerOptions& options, const std::vector<std::vector<int32_t>>& prompts,
                   const std::vector<int32_t>& limits) {
  AnswerCost cost;
  const auto choices = static_cast<size_t>(options.choices_per_prompt);
  for (size_t i = 0; i < prompts.size(); ++i) {
    cost.requests += choices * choice_bytes(options, prompts[i].size(), limits[i]);
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

// What could never be served is refused for good: "try again later" would be a lie.
Result<void> check_ever_fits(const ApiConfig& config, const MemoryBudget& budget,
                             const AnswerOptions& options, size_t prompts, const AnswerCost& cost) {
  const size_t choices = prompts * static_cast<size_t>(options.choices_per_prompt);
  if (choices > static_cast<size_t>(config.engine->queue_max()))
    return fail(
        ErrorCode::kInvalid,
        "Invalid value for 'n': expected at most " + std::to_string(config.engine->queue_max()) +
            " choices of all prompts together, as many as this server's queue holds; found " +
            std::to_string(choices) + ".",
        "n");
  return check_memory(budget, choices > 1 ? "n" : "max_tokens", cost.requests + cost.whole,
                      "a smaller n, max_tokens or number of logprobs, or a streamed answer");
}

int32_t priority_of(const GenerateRequest& request, const PrepareInput& in, Ignored& ignored) {
  const auto asked = static_cast<int32_t>(request.priority.value_or(in.priority_min));
  if (asked < in.priority_min)
    ignored.add("priority (" + std::to_string(in.priority_min) + " is the first allowed)");
  return std::max(asked, in.priority_min);
}

Result<std::unique_ptr<grammar::Matcher>> matcher_of(
    const ServingContext& serving, const OutputPlan& plan, bool begins_text,
    grammar::Interrupt* interrupt) {
  auto matcher =
      serving.grammars.matcher(*plan.grammar, begins_text, plan.parser != nullptr, interrupt);
  if (matcher || matcher.error().code == ErrorCode::kCancelled) return matcher;
  const bool unsupported = matcher.error().code == ErrorCode::kUnsupported;
  return fail(matcher.error().code, std::move(matcher.error().message), plan.grammar_field,
              unsupported ? "unsupported_parameter" : "invalid_value");
}

// How the answer is taken apart (`plan`), and the position at which its grammar begins. What of the
// schemas could not be enforced, and need not be, is noted.
Result<std::unique_ptr<grammar::Matcher>> plan_answer(
    const ServingContext& serving, const PrepareInput& in, const ProtocolTraits& protocol,
    const GenerateRequest& request, std::string_view chat_end, AnswerOptions& options,
    OutputPlan& plan) {
  if (protocol.is_chat) {
    plan = plan_output(serving.outputs, request, chat_end);
  } else {
    plan.grammar = request.grammar;
    plan.grammar_field = request.grammar_field;
  }
  options.parser = plan.parser;
  options.short_call_ids = plan.short_call_ids;
  if (plan.parser) options.markers = serving.outputs.markers;
  if (!plan.grammar) return nullptr;
  auto matcher = matcher_of(serving, plan, options.begins_text, in.interrupt.get());
  const bool binds_input = std::ranges::any_of(
      request.functions, [](const ToolFunction& function) { return function.input.has_value(); });
  if (!matcher && matcher.error().code != ErrorCode::kCancelled && binds_input) {
    plan = plan_output(serving.outputs, request, chat_end, /*inputs_bound=*/false);
    matcher = matcher_of(serving, plan, options.begins_text, in.interrupt.get());
    if (matcher) options.ignored.add("tools: the formats of custom tools");
  }
  if (!matcher) return matcher;
  for (const std::string& name : (*matcher)->automaton().left_out()) options.ignored.add(name);
  return matcher;
}

}  // namespace

Error context_error(const std::string& field, int64_t tokens_max, int64_t tokens,
                    bool counted_all) {
  return Error{ErrorCode::kContextLength,
               "This model's maximum context length is " + std::to_string(tokens_max) +
                   " tokens. However, your " + field + " resulted in " +
                   (counted_all ? "" : "at least ") + std::to_string(tokens) +
                   " tokens, which exceeds the context window (context_length_exceeded). Please "
                   "reduce the length of the " +
                   field + ". The " + prompt_too_long(tokens, std::min(tokens_max, tokens - 1)),
               field, "context_length_exceeded"};
}

// A beginning shows whether the text fits. One that does (long runs of spaces) proves nothing.
Result<void> check_text_length(const ApiConfig& config, const std::string& field,
                               int32_t tokens_max, std::string_view text,
                               const text::EncodeOptions& options) {
  // Tokens of text have 3 to 5 bytes on average; 16 leaves no doubt.
  const size_t certain_bytes = static_cast<size_t>(tokens_max) * 16;
  if (text.size() <= 2 * certain_bytes) return {};
  const auto tokens =
      static_cast<int64_t>(config.tokenizer->encode(text.substr(0, certain_bytes), options).size());
  if (tokens <= tokens_max) return {};
  return tl::unexpected<Error>(context_error(field, tokens_max, tokens, /*counted_all=*/false));
}

Result<std::vector<int32_t>> tokenise(const ApiConfig& config, const std::string& field,
                                      int32_t tokens_max, std::string_view text,
                                      const text::EncodeOptions& options) {
  WEIR_TRY(check_text_length(config, field, tokens_max, text, options));
  return config.tokenizer->encode(text, options);
}

Result<void> check_prompt_length(const ApiConfig& config, const std::string& field, int64_t length,
                                 int32_t output_min, int32_t tokens_max) {
  if (length + output_min > tokens_max)
    return tl::unexpected<Error>(context_error(field, tokens_max, length));
  if (config.prompt_max > 0 && length > config.prompt_max)
    return fail(ErrorCode::kContextLength,
                "Input tokens exceed the configured limit of " + std::to_string(config.prompt_max) +
                    " tokens: this prompt has " + std::to_string(length) +
                    " (context_length_exceeded). The " + prompt_too_long(length, config.prompt_max),
                field);
  return {};
}

namespace {

Result<void> check_bytes(size_t bytes_max, const std::string& field, size_t bytes,
                         const std::string& expected) {
  if (bytes <= bytes_max) return {};
  return fail(ErrorCode::kInvalid,
              "Invalid value for '" + field + "': the answer may need " + std::to_string(bytes) +
                  " bytes of memory, more than the " + std::to_string(bytes_max) +
                  " that this server gives to one request (--queue); expected " + expected + ".",
              field);
}

}  // namespace

Result<void> check_memory(const MemoryBudget& budget, const std::string& field, size_t bytes,
                          const std::string& expected) {
  return check_bytes(budget.most_of_one(), field, bytes, expected);
}

Result<void> check_growing_memory(const MemoryBudget& budget, const std::string& field,
                                  size_t bytes, const std::string& expected) {
  return check_bytes(budget.share_of_one(), field, bytes, expected);
}

namespace {

tl::unexpected<Error> no_memory() {
  return fail(ErrorCode::kOverloaded,
              "The memory for open requests is used up; try again later, or ask for fewer "
              "max_tokens, top_logprobs or n.");
}

}  // namespace

Result<MemoryLease> lease(MemoryBudget& budget, uint64_t caller, size_t bytes) {
  std::optional<MemoryLease> taken = budget.take(caller, bytes);
  if (!taken) return no_memory();
  return std::move(*taken);
}

Result<void> extend(MemoryBudget& budget, MemoryLease& lease, size_t bytes) {
  if (!budget.extend(lease, bytes)) return no_memory();
  return {};
}

Result<void> grow(MemoryBudget& budget, MemoryLease& lease, size_t bytes) {
  if (!budget.grow(lease, bytes)) return no_memory();
  return {};
}

Result<void> check_model(const ApiConfig& config, std::string_view model) {
  if (model.empty() || model == config.model_id || config.any_name ||
      std::find(config.aliases.begin(), config.aliases.end(), model) != config.aliases.end())
    return {};
  std::string also;
  for (const std::string& name : config.given_names)
    if (name != config.model_id) also += (also.empty() ? " (also called '" : "', '") + name;
  if (!also.empty()) also += "')";
  return fail(ErrorCode::kNotFound,
              "The model '" + std::string(model.substr(0, 256)) +
                  "' does not exist; this server has '" + config.model_id + "'" + also +
                  ". Leave 'model' out, or start the server with --alias '*' to have it answer to "
                  "any name.",
              "model", "model_not_found");
}

Result<std::string> render_chat(const ServingContext& serving, const GenerateRequest& request,
                                int64_t now) {
  const bool with_tools = request.may_call();
  const text::ChatTemplate* chat_template = with_tools && serving.config.tool_use_template
                                                ? serving.config.tool_use_template
                                                : serving.config.chat_template;
  std::optional<text::ChatTemplate> own;
  if (request.chat_template) {
    WEIR_ASSIGN(own, template_of(serving.config, *request.chat_template));
    chat_template = &*own;
  }
  if (!chat_template)
    return fail(ErrorCode::kUnsupported,
                "This model has no chat template: use /v1/completions, or start the server with "
                "one.",
                "messages", "unsupported_endpoint");
  TemplateTools writes = with_tools ? serving.outputs.tool_use_writes : serving.outputs.chat_writes;
  if (own) writes = probe_template(*own, serving.config.special_tokens);
  std::string variables;
  JsonWriter json(variables);
  json.begin_object();
  if ((with_tools && !writes.tools) || !writes.calls || !writes.results) {
    const output::CallFormat* const calls = serving.outputs.calls;
    WEIR_ASSIGN(const std::string messages,
                write_tools_into(request.messages, with_tools ? request.tools : std::string(),
                                 writes, calls ? *calls : output::described_calls()));
    json.key("messages").raw(messages);
  } else {
    json.key("messages").raw(request.messages);
  }
  if (with_tools) json.key("tools").raw(request.tools);
  // To continue the last message, the turn must not be followed by the opening of another.
  json.field("add_generation_prompt",
             request.add_generation_prompt.value_or(!request.continue_final_message));
  for (const auto& [name, text] : serving.config.special_tokens) json.field(name, text);
  write_thinking(serving.config, request, json);
  if (!request.template_kwargs.empty()) WEIR_TRY(write_kwargs(request.template_kwargs, json));
  json.end_object();

  Result<std::string> prompt = chat_template->render(variables, now);
  if (!prompt)
    return fail(ErrorCode::kInvalid,
                "The chat template refuses these messages: " + prompt.error().message, "messages");
  if (request.continue_final_message)
    WEIR_TRY(cut_after_final_message(*prompt, request.last_content));
  return prompt;
}

Result<PreparedAnswer> prepare_request(const ServingContext& serving, MemoryBudget& budget,
                                       const PrepareInput& in, const ProtocolTraits& protocol,
                                       const GenerateRequest& request) {
  WEIR_TRY(check_model(serving.config, request.model));
  std::string chat_end;
  WEIR_ASSIGN(const auto prompts, tokenise_prompts(serving, in, protocol, request, chat_end));

  WEIR_ASSIGN(const std::vector<int32_t> limits,
              output_limits(serving.config, in, protocol, request, prompts));

  PreparedAnswer answer;
  AnswerOptions& options = answer.options = answer_options(protocol, request);
  const uint64_t seed = request.seed ? static_cast<uint64_t>(*request.seed) : in.random_seed;
  WEIR_ASSIGN(const sample::SamplingParams sampling, sampling_of(serving, request, seed));
  options.remembers = sampling.has_dry();
  options.biases = sampling.logit_bias.size();
  if (request.shows_prompt) options.settings_bytes = settings_bytes(request.stop, options.biases);
  const AnswerCost cost = cost_of(options, prompts, limits);
  WEIR_TRY(check_ever_fits(serving.config, budget, options, prompts.size(), cost));
  WEIR_ASSIGN(answer.whole, lease(budget, in.caller, cost.whole + cost.requests));

  OutputPlan plan;
  WEIR_ASSIGN(const std::unique_ptr<grammar::Matcher> matcher,
              plan_answer(serving, in, protocol, request, chat_end, options, plan));
  const auto bounds = bounds_of(serving.config, request);
  const auto reasoning = reasoning_limit(serving.config, request, plan);
  if (request.reasoning_budget.value_or(-1) > 0 && !serving.outputs.reasoning)
    options.ignored.add("reasoning_budget");
  const int32_t priority = priority_of(request, in, options.ignored);
  const uint64_t salt = request.cache_salt && !request.cache_salt->empty()
                            ? std::hash<std::string>()(*request.cache_salt) | 1
                            : 0;
  for (size_t i = 0; i < prompts.size(); ++i) {
    for (int32_t choice = 0; choice < options.choices_per_prompt; ++choice) {
      sample::SamplingParams params = sampling;
      params.seed = seed + static_cast<uint64_t>(choice);
      params.min_tokens = std::min(params.min_tokens, limits[i]);
      params.bounds = bounds;
      params.reasoning = reasoning;
      OwnedRequest owned;
      owned.lease = answer.whole.part(choice_bytes(options, prompts[i].size(), limits[i]));
      WEIR_TRY(
          extend(budget, owned.lease,
                 (matcher ? matcher_bytes(*matcher) : 0) + (bounds ? bounds->memory_bytes() : 0)));
      // Who scores a text asks for one token more than it has and leaves that out: it must be
      // there, also if it is an end token.
      if (request.echo && request.logprobs && limits[i] <= 1) params.stop_token_ids.clear();
      const bool ranked = options.choices_per_prompt > options.shown_per_prompt;
      owned.request = std::make_unique<sched::Request>(prompts[i], std::move(params), limits[i],
                                                       request.logprobs || ranked);
      // Prompts are shown to all choices from the first.
      const bool scores_prompt = request.prompt_logprobs && choice == 0;
      const bool echoes = request.echo && request.logprobs;
      if ((echoes || scores_prompt) && prompts[i].size() > 1)
        owned.request->prompt_log = std::make_unique<TokenLog>(
            static_cast<int32_t>(prompts[i].size()) - 1, prompt_top_of(request));
      if (scores_prompt) owned.request->prompt_ranks.resize(prompts[i].size() - 1);
      owned.request->cache_salt = salt;
      owned.request->priority = priority;
      owned.request->caller = in.caller;
      if (matcher) owned.request->matcher = std::make_unique<grammar::Matcher>(*matcher);
      owned.request->report_progress = request.stream && request.return_progress;
      owned.request->arrived = in.arrived;
      answer.requests.push_back(std::move(owned));
    }
  }
  return answer;
}

}  // namespace weir::api
