#include "api/serving/model_name.h"

#include <algorithm>
#include <string>

namespace weir::api {

Result<void> check_model(const ApiConfig& config, std::string_view model) {
  if (model.empty() || model == config.model_id || config.any_name ||
      std::find(config.aliases.begin(), config.aliases.end(), model) != config.aliases.end())
    return {};
  if (config.adapters != nullptr && config.adapters->find(model)) return {};
  std::string also;
  for (const std::string& name : config.given_names)
    if (name != config.model_id) also += (also.empty() ? " (also called '" : "', '") + name;
  if (!also.empty()) also += "')";
  return fail(ErrorCode::kNotFound,
              "The model '" + std::string(model.substr(0, 256)) +
                  "' does not exist; this server has '" + config.model_id + "'" + also +
                  ". Leave 'model' out, or start the server with --alias '*' to have it answer to "
                  "any name.",
              "model", "model_not_found");
}

Result<ChosenAdapter> choose_model(const ApiConfig& config, std::string_view model,
                                   const std::optional<std::vector<AdapterScale>>& lora) {
  WEIR_TRY(check_model(config, model));
  if (config.adapters != nullptr) return config.adapters->choose(model, lora);
  const auto asked = [](const AdapterScale& each) { return each.scale != 0; };
  if (lora && std::ranges::any_of(*lora, asked))
    return fail(ErrorCode::kUnsupported,
                "Unsupported: 'lora': this server has no adapters (--lora-modules).", "lora",
                "unsupported_parameter");
  return ChosenAdapter{};
}

std::string model_shown(const ApiConfig& config, std::string_view model) {
  const bool adapter = config.adapters != nullptr && config.adapters->find(model);
  return adapter ? std::string(model) : config.model_id;
}

}  // namespace weir::api
