// DraftSources: where a model's drafts come from, as the options say, and the words that say so to
// a person.
//
// Threads: a value of its owner's; the engine calls what is in it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "exec/executor.h"
#include "model/model.h"
#include "program/memory_plan.h"
#include "program/options.h"
#include "sched/draft_source.h"
#include "sched/engine_options.h"

namespace weir {

struct DraftSources {
  std::vector<std::unique_ptr<sched::DraftSource>> sources;  // Those that promise most come first.

  // For EngineOptions. It points to what is in here, and to the model.
  sched::SpeculationOptions for_engine(const Options& options, const model::Model& model) const;
};

// For as many sequences as the engine tells apart (sched::sequences_max()). The executor outlives
// them; it has its memory.
DraftSources make_draft_sources(const Options& options, exec::Executor& executor,
                                const MemoryPlan& plan);

// Texts are indexed for answers.
bool drafts_copies(const Options& options);
// What is used and why.
std::string describe_drafts(const Options& options, const model::Model& model);

}  // namespace weir
