// What the server says about itself as JSON: its model, its properties, its open requests; in the
// shapes that OpenAI's, vLLM's and llama.cpp's clients read.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/api_config.h"
#include "sched/request.h"

namespace weir::api {

// `tokens_max`: of one sequence, prompt and output.
std::string model_page(const ApiConfig& config, std::string_view id, int32_t tokens_max);
std::string models_page(const ApiConfig& config, int32_t tokens_max);

// llama.cpp's /props.
std::string props_page(const ApiConfig& config, int32_t tokens_max);

// One choice of an open answer.
struct OpenRequest {
  uint64_t id = 0;
  bool begun = false;  // Else it waits.
  int32_t priority = 0;
  int32_t prompt_tokens = 0;
  int32_t output_tokens = 0;
  int32_t max_tokens = 0;
  double age_s = 0;
};
OpenRequest open_request(const sched::Request& request, int32_t output_tokens,
                         sched::Clock::time_point now);

// llama.cpp's /slots: an entry for each place, taken or free, then one for each request that waits.
// Shows lengths and ages, never anybody's text or parameters.
std::string slots_page(const ApiConfig& config, int32_t tokens_max, std::vector<OpenRequest> open);

}  // namespace weir::api
