// AnswerOptions: what answering needs of a request, besides the engine's requests; and the memory
// that it takes.
//
// Threads: plain values; pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/answer/logprob_list.h"
#include "api/answer/protocol_traits.h"
#include "api/output/output_parser.h"
#include "api/request/generate_request.h"
#include "api/request/ignored.h"
#include "sched/request.h"

namespace weir::api {

struct AnswerOptions {
  bool stream = false;
  bool collected = false;  // Also what is streamed is kept until the end.
  bool timings_per_token = false;
  bool remembers = false;     // The sampler keeps what has been said, for DRY.
  bool copies = false;        // Drafts come from the texts that there are.
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

// What the request says; prepare_request() adds what sampling and the plan of the output say.
AnswerOptions answer_options(const ProtocolTraits& protocol, const GenerateRequest& request);

// Memory of all choices of an answer.
struct AnswerCost {
  size_t requests = 0;  // Each choice has a lease of its own part, until it ends.
  size_t whole = 0;     // Until the answer is sent.
};

// The memory of one choice.
size_t choice_bytes(const AnswerOptions& options, const sched::Prompt& prompt, int32_t max_tokens);
// `limits`: the most tokens of each prompt's answers.
AnswerCost cost_of(const AnswerOptions& options, const std::vector<sched::Prompt>& prompts,
                   const std::vector<int32_t>& limits);

}  // namespace weir::api
