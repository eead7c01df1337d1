#include "api/prompt/prepare.h"

#include <algorithm>
#include <charconv>

#include "api/memory/memory_cost.h"
#include "api/memory/request_memory.h"
#include "api/prompt/prompt_limits.h"
#include "api/prompt/prompt_tokens.h"
#include "api/request/bias_list.h"
#include "api/request/sampling_fields.h"
#include "api/serving/model_name.h"
#include "api/serving/output_plan.h"
#include "api/serving/reasoning_limit.h"
#include "net/digest.h"
#include "sched/draft_source.h"

namespace weir::api {

namespace {

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

// Of a longer text than an index holds the beginning.
std::shared_ptr<const sched::TextIndex> prediction_of(const ApiConfig& config,
                                                      const GenerateRequest& request) {
  if (!request.prediction || request.prediction->empty()) return nullptr;
  std::vector<int32_t> tokens = config.tokenizer->encode(*request.prediction, {});
  tokens.resize(std::min<size_t>(tokens.size(), sched::TextIndex::kTokensMax));
  auto index = std::make_shared<sched::TextIndex>(static_cast<int64_t>(tokens.size()));
  index->append(tokens);
  return index;
}

sched::DraftLimits draft_limits_of(const GenerateRequest& request) {
  constexpr int64_t kMost = sched::DraftSource::kDraftsMax;
  return {.most = static_cast<int32_t>(std::min(request.draft_max.value_or(kMost), kMost)),
          .least = static_cast<int32_t>(std::min(request.draft_min.value_or(0), kMost)),
          .chance_min = static_cast<float>(request.draft_p_min.value_or(0))};
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

// The same after a restart, because blocks on disk are found by it; and such that no text can be
// made to have another's. 0: neither a salt nor a key's name.
uint64_t salt_of(const std::string& cache_salt, const std::string& key_name) {
  if (cache_salt.empty() && key_name.empty()) return 0;
  net::Digest digest(net::Digest::Kind::kSha256);
  digest.add(std::to_string(cache_salt.size()) + ":" + cache_salt + key_name);
  constexpr size_t kDigits = 16;
  constexpr int kHexadecimal = 16;
  uint64_t salt = 0;
  const std::string text = digest.finish();
  std::from_chars(text.data(), text.data() + kDigits, salt, kHexadecimal);
  return salt | 1;
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
                                           const std::vector<sched::Prompt>& prompts) {
  std::vector<int32_t> limits;
  for (const sched::Prompt& prompt : prompts) {
    const auto length = static_cast<int64_t>(prompt.size());
    const int32_t output_min = request.token_limit() == 0 ? 0 : 1;
    WEIR_TRY(check_prompt_length(config, std::string(protocol.prompt_field), length, output_min,
                                 in.tokens_max));
    limits.push_back(
        output_limit(config, protocol, request, in.tokens_max - static_cast<int32_t>(length)));
  }
  return limits;
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

Result<std::unique_ptr<grammar::Matcher>> matcher_of(const ServingContext& serving,
                                                     const OutputPlan& plan, bool begins_text,
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
Result<std::unique_ptr<grammar::Matcher>> plan_answer(const ServingContext& serving,
                                                      const PrepareInput& in,
                                                      const ProtocolTraits& protocol,
                                                      const GenerateRequest& request,
                                                      std::string_view chat_end,
                                                      AnswerOptions& options, OutputPlan& plan) {
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

Result<PreparedAnswer> prepare_request(const ServingContext& serving, MemoryBudget& budget,
                                       const PrepareInput& in, const ProtocolTraits& protocol,
                                       const GenerateRequest& request) {
  WEIR_ASSIGN(const ChosenAdapter adapter,
              choose_model(serving.config, request.model, request.lora));
  std::string chat_end;
  WEIR_ASSIGN(const auto prompts, tokenise_prompts(serving, in, protocol, request, chat_end));

  WEIR_ASSIGN(const std::vector<int32_t> limits,
              output_limits(serving.config, in, protocol, request, prompts));

  PreparedAnswer answer;
  answer.model = model_shown(serving.config, request.model);
  AnswerOptions& options = answer.options = answer_options(protocol, request);
  const uint64_t seed = request.seed ? static_cast<uint64_t>(*request.seed) : in.random_seed;
  WEIR_ASSIGN(const sample::SamplingParams sampling, sampling_of(serving, request, seed));
  options.remembers = sampling.has_dry();
  options.copies = serving.config.drafts_copies && request.draft_max.value_or(1) > 0;
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
  const auto prediction = options.copies ? prediction_of(serving.config, request) : nullptr;
  const int32_t priority = priority_of(request, in, options.ignored);
  const uint64_t salt = salt_of(request.cache_salt.value_or(""), in.key_name);
  for (size_t i = 0; i < prompts.size(); ++i) {
    for (int32_t choice = 0; choice < options.choices_per_prompt; ++choice) {
      sample::SamplingParams params = sampling;
      params.seed = seed + static_cast<uint64_t>(choice);
      params.min_tokens = std::min(params.min_tokens, limits[i]);
      params.bounds = bounds;
      params.reasoning = reasoning;
      OwnedRequest owned;
      owned.lease = answer.whole.part(choice_bytes(options, prompts[i], limits[i]));
      WEIR_TRY(
          extend(budget, owned.lease,
                 (matcher ? matcher_bytes(*matcher) : 0) + (bounds ? bounds->memory_bytes() : 0) +
                     (prediction ? sched::TextIndex::memory_bytes(prediction->size()) : 0)));
      // A client that scores a text asks for one token more than it has and leaves that out: it
      // must be there, also if it is an end token.
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
      owned.request->adapter = adapter.weights;
      owned.request->adapter_scale = adapter.scale;
      owned.request->adapter_key = adapter.key;
      owned.request->priority = priority;
      owned.request->caller = in.caller;
      owned.request->draft_limits = draft_limits_of(request);
      if (options.copies && limits[i] > 1) {
        owned.request->text =
            std::make_unique<sched::TextIndex>(static_cast<int64_t>(prompts[i].size()) + limits[i]);
        sched::append_prompt(prompts[i], owned.request->media.get(), *owned.request->text);
        owned.request->prediction = prediction;
      }
      if (matcher) owned.request->matcher = std::make_unique<grammar::Matcher>(*matcher);
      owned.request->report_progress = request.stream && request.return_progress;
      owned.request->arrived = in.arrived;
      answer.requests.push_back(std::move(owned));
    }
  }
  return answer;
}

}  // namespace weir::api
