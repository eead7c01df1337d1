// /v1/models and /v1/models/{id} as Anthropic's clients read them.
//
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>

#include "api/serving/api_config.h"

namespace weir::api::anthropic {

std::string model_page(const ApiConfig& config, std::string_view id);
// `query`: after_id and before_id; with one model there is nothing before or after it.
std::string models_page(const ApiConfig& config, std::string_view query);

}  // namespace weir::api::anthropic
