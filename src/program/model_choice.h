// ModelChoice: what the options decide about a model before it is loaded: what its files say, the
// kernels, the arithmetic. Shared by serve and every subcommand.
#pragma once

#include "base/result.h"
#include "card/model_card.h"
#include "kernels/cpu_ops.h"
#include "model/model.h"
#include "program/draft_choice.h"
#include "program/options.h"

namespace weir {

struct ModelChoice {
  card::ModelCard model_card;
  kernels::Isa isa = kernels::Isa::kScalar;
  model::Compute compute = model::Compute::kFast;
  kv::Format kv_format = {};
  int threads = 1;
  DraftChoice draft;
};

// Asks the kernel for the AMX tiles where they are chosen: call before any other thread starts.
Result<ModelChoice> choose_model(const Options& options);
// The same of a model whose files have been read.
Result<ModelChoice> choose_model(const Options& options, card::ModelCard model_card);

// What it is bound with, for serving.
model::ModelOptions model_options(const Options& options, const ModelChoice& choice);

}  // namespace weir
