// LoadedModel: a model that is bound, its memory planned and taken, its weights placed and its
// experts open.
#pragma once

#include <atomic>
#include <memory>

#include "base/result.h"
#include "base/thread_team.h"
#include "exec/executor.h"
#include "kv/disk/disk_cache.h"
#include "model/model.h"
#include "program/draft_sources.h"
#include "program/media_towers.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"
#include "program/options.h"
#include "sched/engine.h"

namespace weir {

struct LoadedModel {
  std::unique_ptr<kv::disk::DiskCache> disk_cache;  // Null: there is none. Outlives the engine.
  std::unique_ptr<model::Model> model;
  MediaTowers towers;
  std::unique_ptr<exec::Executor> executor;  // Of these: it goes first.
  MemoryPlan plan;
  DraftSources drafts;
};

// What a model takes, part by part: with all that load_model() makes of it. It is bound; its
// weights need not be packed yet.
Result<ModelFootprint> footprint(const model::Model& model, kv::Format kv_format,
                                 const MediaTowers& towers = {});

// `model` and `tower` outlive it.
std::unique_ptr<exec::Executor> make_executor(model::Model& model, MediaTowers& towers,
                                              const kernels::Ops& ops, ThreadTeam& team);

// For serving. Logs how far it is, once a second.
// `open_caches`: of the process (prompt_cache.h).
Result<LoadedModel> load_model(const Options& options, const ModelChoice& choice,
                               const MemoryLimit& limit, ThreadTeam& team,
                               std::atomic<int32_t>& open_caches);

// What the engine is told of the options and the plan; its callbacks are the caller's.
sched::EngineOptions plan_engine(const Options& options, const MemoryPlan& plan,
                                 const DraftSources& drafts, const model::Model& model);

}  // namespace weir
