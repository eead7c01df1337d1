// The table of families: from a config.json to a ModelSpec.
//
// Threads: free functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "model/spec.h"

namespace weir::model {

// Describes the model of a config.json. An unknown architecture is kUnsupported; a key with an
// unexpected value, or one that no reader asks for, is kConfig.
Result<ModelSpec> spec_from_config(JsonValue config);

bool family_known(std::string_view architecture);
std::vector<std::string_view> known_architectures();  // Sorted.

// Sizes that fit one another; what every spec promises to binder and layers.
Result<void> check_spec(const ModelSpec& spec);

}  // namespace weir::model
