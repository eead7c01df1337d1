// ProtocolTraits: what all requests of a protocol have in common, as the shared code has to know
// it.
//
// Threads: constant data.
#pragma once

#include <cstdint>
#include <string_view>

#include "api/answer/logprob_list.h"

namespace weir::api {

struct ProtocolTraits {
  std::string_view prompt_field;  // Where the prompt comes from, for errors.
  // The prompt is a conversation, which the chat template writes; its answer begins a text of its
  // own, and may hold calls and reasoning. Else the answer goes on with the prompt's text.
  bool is_chat = true;
  // The limit of a request that names none; 0: as the server is configured.
  int32_t max_tokens_default = 0;
  LogprobStyle::Form logprobs = LogprobStyle::Form::kChat;
  std::string_view call_id_prefix = "call_";
  // A stream's last event repeats the answer: also what is streamed is kept until then.
  bool repeats_answer = false;
};

}  // namespace weir::api
