#include "api/ollama/names.h"

#include "api/request/json_fields.h"

namespace weir::api::ollama {

namespace {

constexpr std::string_view kLatest = ":latest";

}  // namespace

std::string_view bare_name(std::string_view name) {
  for (const std::string_view hub : {"hf.co/", "huggingface.co/", "https://huggingface.co/"}) {
    if (!name.starts_with(hub)) continue;
    name.remove_prefix(hub.size());
    break;
  }
  if (name.ends_with(kLatest)) name.remove_suffix(kLatest.size());
  return name;
}

std::string tagged_name(std::string_view name) {
  const size_t slash = name.rfind('/');
  const bool tagged = name.find(':', slash == std::string_view::npos ? 0 : slash) != name.npos;
  return std::string(name).append(tagged ? "" : kLatest);
}

Error not_found(std::string_view name) {
  return {ErrorCode::kNotFound, "model '" + std::string(shown(name)) + "' not found", "model",
          "model_not_found"};
}

}  // namespace weir::api::ollama
