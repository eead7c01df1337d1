// What Ollama's clients read of models: /api/tags, /api/show, /api/ps; and the version of the API.
//
// Threads: pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/reference/endpoint_table.h"
#include "api/serving/model_store.h"

namespace weir::api::ollama {

std::string version_page();
std::string tags_page(std::span<const ModelEntry> models);
// Of those that are loaded.
std::string ps_page(std::span<const ModelEntry> models);
std::string show_page(const ModelDetails& model);

// The model that a body of /api/show, /api/pull or /api/delete names, as the client spells it: its
// `model`, or `name` as it was once called.
struct ModelBody {
  std::string model{};
  bool stream = true;  // Of /api/pull.
};
Result<ModelBody> parse_show(std::string_view body);
Result<ModelBody> parse_pull(std::string_view body);
Result<ModelBody> parse_delete(std::string_view body);

// Their fields, for the reference.
std::vector<FieldDoc> show_fields();
std::vector<FieldDoc> pull_fields();
std::vector<FieldDoc> delete_fields();

}  // namespace weir::api::ollama
