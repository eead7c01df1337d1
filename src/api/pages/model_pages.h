// /v1/models and the events of /models/sse: which models there are, and how they are; in the shapes
// that OpenAI's, vLLM's and llama.cpp's clients read.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/models/model_status.h"
#include "api/serving/api_config.h"

namespace weir::api::pages {

struct ModelLine {
  ModelStatus status;
  const ApiConfig* config = nullptr;  // Null: it is not loaded.
  int32_t tokens_max = 0;             // Of one sequence, prompt and output, if it is.
};

// `id`: as the request names it.
std::string model_page(const ModelLine& line, std::string_view id);
std::string models_page(std::span<const ModelLine> lines);

// A model's state, as an event.
std::string status_event(const ModelStatus& status);

}  // namespace weir::api::pages
