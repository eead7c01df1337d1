// modules.json: sentence-transformers' list of what follows a model to make embeddings or scores of
// its states.
//
// Threads: pure functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "card/model_files.h"

namespace weir::card {

inline constexpr char kModules[] = "modules.json";

struct Module {
  std::string type;  // The class's name without its package: "Pooling".
  std::string path;  // Its folder within the model's; "": the model's own, or that of its type.
};
using Modules = std::optional<std::vector<Module>>;  // Nullopt: there is no such file.

// A malformed file is an error (kConfig, naming file and key).
Result<Modules> read_modules(const ModelFiles& files);

}  // namespace weir::card
