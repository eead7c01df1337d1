#include "program/draft_sources.h"

#include "sched/copy_drafts.h"
#include "sched/prediction_drafts.h"
#include "ssd/expert_store.h"

namespace weir {

sched::SpeculationOptions DraftSources::for_engine(const Options& options,
                                                   const model::Model& model) const {
  sched::SpeculationOptions speculation;
  speculation.drafts_max = options.num_draft_tokens;
  if (const ssd::ExpertStore* experts = model.experts())
    speculation.stalled_seconds = [experts] {
      return static_cast<double>(experts->stats().stall_ns.value()) * 1e-9;
    };
  for (const auto& source : sources) speculation.sources.push_back(source.get());
  return speculation;
}

DraftSources make_draft_sources(const Options& options, int32_t sequences_max) {
  DraftSources made;
  if (options.speculative == Speculative::kOff) return made;
  made.sources.push_back(std::make_unique<sched::PredictionDrafts>(sequences_max));
  made.sources.push_back(std::make_unique<sched::CopyDrafts>());
  return made;
}

bool drafts_copies(const Options& options) { return options.speculative != Speculative::kOff; }

std::string describe_drafts(const Options& options) {
  if (options.speculative == Speculative::kOff) return "off (--speculative off)";
  return "copies of the prompt, the answer and 'prediction' (--speculative " +
         std::string(word_of(options.speculative)) + "), at most " +
         std::to_string(options.num_draft_tokens) + " drafts of a sequence in a step, as many as pay";
}

}  // namespace weir
