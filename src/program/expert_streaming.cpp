#include "program/expert_streaming.h"

#include <algorithm>
#include <cstdio>

#include "base/byte_size.h"
#include "base/log.h"
#include "model/expert_pack.h"
#include "program/machine_speed.h"
#include "ssd/calibration.h"
#include "ssd/disk.h"
#include "ssd/expert_forecast.h"
#include "ssd/expert_store.h"

namespace weir {

namespace {

// Tokens of a slab: prompts of this length read each expert once. Its activations may take an
// eighth of the memory; below the least a slab is no better than a chunk.
constexpr int32_t kSlabRowsMax = 4096, kSlabRowsMin = 512;
constexpr int64_t kSlabShare = 8;
// Below, an expert is evicted before the next token can ask for it.
constexpr double kCyclesLeast = 1.25;

ssd::ExpertLoad load_of(const model::Model& model, uint64_t memory) {
  const ssd::ExpertCatalogue& catalogue = *model.expert_catalogue();
  return {.bank_bytes = catalogue.bank_bytes(),
          .cycle_bytes = catalogue.cycle_bytes(model.experts_per_token()),
          .token_bytes = model.token_work().weight_bytes,
          .memory_bytes = memory};
}

}  // namespace

Result<void> choose_bundle(model::Model& model) {
  model::StreamedBank* bank = model.streamed_bank();
  if (bank == nullptr) return {};
  WEIR_ASSIGN(const std::vector<std::string> refused, model::choose_bundle(*bank));
  for (const std::string& why : refused) log::warn("experts bundle not used " + why);
  return {};
}

Result<std::unique_ptr<model::Model>> bind_model(const card::ModelCard& card,
                                                 model::ModelOptions options,
                                                 const MemoryLimit& limit, const kernels::Ops& ops,
                                                 int members) {
  if (!options.stream_experts) return model::Model::bind(card, options, ops, members);
  options.slab_rows = kSlabRowsMax;
  while (true) {
    WEIR_ASSIGN(std::unique_ptr<model::Model> model,
                model::Model::bind(card, options, ops, members));
    if (model->memory().scratch <= limit.bytes / kSlabShare || options.slab_rows <= kSlabRowsMin) {
      WEIR_TRY(choose_bundle(*model));
      return model;
    }
    options.slab_rows /= 2;
  }
}

ssd::DiskOptions disk_options(ExpertReads reads) {
  return {.uring = reads == ExpertReads::kAuto,
          .direct = reads != ExpertReads::kBuffered && reads != ExpertReads::kPageCache,
          .keep_cached = reads == ExpertReads::kPageCache};
}

Result<void> open_experts(model::Model& model, const ExpertOptions& options, int64_t memory,
                          int32_t sequences_max) {
  const ssd::ExpertCatalogue* catalogue = model.expert_catalogue();
  if (catalogue == nullptr) return {};
  WEIR_ASSIGN(std::unique_ptr<ssd::Disk> disk, ssd::Disk::create(disk_options(options.ssd_io)));
  ssd::StoreOptions store = {.memory = static_cast<uint64_t>(memory),
                             .sequences_max = sequences_max,
                             .prefetch = options.ssd_prefetch};
  if (const auto measured = ssd::load_calibration(catalogue->main_file()))
    store.queue = ssd::limits_for(*measured);
  return model.open_experts(std::move(disk), store);
}

int64_t expert_memory(const model::Model& model, const ExpertOptions& options) {
  if (options.expert_memory > 0 || model.expert_catalogue() == nullptr)
    return options.expert_memory;
  return static_cast<int64_t>(ssd::whole_memory(*model.expert_catalogue()));
}

std::string expert_summary(const model::Model& model, const ssd::StorePlan& plan) {
  const ssd::ExpertLoad load = load_of(model, plan.slot_memory);
  char text[160];
  std::snprintf(
      text, sizeof text, "%lld of %lld in memory (%.0f %%), %.2f of what one token needs; ",
      static_cast<long long>(plan.slots), static_cast<long long>(plan.experts),
      100 * static_cast<double>(plan.slots) / static_cast<double>(plan.experts), plan.cycles());
  return text + ssd::forecast_text(
                    load, load_read_speed(model.expert_catalogue()->files().front()));
}

std::string expert_source(const model::Model& model) {
  const ssd::ExpertCatalogue& catalogue = *model.expert_catalogue();
  if (catalogue.packed()) return catalogue.main_file();
  return "the checkpoint's own files: no bundle, 'weir pack' would write one of " +
         human_bytes(static_cast<int64_t>(catalogue.bank_bytes()));
}

std::string expert_warning(const ssd::StorePlan& plan) {
  const auto least = static_cast<uint64_t>(kCyclesLeast * static_cast<double>(plan.cycle_bytes));
  if (plan.slot_memory >= least) return {};
  char text[200];
  std::snprintf(
      text, sizeof text,
      "memory for experts holds %.2f of what one token needs: nearly all is read again for "
      "every token; %.2f, or --expert-memory %lluM, is the least that keeps any",
      plan.cycles(), kCyclesLeast, static_cast<unsigned long long>((least >> 20) + 1));
  return text;
}

}  // namespace weir
