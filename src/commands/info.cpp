#include "commands/info.h"

#include <optional>
#include <utility>
#include <vector>

#include "commands/info_report.h"
#include "fit/assessment.h"
#include "fit/catalogue.h"
#include "fit/lookup.h"
#include "program/expert_streaming.h"
#include "program/loaded_model.h"
#include "program/memory_plan.h"
#include "program/model_choice.h"

namespace weir {

namespace {

// Ends with an error where the model would not start as the options have it: the error says by how
// much, and what helps. As JSON that is an answer like others.
Result<void> report(const Options& options, const MemoryLimit& limit, const fit::Found& found,
                    card::ModelCard card) {
  WEIR_ASSIGN(const ModelChoice choice, choose_model(options, std::move(card)));
  WEIR_ASSIGN(const std::unique_ptr<model::Model> model,
              bind_model(choice.model_card, model_options(options, choice), limit,
                         kernels::ops_for(choice.isa), choice.threads));
  WEIR_ASSIGN(const MediaTowers towers,
              bind_media_towers(choice, kernels::ops_for(choice.isa), choice.threads));
  WEIR_ASSIGN(const ModelFootprint needed, footprint(*model, choice.kv_format, towers));
  const Result<MemoryPlan> planned = plan_memory(options, limit, needed);
  // Files that are here already can be had in fewer bits without fetching others.
  const std::vector<fit::Way> elsewhere =
      found.here ? std::vector<fit::Way>{} : fit::Catalogue::built_in().others(found.id, options);
  WEIR_ASSIGN(const fit::Assessment assessment,
              fit::assess(options, limit, choice, *model, elsewhere, found.disk));
  const std::optional<MemoryPlan> plan = planned ? std::optional(*planned) : std::nullopt;
  const ModelReport report = {options, found, choice, *model, needed, plan, assessment};
  if (options.json) return print_info_json(report), Result<void>();
  WEIR_TRY(print_info_text(report));
  if (!planned) return tl::unexpected(planned.error());
  return {};
}

}  // namespace

Result<void> show_info(const Options& options) {
  const MemoryLimit limit = memory_limit(options);
  WEIR_ASSIGN(const fit::Found found, fit::look_up(options));
  const auto done = [&]() -> Result<void> {
    WEIR_ASSIGN(card::ModelCard card, card::ModelCard::open(found.files, options.config_override));
    return report(options, limit, found, std::move(card));
  }();
  if (done || !options.json) return done;
  WEIR_ASSIGN(const fit::Assessment unknown, fit::not_read(done.error()));
  print_unknown_json(found, unknown);
  return {};
}

}  // namespace weir
