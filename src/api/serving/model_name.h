// The names by which requests may call the model, or one of its adapters.
//
// Threads: pure functions, but for what Adapters locks.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/serving/adapters.h"
#include "api/serving/api_config.h"
#include "base/result.h"

namespace weir::api {

// kNotFound, code model_not_found, unless `model` is this server's. Empty is whatever is served.
Result<void> check_model(const ApiConfig& config, std::string_view model);

// The same, and what the request is computed with.
Result<ChosenAdapter> choose_model(const ApiConfig& config, std::string_view model,
                                   const std::optional<std::vector<AdapterScale>>& lora = {});

// What answers call it: the adapter's name, or the model's id.
std::string model_shown(const ApiConfig& config, std::string_view model);

}  // namespace weir::api
