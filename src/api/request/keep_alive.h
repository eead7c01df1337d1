// keep_alive: how long a model stays loaded after a request, as Ollama's clients say it. Numbers are
// seconds; texts are durations in Go's form, "1h30m", or a number alone.
#pragma once

#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace weir::api {

// Seconds; -1: for ever, which every negative number means. `path` names the field in errors.
Result<double> keep_alive_of(std::string_view path, JsonValue value);

}  // namespace weir::api
