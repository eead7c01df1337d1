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
  std::optional<kernels::Isa> forced;
  if (!options.isa.empty()) {
    forced = kernels::parse_isa(options.isa);
    if (!forced)
      return fail(ErrorCode::kConfig,
                  "--isa: expected scalar, avx2, avx512 or amx; found '" + options.isa + "'");
  }
  WEIR_ASSIGN(choice.isa, kernels::choose_isa(forced));
  choice.compute = options.compute == "exact" ? model::Compute::kExact : model::Compute::kFast;
  const bool f32 = options.kv_cache.empty() ? choice.compute == model::Compute::kExact
                                            : options.kv_cache == "f32";
  choice.kv_type = f32 ? kernels::FloatType::kF32 : kernels::FloatType::kF16;
  choice.threads = options.threads > 0 ? options.threads : ThreadTeam::usable_cores();
  return choice;
}

}  // namespace weir
