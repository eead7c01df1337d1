// AdapterScale: one adapter of a request's `lora`, or of a call of /lora-adapters (llama-server).
//
// Threads: values and pure functions.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace weir::api {

inline constexpr size_t kAdapterScalesMax = 1024;  // Of one list.

struct AdapterScale {
  int64_t id = 0;
  double scale = 0;
};

// [{"id": 0, "scale": 0.5}, ...]; whether there are such adapters is not looked at.
Result<std::vector<AdapterScale>> parse_adapter_scales(std::string_view path, JsonValue value);

}  // namespace weir::api
