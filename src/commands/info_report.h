// What `weir info` says of a model: as text for people, or as JSON.
#pragma once

#include <optional>

#include "fit/assessment.h"
#include "fit/lookup.h"
#include "model/model.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"
#include "program/options.h"

namespace weir {

struct ModelReport {
  const Options& options;
  const fit::Found& found;
  const ModelChoice& choice;
  const model::Model& model;
  const ModelFootprint& footprint;
  const std::optional<MemoryPlan>& plan;  // None: it does not run as the options have it.
  const fit::Assessment& assessment;
};

// Errors: those of planning experts on disk.
Result<void> print_info_text(const ModelReport& report);
void print_info_json(const ModelReport& report);
// Of a model whose files are not read.
void print_unknown_json(const fit::Found& found, const fit::Assessment& assessment);

}  // namespace weir
