// Experts from disk: what the options make of a model whose experts stay in its files.
#pragma once

#include <memory>

#include "base/result.h"
#include "memory_plan.h"
#include "model/model.h"
#include "options.h"
#include "ssd/route_trace.h"
#include "ssd/routing_table.h"

namespace weir {

// Model::bind(), with as large a slab for prompts as memory allows where experts are streamed: each
// expert is read once for all of a slab.
Result<std::unique_ptr<model::Model>> bind_model(const ModelFiles& files,
                                                 model::ModelOptions options,
                                                 const MemoryLimit& limit, const kernels::Ops& ops,
                                                 int members);
// What a measurement adds (ssd::StoreOptions); serving never does.
struct ExpertMeasuring {
  const ssd::RoutingTable* routing = nullptr;
  ssd::RouteTrace* trace = nullptr;
};

// Gives the model `memory` bytes for experts, and the disk to read them from. A model that does not
// stream is left alone.
Result<void> open_experts(model::Model& model, const Options& options, int64_t memory,
                          int32_t sequences_max, const ExpertMeasuring& measuring = {});

// What commands without a memory plan give: --expert-memory, else room for all experts.
int64_t expert_memory(const model::Model& model, const Options& options);

Result<void> write_route_trace(const ssd::RouteTrace& trace, const std::string& path);

// "412 of 6144 in memory (7 %), 0.9 of what one token needs; expected: ...", with so much memory
// for experts. REQUIRES: a model that streams.
std::string expert_summary(const model::Model& model, uint64_t memory);
// The bundle that they are read from, or that there is none. REQUIRES: they are open.
std::string expert_source(const model::Model& model);
// What is wrong with so little memory; empty where nothing is.
std::string expert_warning(const model::Model& model, uint64_t memory);

}  // namespace weir
