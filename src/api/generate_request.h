// GenerateRequest: the body of /v1/chat/completions or /v1/completions as native types, and what
// other endpoints make of theirs. One table of fields drives parsing; the reference page and
// /openapi.json are made from it.
//
// Threads: pure functions; a GenerateRequest is a plain value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "api/endpoint_table.h"
#include "api/fim.h"
#include "api/ignored.h"
#include "api/json_fields.h"
#include "base/json.h"
#include "base/result.h"
#include "grammar/source.h"

namespace weir::api {

// kMessages is Anthropic's, whose table is its own (anthropic/message_request.h). kInfill
// (llama/infill.h) and kLlama, llama-server's /completion (llama/completion.h), are only parsed as
// such, then they are completions.
enum class Endpoint : uint8_t {
  kChat = 1,
  kCompletions = 2,
  kResponses = 4,
  kMessages = 8,
  kInfill = 16,
  kLlama = 32
};

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
inline constexpr size_t kToolsMax = 512;
inline constexpr size_t kChoicesMax = 128;  // n times the number of prompts.

// Texts and tokens in one prompt, as llama-server takes them.
struct MixedPrompt {
  std::vector<std::variant<std::string, std::vector<int32_t>>> parts;
  bool operator==(const MixedPrompt&) const = default;
};

// A text to tokenise, or tokens.
using Prompt = std::variant<std::string, std::vector<int32_t>, MixedPrompt>;

struct ToolFunction {
  std::string name;        // As the model reads and writes it.
  std::string parameters;  // A JSON schema; empty: none.
  bool strict = false;
  std::string field{};  // Where the schema stands in the request: "tools[0].function.parameters".
  // --- Where the client has another name for it, or gives it a text instead of JSON (responses).
  std::string space{}, own_name{};                // A namespace, or empty, and the name in it.
  bool custom = false;                            // Its one argument `input` is a text,
  std::optional<grammar::GrammarSource> input{};  // bound by this.
};

enum class ToolChoice : uint8_t { kAuto, kNone, kRequired, kNamed };

// Of a prompt that is longer only so many tokens are used.
struct Truncation {
  std::optional<int64_t> tokens_max;  // -1: what the context has room for.
  bool keep_beginning = false;        // The first ones are, else the last.
};

struct GenerateRequest {
  std::string model;

  // --- Input.
  std::string system;           // What stands before the messages, if it is a field of its own.
  std::string messages;         // Chat: a JSON array, in the form that templates expect.
  std::string last_role;        // Of the last message,
  std::string last_content;     // and its text.
  std::string template_kwargs;  // A JSON object, or empty.
  std::optional<std::string> chat_template;  // In the place of the model's.
  std::optional<std::string> reasoning_effort;
  std::optional<bool> enable_thinking;
  // Where neither the request nor the server says; absent: as the template does.
  std::optional<bool> thinking_unasked;
  bool hide_reasoning = false;
  std::optional<int64_t> reasoning_budget;  // Tokens; -1: any number. Absent: the server's.
  std::optional<std::string> reasoning_budget_message;
  std::optional<bool> add_generation_prompt;  // Absent: unless the last message is continued.
  bool continue_final_message = false;
  std::vector<Prompt> prompts;           // Completions.
  bool infill = false;                   // Completions: the answer stands between the prompt and
  std::string suffix;                    // this,
  std::vector<InfillFile> infill_files;  // in a project with these.
  bool echo = false;                     // Completions: the prompt is the beginning of the text.
  bool echo_message = false;  // Chats: the last message is, if the answer goes on with it.
  Truncation truncation;

  // --- Functions that the model may call.
  std::string tools;                    // A JSON array for the template, or empty;
  std::vector<ToolFunction> functions;  // the same.
  ToolChoice tool_choice = ToolChoice::kAuto;
  std::vector<std::string> callable;  // Names: the named function, or those allowed; empty: all.
  bool parallel_tool_calls = true;
  bool legacy_functions = false;  // Asked as `functions`: the answer has a `function_call`.

  // --- Sampling (sampling_fields.h); absent: the server's default.
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

  // --- Length and end.
  std::optional<int64_t> max_tokens, max_completion_tokens, min_tokens;
  std::vector<std::string> stop;
  std::vector<int32_t> stop_token_ids;
  bool ignore_eos = false;
  bool include_stop_str_in_output = false;

  // --- Output.
  std::optional<int64_t> n, best_of;
  bool stream = false;
  bool has_stream_options = false;
  bool include_usage = false;
  bool continuous_usage = false;  // In every event.
  bool include_reasoning = true;
  bool return_token_ids = false;
  bool shows_prompt = false;               // The answer repeats its text (llama-server).
  bool tokens_by_id = false;               // Log-probabilities name tokens by their ids.
  std::optional<int64_t> prompt_logprobs;  // Alternatives of each token of the prompt.
  bool timings_per_token = false;          // Not only with the end.
  bool return_progress = false;            // Of a streamed answer's prompt.
  bool skip_special_tokens = true;
  bool logprobs = false;                // Chat's switch, or completions' logprobs given.
  std::optional<int64_t> top_logprobs;  // Alternatives of each token.

  // --- Form.
  std::optional<grammar::GrammarSource> grammar;
  std::string grammar_field;  // The field that it came from.
  std::optional<std::string> reasoning_format;

  // Functions are there, and may be called.
  bool may_call() const { return !functions.empty() && tool_choice != ToolChoice::kNone; }
  bool must_call() const {
    return !functions.empty() &&
           (tool_choice == ToolChoice::kRequired || tool_choice == ToolChoice::kNamed);
  }

  // What is not done of what was asked; the answer says so.
  Ignored ignored;

  std::optional<std::string> cache_salt;
  std::optional<int64_t> priority;  // Lower goes first.

  int32_t choices_per_prompt() const { return static_cast<int32_t>(n.value_or(1)); }
  // How many are sampled, of which the likeliest n are the choices.
  int32_t candidates_per_prompt() const {
    return std::max(choices_per_prompt(), static_cast<int32_t>(best_of.value_or(1)));
  }
  std::optional<int64_t> token_limit() const {
    return max_completion_tokens ? max_completion_tokens : max_tokens;
  }
};

// What parsing needs to know of the model.
struct RequestLimits {
  int32_t vocab_size = 0;  // Token ids from 0 to this, exclusive.
};

// One field of a body. `path` names it in errors.
struct FieldInput {
  std::string_view path;
  JsonValue value;  // Not null.
  const RequestLimits& limits;
};

using FieldParser = Result<void> (*)(const FieldInput& in, GenerateRequest& out);
// Where a value goes; monostate: accepted and ignored, whatever its type.
using FieldTarget =
    std::variant<std::monostate, bool GenerateRequest::*, std::optional<bool> GenerateRequest::*,
                 std::optional<double> GenerateRequest::*,
                 std::optional<int64_t> GenerateRequest::*, std::string GenerateRequest::*,
                 std::optional<std::string> GenerateRequest::*, FieldParser>;

struct Field {
  std::string_view name;
  std::string_view type;  // As the reference names it.
  FieldTarget target;
  std::string_view help;
  double min = 0, max = 0;  // Of numbers, inclusive.
  uint8_t endpoints = 55;   // Endpoint values, or-ed: all but kMessages.
  bool required = false;
};

// Every field that is read, refused or knowingly ignored; all others are ignored, and named in the
// answer.
std::span<const Field> generate_fields();

// The same of one endpoint, for the reference.
std::vector<FieldDoc> chat_fields();
std::vector<FieldDoc> completion_fields();

// The table's fields that the endpoint knows. Other endpoints add fields of their own.
Result<void> parse_fields(Endpoint endpoint, JsonObject body, const RequestLimits& limits,
                          GenerateRequest& out);
std::vector<FieldDoc> fields_of(Endpoint endpoint);

// For tables like this one of endpoints that share no field with it: their reference, and reading a
// body by them, in the table's order. `endpoints` picks rows.
std::vector<FieldDoc> field_docs(std::span<const Field> fields, uint8_t endpoints);
Result<void> read_fields(std::span<const Field> fields, uint8_t endpoints, JsonObject body,
                         const RequestLimits& limits, GenerateRequest& out);
Result<void> parse_stop(const FieldInput& in, GenerateRequest& out);

// The empty value that clients send for "not used".
bool is_empty_value(JsonValue value);

// Refuses a value that asks for something.
Result<void> refuse(const FieldInput& in, GenerateRequest& out);

Result<int32_t> parse_token_id(std::string_view path, JsonValue value, const RequestLimits& limits);
Result<void> parse_token_ids(std::string_view path, JsonArray array, const RequestLimits& limits,
                             std::vector<int32_t>& out);
Result<void> parse_logit_bias(const FieldInput& in, GenerateRequest& out);

// Fields that vLLM has (vllm_fields.cpp).
Result<void> parse_bad_words(const FieldInput& in, GenerateRequest& out);
Result<void> parse_allowed_token_ids(const FieldInput& in, GenerateRequest& out);
Result<void> parse_truncation(const FieldInput& in, GenerateRequest& out);
Result<void> parse_truncation_side(const FieldInput& in, GenerateRequest& out);
Result<void> parse_prompt_logprobs(const FieldInput& in, GenerateRequest& out);
Result<void> check_vllm_fields(const GenerateRequest& request);

// At most kChoicesMax choices of all prompts together.
Result<void> check_choices(const GenerateRequest& request);

// A field of prompts, at most `prompts_max` of them: a string, a list of strings, token ids, or a
// list of such lists.
Result<void> parse_prompts(std::string_view path, JsonValue value, size_t prompts_max,
                           const RequestLimits& limits, std::vector<Prompt>& out);

// Errors name the field (`messages[0].role`). An explicit null counts as absent; unknown fields are
// noted in `ignored`.
Result<GenerateRequest> parse_generate(Endpoint endpoint, std::string_view body,
                                       const RequestLimits& limits);

// The messages of a chat, checked and rewritten for templates: text parts joined, `developer` as
// `system`, tool arguments as objects. Fills messages, last_role and last_content.
Result<void> parse_messages(const FieldInput& in, GenerateRequest& out);

// Parts of messages: a string or text parts; and a call's arguments, a string of JSON, as the
// object that templates want.
Result<std::string> content_text(std::string_view path, JsonValue content);
Result<void> write_arguments(std::string_view path, JsonValue arguments, JsonWriter& json);

// Functions that may be called (tool_fields.cpp).
Result<void> parse_tools(const FieldInput& in, GenerateRequest& out);
Result<void> parse_tool_choice(const FieldInput& in, GenerateRequest& out);
Result<void> parse_functions(const FieldInput& in, GenerateRequest& out);
Result<void> parse_function_call(const FieldInput& in, GenerateRequest& out);
// A call that is required where there are no tools is ignored: clients send it so.
Result<void> check_tool_choice(GenerateRequest& request);
// {"name": ..., "parameters": ..., "strict": ...}
Result<ToolFunction> function_of(const std::string& path, JsonValue value);
// The names of functions that a choice, or one of its allowed tools, stands for; none: it is left
// out.
using ChoiceReader =
    std::function<Result<std::vector<std::string>>(const std::string& path, JsonObject tool)>;
Result<void> parse_choice(const FieldInput& in, const ChoiceReader& names_of, GenerateRequest& out);
Result<void> check_tool_count(std::string_view path, size_t count);
Result<void> check_function_name(std::string_view path, std::string_view name);

// What binds the answer to a form; each fills `grammar`, and only one of them may.
Result<void> bind_schema(const std::string& path, JsonValue schema, GenerateRequest& out);
Result<void> parse_response_format(const FieldInput& in, GenerateRequest& out);
Result<void> parse_guided_json(const FieldInput& in, GenerateRequest& out);
Result<void> parse_guided_regex(const FieldInput& in, GenerateRequest& out);
Result<void> parse_guided_choice(const FieldInput& in, GenerateRequest& out);
Result<void> parse_guided_grammar(const FieldInput& in, GenerateRequest& out);
Result<void> parse_gbnf(const FieldInput& in, GenerateRequest& out);
Result<void> parse_structured_outputs(const FieldInput& in, GenerateRequest& out);
Result<void> parse_text_config(const FieldInput& in, GenerateRequest& out);  // Of responses.

}  // namespace weir::api
