// What the server says about itself as JSON: its properties, its open requests; in llama.cpp's
// shapes.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/serving/api_config.h"
#include "api/stream/open_request.h"

namespace weir::api::pages {

// llama.cpp's /props. `tokens_max`: of one sequence, prompt and output.
std::string props_page(const ApiConfig& config, int32_t tokens_max);

// vLLM's /tokenizer_info: what evaluation harnesses make prompts with.
std::string tokenizer_page(const ApiConfig& config);

// llama.cpp's /slots: an entry for each place, taken or free, then one for each request that waits.
// Shows lengths and ages, never anybody's text or parameters.
std::string slots_page(const ApiConfig& config, int32_t tokens_max, std::vector<OpenRequest> open);

}  // namespace weir::api::pages
