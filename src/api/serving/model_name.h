// The names by which requests may call the model.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "api/serving/api_config.h"
#include "base/result.h"

namespace weir::api {

// kNotFound, code model_not_found, unless `model` is this server's. Empty is whatever is served.
Result<void> check_model(const ApiConfig& config, std::string_view model);

}  // namespace weir::api
