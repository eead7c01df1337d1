#include "model_choice.h"

#include "base/thread_team.h"
#include "default_model.h"
#include "model/config_override.h"

namespace weir {

namespace {

// As large as the loader takes a config.json.
constexpr size_t kConfigBytesMax = size_t{4} << 20;

Result<void> override_keys(const std::vector<std::string>& overrides, ModelFiles& files) {
  if (overrides.empty()) return {};
  WEIR_ASSIGN(const FileView config, files.open_file("config.json"));
  if (config.bytes().size() > kConfigBytesMax) return {};  // The loader will say so.
  WEIR_ASSIGN(std::string changed, model::override_config(config.text(), overrides));
  files.replace("config.json", std::move(changed));
  return {};
}

}  // namespace

Result<ModelChoice> choose_model(const Options& options) {
  ModelChoice choice;
  if (options.model.empty()) {
    choice.files = default_model();
  } else {
    WEIR_ASSIGN(choice.files, ModelFiles::open(options.model));
  }
  WEIR_TRY(override_keys(options.config_override, choice.files));
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
