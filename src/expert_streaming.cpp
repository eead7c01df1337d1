#include "expert_streaming.h"

#include <cstdio>

#include "base/check.h"
#include "memory_plan.h"
#include "ssd/disk.h"
#include "ssd/expert_store.h"

namespace weir {

namespace {

ssd::PrefetchMode prefetch_mode(const std::string& name) {
  if (name == "previous-token") return ssd::PrefetchMode::kPreviousToken;
  if (name == "lookahead") return ssd::PrefetchMode::kLookahead;
  return name == "off" ? ssd::PrefetchMode::kOff : ssd::PrefetchMode::kAuto;
}

// Tokens of a slab: prompts of this length read each expert once. Its activations may take an
// eighth of the memory; below the least a slab is no better than a chunk.
constexpr int32_t kSlabRowsMax = 4096, kSlabRowsMin = 512;
constexpr int64_t kSlabShare = 8;

}  // namespace

Result<std::unique_ptr<model::Model>> bind_model(const ModelFiles& files,
                                                 model::ModelOptions options,
                                                 const MemoryLimit& limit, const kernels::Ops& ops,
                                                 int members) {
  if (!options.stream_experts) return model::Model::bind(files, options, ops, members);
  options.slab_rows = kSlabRowsMax;
  while (true) {
    WEIR_ASSIGN(std::unique_ptr<model::Model> model,
                model::Model::bind(files, options, ops, members));
    if (model->memory().scratch <= limit.bytes / kSlabShare || options.slab_rows <= kSlabRowsMin)
      return model;
    options.slab_rows /= 2;
  }
}

Result<void> open_experts(model::Model& model, const Options& options, int64_t memory,
                          int32_t sequences_max) {
  if (model.expert_catalogue() == nullptr) return {};
  WEIR_ASSIGN(std::unique_ptr<ssd::Disk> disk,
              ssd::Disk::create(
                  {.uring = options.ssd_io == "auto", .direct = options.ssd_io != "buffered"}));
  return model.open_experts(std::move(disk), {.memory = static_cast<uint64_t>(memory),
                                              .sequences_max = sequences_max,
                                              .prefetch = prefetch_mode(options.ssd_prefetch)});
}

Result<void> open_experts(model::Model& model, const Options& options) {
  const ssd::ExpertCatalogue* catalogue = model.expert_catalogue();
  if (catalogue == nullptr) return {};
  constexpr int32_t kSequences = 1024;  // As many as a benchmark may run at once.
  const int64_t memory = options.expert_memory > 0
                             ? options.expert_memory
                             : static_cast<int64_t>(ssd::whole_memory(*catalogue));
  return open_experts(model, options, memory, kSequences);
}

std::string expert_summary(const model::Model& model) {
  const ssd::StorePlan& plan = model.experts()->plan();
  char text[160];
  std::snprintf(
      text, sizeof text, "%lld of %lld in memory (%.0f %%), %.2f times what a token needs",
      static_cast<long long>(plan.slots), static_cast<long long>(plan.experts),
      100.0 * static_cast<double>(plan.slots) / static_cast<double>(plan.experts), plan.cycles());
  return text;
}

}  // namespace weir
