#include "program/loaded_model.h"

#include <algorithm>
#include <chrono>

#include "base/byte_size.h"
#include "base/log.h"
#include "exec/cpu_executor.h"
#include "program/expert_streaming.h"
#include "program/prompt_cache.h"
#include "ssd/expert_store.h"

namespace weir {

namespace {

using std::chrono::steady_clock;

Result<void> place_weights(exec::Executor& executor) {
  auto printed = steady_clock::now();
  WEIR_TRY(executor.place_weights(
      [&printed](int64_t done, int64_t total) {
        const auto now = steady_clock::now();
        if (now - printed < std::chrono::seconds(1)) return;
        printed = now;
        log::info("model loading " + human_bytes(done) + " of " + human_bytes(total));
      },
      steady_clock::time_point::max()));
  return {};
}

// Unused pages keep their memory for a minute, cached ones longer: never shorter than unused ones.
kv::PageKeeper::Times keep_times(const Options& options) {
  kv::PageKeeper::Times times;
  times.cached = std::chrono::seconds(options.cache_idle);
  if (options.cache_idle > 0) times.free = std::min(times.free, times.cached);
  return times;
}

}  // namespace

std::unique_ptr<exec::Executor> make_executor(model::Model& model, MediaTowers& towers,
                                              const kernels::Ops& ops, ThreadTeam& team) {
  auto executor = std::make_unique<exec::CpuExecutor>(model, ops, team);
  if (towers.any()) {
    towers.runs = std::make_unique<exec::CpuEncoder>(towers.images.encoder.get(),
                                                     towers.sounds.encoder.get(), team);
    executor->use(*towers.runs);
  }
  return executor;
}

Result<ModelFootprint> footprint(const model::Model& model, kv::Format kv_format,
                                 const MediaTowers& towers) {
  const model::ModelMemory memory = model.memory();
  const auto memory_of = [](const MediaTower& tower) {
    return tower.loaded() ? tower.encoder->memory() : model::ModelMemory();
  };
  const model::ModelMemory images = memory_of(towers.images), sounds = memory_of(towers.sounds);
  const ssd::ExpertCatalogue* experts = model.expert_catalogue();
  WEIR_ASSIGN(const kv::MemoryLayout layout,
              kv::MemoryLayout::make(model.memory_needs(), kv_format, model.options().tape_tokens));
  return ModelFootprint{
      .packed_weights = memory.packed_weights,
      .mapped_weights = memory.mapped_weights,
      .scratch = memory.scratch,
      .image_tower = images.packed_weights + images.mapped_weights,
      .image_scratch = images.scratch,
      .sound_encoder = sounds.packed_weights + sounds.mapped_weights,
      .sound_scratch = sounds.scratch,
      .adapter = model.adapter_bytes(),
      .kv_format = kv_format,
      .kv_groups = {layout.groups().begin(), layout.groups().end()},
      .state_bytes = layout.state_bytes(),
      .checkpoint_bytes = layout.checkpoint_bytes(),
      .cross_bytes = layout.cross_bytes(),
      .encoded_bytes = int64_t{layout.cross_rows()} * model.spec().hidden_size *
                       static_cast<int64_t>(sizeof(float)),
      .slab_rows = model.slab_rows(),
      .span_rows_max = model.spec().both_ways != model::BothWays::kNone
                           ? model.options().rows_max
                           : 0,
      .context_max = model.spec().context_max,
      .vocab_size = model.spec().vocab_size,
      .hidden_size = model.spec().hidden_size,
      .experts = experts == nullptr ? 0 : static_cast<int64_t>(ssd::whole_memory(*experts)),
      .expert_cycle = experts == nullptr
                          ? 0
                          : static_cast<int64_t>(experts->cycle_bytes(model.experts_per_token()))};
}

Result<LoadedModel> load_model(const Options& options, const ModelChoice& choice,
                               const MemoryLimit& limit, ThreadTeam& team,
                               std::atomic<int32_t>& open_caches) {
  const kernels::Ops& ops = kernels::ops_for(choice.isa);
  LoadedModel loaded;
  WEIR_ASSIGN(loaded.model, bind_model(choice.model_card, model_options(options, choice), limit,
                                       ops, team.members()));
  WEIR_ASSIGN(loaded.towers, bind_media_towers(choice, ops, team.members()));
  WEIR_TRY(check_hearing(*loaded.model, loaded.towers));
  WEIR_ASSIGN(const ModelFootprint needed,
              footprint(*loaded.model, choice.kv_format, loaded.towers));
  WEIR_ASSIGN(loaded.plan, plan_memory(options, limit, needed));
  loaded.executor = make_executor(*loaded.model, loaded.towers, ops, team);
  WEIR_TRY(place_weights(*loaded.executor));
  WEIR_TRY(open_experts(*loaded.model, options, loaded.plan.expert_bytes,
                        sched::sequences_max(options.queue, loaded.plan.parallel)));
  WEIR_ASSIGN(kv::MemoryLayout layout,
              kv::MemoryLayout::make(loaded.model->memory_needs(), choice.kv_format,
                                     loaded.model->options().tape_tokens));
  WEIR_TRY(take_kv(*loaded.executor, std::move(layout), loaded.plan));
  loaded.disk_cache = open_prompt_cache(options, choice, *loaded.model, needed, open_caches);
  loaded.drafts = make_draft_sources(options, *loaded.executor, loaded.plan);
  return loaded;
}

sched::EngineOptions plan_engine(const Options& options, const MemoryPlan& plan,
                                 const DraftSources& drafts, const model::Model& model) {
  sched::EngineOptions engine;
  engine.step_tokens_max = options.prefill_size;
  engine.step_seconds_max = options.max_step_ms.value_or(0) / 1000;
  engine.running_max = plan.parallel;
  engine.queue_max = options.queue;
  engine.context_max = plan.context_max;
  engine.adapters_max = options.max_loras;
  engine.prefix_cache = options.prefix_cache;
  engine.image_cache_bytes = options.image_cache;
  engine.disk_is_shared = options.stream_experts;
  engine.keep = keep_times(options);
  engine.speculation = drafts.for_engine(options, model);
  return engine;
}

}  // namespace weir
