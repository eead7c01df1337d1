// GenerateRequest: what any protocol's request for an answer becomes: one prompt or several, and
// how they are continued. What only one protocol's requests say is in that protocol's own type.
//
// Threads: a plain value.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "api/request/adapter_scale.h"
#include "api/request/fim.h"
#include "api/request/ignored.h"
#include "api/request/media_source.h"
#include "api/request/tool_function.h"
#include "grammar/source.h"

namespace weir::api {

// Limits of one request. OpenAI allows 4 stop strings; local front ends send more.
inline constexpr size_t kStopStringsMax = 16;
inline constexpr size_t kStopBytesMax = 1024;
inline constexpr size_t kStopTokenIdsMax = 128;
inline constexpr size_t kLogitBiasMax = 1024;
inline constexpr size_t kBadWordsMax = 1024;
inline constexpr size_t kBadWordBytesMax = 256;
// DRY's sequence breakers. llama.cpp cuts longer texts to as much.
inline constexpr size_t kBreakersMax = 32, kBreakerBytesMax = 40;
inline constexpr size_t kReasoningMessageBytesMax = 4096;
inline constexpr size_t kChoicesMax = 128;  // n times the number of prompts.

// Texts and tokens in one prompt, as llama-server takes them.
struct MixedPrompt {
  std::vector<std::variant<std::string, std::vector<int32_t>>> parts;
  bool operator==(const MixedPrompt&) const = default;
};

// A text to tokenise, or tokens.
using Prompt = std::variant<std::string, std::vector<int32_t>, MixedPrompt>;

// How many tokens are used of a prompt that is longer.
struct Truncation {
  std::optional<int64_t> tokens_max;  // -1: what the context has room for.
  bool keep_beginning = false;        // The first ones are, else the last.
};

// The parts of a request, by what they are about. They are bases of it and not members, so that a
// table of fields can name each by one pointer to a member.

// A conversation, and how the template writes it.
struct ChatFields {
  std::string messages;                       // A JSON array, in the form that templates expect.
  std::vector<MediaSource> media;           // In the order in which messages show them.
  std::string last_role;                      // Of the last message,
  std::string last_content;                   // and its text.
  std::string template_kwargs;                // A JSON object, or empty.
  std::optional<std::string> chat_template;   // In the place of the model's.
  std::optional<bool> add_generation_prompt;  // Absent: unless the last message is continued.
  bool continue_final_message = false;
  bool echo_message = false;  // The answer begins with the last message, if it goes on with it.
};

// Prompts that are no conversation.
struct TextFields {
  std::vector<Prompt> prompts;
  bool infill = false;                   // The answer stands between the prompt and
  std::string suffix;                    // this,
  std::vector<InfillFile> infill_files;  // in a project with these.
  bool echo = false;                     // The prompt is the beginning of the text.
};

// What the model thinks before it answers.
struct ReasoningFields {
  std::optional<std::string> reasoning_effort;
  std::optional<bool> enable_thinking;
  // Where neither the request nor the server says; absent: as the template does.
  std::optional<bool> thinking_unasked;
  std::optional<int64_t> reasoning_budget;  // Tokens; -1: any number. Absent: the server's.
  std::optional<std::string> reasoning_budget_message;
  std::optional<std::string> reasoning_format;
  bool include_reasoning = true;
};

// Functions that the model may call.
struct ToolFields {
  std::string tools;                    // A JSON array for the template, or empty;
  std::vector<ToolFunction> functions;  // the same.
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::vector<std::string> callable;  // Names: the named function, or those allowed; empty: all.
  bool parallel_tool_calls = true;

  // Functions are there, and may be called.
  bool may_call() const { return !functions.empty() && tool_choice != ToolChoice::kNone; }
  bool must_call() const {
    return !functions.empty() &&
           (tool_choice == ToolChoice::kRequired || tool_choice == ToolChoice::kNamed);
  }
};

// How tokens are chosen; absent: the server's default (sampling_fields.h).
struct SamplingFields {
  std::optional<double> temperature, top_p, min_p, typical_p;
  std::optional<double> repetition_penalty, frequency_penalty, presence_penalty;
  std::optional<int64_t> top_k, repeat_last_n, seed;
  std::optional<double> top_n_sigma, xtc_probability, xtc_threshold;
  std::optional<double> dynatemp_range, dynatemp_exponent;
  std::optional<double> dry_multiplier, dry_base;
  std::optional<int64_t> dry_allowed_length, dry_penalty_last_n;
  std::optional<std::vector<std::string>> dry_sequence_breakers;
  std::vector<std::pair<int32_t, float>> logit_bias;
  std::vector<std::pair<std::string, float>> text_bias;   // For each token of a text (llama.cpp).
  std::vector<std::string> bad_words;                     // Must not be written.
  std::optional<std::vector<int32_t>> allowed_token_ids;  // Nothing else may be.
};

// Length and end.
struct EndFields {
  std::optional<int64_t> max_tokens, max_completion_tokens, min_tokens;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;

  std::optional<int64_t> token_limit() const {
    return max_completion_tokens ? max_completion_tokens : max_tokens;
  }
};

// The form that the answer is bound to.
struct FormFields {
  std::optional<grammar::GrammarSource> grammar;
  std::string grammar_field;  // The field that it came from.
};

// How many answers there are, and what they show.
struct OutputFields {
  std::optional<int64_t> n, best_of;
  bool stream = false;
  bool return_token_ids = false;
  bool shows_prompt = false;               // The answer repeats its text (llama-server).
  bool tokens_by_id = false;               // Log-probabilities name tokens by their ids.
  std::optional<int64_t> prompt_logprobs;  // Alternatives of each token of the prompt.
  bool timings_per_token = false;          // Not only with the end.
  bool return_progress = false;            // Of a streamed answer's prompt.
  bool skip_special_tokens = true;
  bool logprobs = false;                // Chat's switch, or completions' logprobs given.
  std::optional<int64_t> top_logprobs;  // Alternatives of each token.

  int32_t choices_per_prompt() const { return static_cast<int32_t>(n.value_or(1)); }
  // How many are sampled, of which the likeliest n are the choices.
  int32_t candidates_per_prompt() const {
    return std::max(choices_per_prompt(), static_cast<int32_t>(best_of.value_or(1)));
  }
};

// Drafts of the answer, which change how fast it comes and nothing else.
struct DraftFields {
  std::optional<std::string> prediction;  // A text that is expected in the answer.
  // llama-server's: most drafts in a step (0: none), fewest, and how likely one must be.
  std::optional<int64_t> draft_max, draft_min;
  std::optional<double> draft_p_min;
};

struct GenerateRequest : ChatFields,
                         TextFields,
                         ReasoningFields,
                         ToolFields,
                         SamplingFields,
                         EndFields,
                         FormFields,
                         OutputFields,
                         DraftFields {
  std::string model;
  std::optional<std::vector<AdapterScale>> lora;  // llama-server's; absent: as `model` says.
  Truncation truncation;
  std::optional<std::string> cache_salt;
  std::optional<int64_t> priority;  // Lower goes first.
  // What is not done of what was asked; the answer says so.
  Ignored ignored;
};

}  // namespace weir::api
