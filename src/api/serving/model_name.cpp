#include "api/serving/model_name.h"

#include <algorithm>
#include <string>

namespace weir::api {

Result<void> check_model(const ApiConfig& config, std::string_view model) {
  if (model.empty() || model == config.model_id || config.any_name ||
      std::find(config.aliases.begin(), config.aliases.end(), model) != config.aliases.end())
    return {};
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

}  // namespace weir::api
