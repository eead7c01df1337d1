// Reading the small JSON files beside a checkpoint's weights that say how to use it.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/json.h"
#include "base/result.h"

namespace weir::api {

// sentence-transformers' list of what follows the model.
inline constexpr char kModules[] = "modules.json";

// Nothing where there is no such file. An error (kConfig) names the file.
Result<std::optional<JsonDoc>> read_file(const ModelFiles& files, const std::string& file);

// kConfig: what the file was expected to say.
tl::unexpected<Error> wrong_file(std::string_view file, const std::string& expected,
                                 JsonValue found);

}  // namespace weir::api
