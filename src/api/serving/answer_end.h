// How a chat template closes an answer: what it writes after an assistant's words. Checkpoints,
// most of all converted ones, do not always name that token as their eos_token_id, and without it
// an answer would go on past its end.
//
// Threads: free functions, used at start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "api/serving/tool_messages.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace weir::api {

// Without white space around it; empty if nothing comes after an answer, or if the template refuses
// a plain conversation.
std::string text_after_answer(const text::ChatTemplate& chat_template,
                              const TemplateVariables& special_tokens);

// The special token that begins that text. None if there is no such token, or if it is also written
// within answers: after reasoning, or around calls.
std::optional<int32_t> answer_end(const text::ChatTemplate& chat_template,
                                  const TemplateVariables& special_tokens,
                                  const text::Tokenizer& tokenizer);

}  // namespace weir::api
