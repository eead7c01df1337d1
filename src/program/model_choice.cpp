#include "program/model_choice.h"

#include "base/thread_team.h"
#include "card/default_model.h"

namespace weir {

Result<ModelChoice> choose_model(const Options& options) {
  ModelChoice choice;
  WEIR_ASSIGN(choice.model_card,
              options.model.empty()
                  ? card::ModelCard::open(card::default_model(), options.config_override)
                  : card::ModelCard::open_folder(options.model, options.config_override));
  WEIR_ASSIGN(choice.isa, kernels::choose_isa(options.isa));
  choice.compute = options.compute;
  choice.kv_type = options.kv_cache.value_or(choice.compute == model::Compute::kExact
                                                 ? kernels::FloatType::kF32
                                                 : kernels::FloatType::kF16);
  choice.threads = options.threads > 0 ? options.threads : ThreadTeam::usable_cores();
  return choice;
}

}  // namespace weir
