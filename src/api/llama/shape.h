// The answers of llama-server's own endpoints, /completion and /infill: whole, or as events of
// which the last says everything but the text.
//
// Threads: as AnswerShape.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "api/answer/answer_shape.h"
#include "api/request/generate_request.h"
#include "sched/request.h"
#include "text/tokenizer.h"

namespace weir::api::llama {

// What an answer says besides what the model does.
struct LlamaFacts {
  std::string model;
  const text::Tokenizer* tokenizer = nullptr;  // For the prompt's text.
  std::string settings;                        // The JSON of generation_settings.
  bool stream = false;
  bool list = false;  // An array: of several prompts, or choices.
  int32_t choices = 1;
};

// The JSON of the parameters in force.
std::string generation_settings(const GenerateRequest& asked, const sched::Request& request);

std::unique_ptr<AnswerShape> make_llama_shape(LlamaFacts facts);

}  // namespace weir::api::llama
