#include "program/draft_sources.h"

#include "base/concat.h"
#include "model/drafts/drafter.h"
#include "sched/answer_drafts.h"
#include "sched/computed_drafts.h"
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

DraftSources make_draft_sources(const Options& options, exec::Executor& executor,
                                const MemoryPlan& plan) {
  DraftSources made;
  if (drafts_copies(options)) {
    made.sources.push_back(std::make_unique<sched::PredictionDrafts>(
        sched::sequences_max(options.queue, plan.parallel)));
    made.sources.push_back(std::make_unique<sched::CopyDrafts>());
    made.sources.push_back(std::make_unique<sched::AnswerDrafts>(plan.answer_texts));
  }
  if (exec::Drafter* drafter = executor.drafter())
    made.sources.push_back(std::make_unique<sched::ComputedDrafts>(*drafter, plan.parallel));
  return made;
}

bool drafts_copies(const Options& options) {
  return options.speculative == Speculative::kAuto || options.speculative == Speculative::kNgram;
}

std::string describe_drafts(const Options& options, const model::Model& model) {
  if (options.speculative == Speculative::kOff) return "off (--speculative off)";
  std::string out;
  if (const model::Drafter* drafter = model.drafter()) out = drafter->describe();
  if (drafts_copies(options))
    out += concat({out.empty() ? "" : "; ",
                   "copies of the prompt, the answer, earlier answers and 'prediction'"});
  return concat({out, " (--speculative ", word_of(options.speculative), "), at most ",
                 std::to_string(options.num_draft_tokens),
                 " drafts of a sequence in a step, as many as pay"});
}

}  // namespace weir
