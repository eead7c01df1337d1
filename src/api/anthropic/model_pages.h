// /v1/models and /v1/models/{id} as Anthropic's clients read them.
//
// Threads: pure functions.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace weir::api::anthropic {

struct ListedModel {
  std::string id;
  int64_t created = 0;  // Seconds since the epoch.
};

std::string model_page(const ListedModel& model);
// `query`: after_id and before_id; all that is left is one page.
std::string models_page(std::span<const ListedModel> models, std::string_view query);

}  // namespace weir::api::anthropic
