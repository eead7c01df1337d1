// What the API is told of the model, the plan and the options.
#pragma once

#include "api/api.h"
#include "model/model.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"
#include "program/options.h"
#include "program/text_parts.h"

namespace weir {

// What is the same for all models of a process that serves several; without them.
api::ApiConfig process_config(const Options& options, const ProcessPlan& plan);

// All but the keys, what the sockets say, and the threads' parts: engine and loop. `text` outlives
// the Api.
api::ApiConfig api_config(const Options& options, const ModelChoice& choice,
                          const model::Model& model, const MemoryPlan& plan, const TextParts& text);

}  // namespace weir
