// Experts from disk: what the options make of a model whose experts stay in its files.
#pragma once

#include <memory>

#include "base/result.h"
#include "card/model_card.h"
#include "model/model.h"
#include "program/memory_plan.h"
#include "program/options.h"
#include "ssd/disk.h"
#include "ssd/store_plan.h"

namespace weir {

// Experts come from a bundle from now on, if there is a good one: for a caller that binds a model
// by itself, before it plans memory by expert_catalogue(). A model that does not stream is left
// alone.
Result<void> choose_bundle(model::Model& model);
// Model::bind(), with as large a slab for prompts as memory allows where experts are streamed: each
// expert is read once for all of a slab. The bundle is chosen.
Result<std::unique_ptr<model::Model>> bind_model(const card::ModelCard& card,
                                                 model::ModelOptions options,
                                                 const MemoryLimit& limit, const kernels::Ops& ops,
                                                 int members);
// The disk that they are read from.
ssd::DiskOptions disk_options(ExpertReads reads);

// Gives the model `memory` bytes for experts, and the disk to read them from. A model that does not
// stream is left alone. REQUIRES: the bundle is chosen.
Result<void> open_experts(model::Model& model, const ExpertOptions& options, int64_t memory,
                          int32_t sequences_max);

// What commands without a memory plan give: --expert-memory, else room for all experts.
int64_t expert_memory(const model::Model& model, const ExpertOptions& options);

// What the log says of a model that streams, with a store as planned (ssd::plan_store(): the one
// that is open, or would be).
//
// "412 of 6144 in memory (7 %), 0.9 of what one token needs; expected: ..."
std::string expert_summary(const model::Model& model, const ssd::StorePlan& plan);
// The bundle that they are read from, or that there is none.
std::string expert_source(const model::Model& model);
// What is wrong with so little memory; empty where nothing is.
std::string expert_warning(const ssd::StorePlan& plan);

}  // namespace weir
