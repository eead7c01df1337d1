// keep_alive: how long a model stays loaded after a request, as Ollama's clients say it. Numbers
// are seconds; texts are durations in Go's form, "1h30m", or a number alone.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace weir::api {

// Seconds; -1: for ever, which every negative number means. `path` names the field in errors.
Result<double> keep_alive_of(std::string_view path, JsonValue value);

// Whole ones, rounded up: half a second is not at once, which 0 means. At most a hundred years.
int64_t whole_seconds(double seconds);

}  // namespace weir::api
