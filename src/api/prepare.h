// From a parsed request to engine requests: apply the chat template, tokenise, check against the
// context. Everything here is slow work for a pool thread and reads only what never changes.
//
// Threads: any, at once.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/generate_request.h"
#include "api/logprob_list.h"
#include "api/memory_lease.h"
#include "api/output/output_parser.h"
#include "api/protocol_traits.h"
#include "api/serving_context.h"
#include "grammar/interrupt.h"
#include "sched/request.h"

namespace weir::api {

// An engine request and the memory it may hold.
struct OwnedRequest {
  MemoryLease lease;  // Declared first: given back after the request is freed.
  std::unique_ptr<sched::Request> request;
};

// What answering needs, besides the engine's requests.
struct AnswerOptions {
  bool stream = false;
  bool collected = false;  // Also what is streamed is kept until the end.
  bool timings_per_token = false;
  bool remembers = false;     // The sampler keeps what has been said, for DRY.
  size_t biases = 0;          // Tokens in each choice's logit_bias.
  size_t settings_bytes = 0;  // Of the JSON that each choice repeats of what was asked.
  bool logprobs = false;
  int32_t top_logprobs = 0;
  LogprobStyle logprob_style;
  bool return_token_ids = false;           // Of the prompt and of the answer.
  std::optional<int32_t> prompt_logprobs;  // Alternatives of each token of the prompt.
  bool shows_prompt = false;               // Something of it.
  bool skip_special_tokens = true;
  // The answer begins a text of its own. One that goes on from the prompt keeps its first space.
  bool begins_text = true;
  bool include_stop = false;
  std::vector<std::string> stop;
  int32_t choices_per_prompt = 1;  // That are sampled,
  int32_t shown_per_prompt = 1;    // and of these sent, the likeliest.
  bool echo = false;
  std::string preamble;  // Stands before the answer's text: the message that it goes on with.
  // --- What the text is taken apart by; null: it is all content.
  std::shared_ptr<const output::ParserOptions> parser;
  std::vector<int32_t> markers;  // Special tokens whose text the parser needs.
  bool short_call_ids = false;   // Nine letters or digits.
  std::string_view call_id_prefix = "call_";
  bool drop_reasoning = false;  // Nothing of it is sent.
  bool may_call = false;        // A call may be held back until it is whole.
  Ignored ignored;              // What the answer does not do of what was asked.
};

struct PreparedAnswer {
  AnswerOptions options;
  MemoryLease whole;                   // For what is collected of an answer that is not streamed.
  std::vector<OwnedRequest> requests;  // By choice index.
};

struct PrepareInput {
  std::string_view body;
  sched::Clock::time_point arrived{};
  int64_t now = 0;           // Seconds since the epoch; templates ask for the date.
  std::string answer_id;     // Random digits.
  uint64_t random_seed = 0;  // For a request that names none.
  int32_t tokens_max = 0;    // Prompt and output of one sequence.
  // The earliest that the client may ask for, and what it gets without asking.
  int32_t priority_min = 0;
  uint64_t caller = 0;  // Exchange::caller().
  // Ends the compilation of its grammar with kCancelled: the client has left, or it takes longer
  // than it may on this thread. May be null.
  std::shared_ptr<grammar::Interrupt> interrupt{};
};

// What every protocol's Protocol::prepare() ends in.
Result<PreparedAnswer> prepare_request(const ServingContext& serving, MemoryBudget& budget,
                                       const PrepareInput& in, const ProtocolTraits& protocol,
                                       const GenerateRequest& request);

// kNotFound, code model_not_found, unless `model` is this server's. Empty is whatever is served.
Result<void> check_model(const ApiConfig& config, std::string_view model);

// The chat as the model reads it, by the model's template.
Result<std::string> render_chat(const ServingContext& serving, const GenerateRequest& request,
                                int64_t now);

// --- Parts that other endpoints prepare their requests with. `field` names the prompt in errors.

// The error whose wording clients recognise. `counted_all`: false if counting stopped at `tokens`.
Error context_error(const std::string& field, int64_t tokens_max, int64_t tokens,
                    bool counted_all = true);
// Refuses a text of many times `tokens_max` without tokenising it to its end.
Result<void> check_text_length(const ApiConfig& config, const std::string& field,
                               int32_t tokens_max, std::string_view text,
                               const text::EncodeOptions& options);
// After that check.
Result<std::vector<int32_t>> tokenise(const ApiConfig& config, const std::string& field,
                                      int32_t tokens_max, std::string_view text,
                                      const text::EncodeOptions& options);
// `output_min`: tokens for which the context must leave room behind the prompt.
Result<void> check_prompt_length(const ApiConfig& config, const std::string& field, int64_t length,
                                 int32_t output_min, int32_t tokens_max);
// What could never be served is refused for good: "try again later" would be a lie. `expected`:
// what would need less memory.
Result<void> check_memory(const MemoryBudget& budget, const std::string& field, size_t bytes,
                          const std::string& expected);
// The same of what a request takes bit by bit.
Result<void> check_growing_memory(const MemoryBudget& budget, const std::string& field,
                                  size_t bytes, const std::string& expected);
// kOverloaded when the budget is used up.
Result<MemoryLease> lease(MemoryBudget& budget, uint64_t caller, size_t bytes);
Result<void> extend(MemoryBudget& budget, MemoryLease& lease, size_t bytes);
Result<void> grow(MemoryBudget& budget, MemoryLease& lease, size_t bytes);

}  // namespace weir::api
