// /v1/models and the events of /models/sse: which models there are, and how they are; in the shapes
// that OpenAI's, vLLM's and llama.cpp's clients read.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "api/models/model_pulls.h"
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
// `pulls`: models that are here once they are fetched.
std::string models_page(std::span<const ModelLine> lines, std::span<const PullStatus> pulls);

// What has come of a model, as an event: its state, that it is gone, or that the list was read
// again.
std::string model_event(ModelEvent event, const ModelStatus& status);
// How far a pull is, likewise.
std::string pull_event(const PullStatus& pull);

}  // namespace weir::api::pages
