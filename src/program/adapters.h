// Adapters of the command line, and where others are found: from a name or a path to weights that
// the model computes with.
//
// Threads: any, once the model is packed; the model and the options outlive what is made.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "api/serving/adapters.h"
#include "base/result.h"
#include "model/model.h"
#include "program/memory_plan.h"
#include "program/options.h"

namespace weir {

// What requests may ask to load: a path below --lora-dir, absolute or from there, or ORG/NAME of a
// snapshot in the hub's cache. kForbidden: it lies elsewhere.
Result<std::string> find_adapter(const Options& options, const std::string& given);

// The names that --lora-modules gives.
std::vector<std::string> adapter_names(const Options& options);

// Those of --lora-modules, loaded; null where the server takes none.
Result<std::unique_ptr<api::Adapters>> load_adapters(const Options& options,
                                                     const model::Model& model,
                                                     const MemoryPlan& plan);

}  // namespace weir
