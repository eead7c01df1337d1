// The answers of /api/chat and /api/generate: an object a line for each part, the last of which
// says why the answer has ended and what it took; or one object of all.
//
// Threads: as AnswerShape.
#pragma once

#include <memory>
#include <string>

#include "api/answer/answer_shape.h"
#include "sched/request.h"

namespace weir::api::ollama {

struct AnswerFacts {
  std::string model{};  // As the client calls it.
  bool chat = true;     // The text is a message's; else it is the response.
  bool stream = true;
  sched::Clock::time_point arrived{};
};

std::unique_ptr<AnswerShape> make_shape(const AnswerFacts& facts);

// The answer to a request that had the model loaded or unloaded. `reason`: "load", "unload".
std::string empty_answer(const AnswerFacts& facts, std::string_view reason);

}  // namespace weir::api::ollama
