#include "hub/model_info.h"

#include <algorithm>
#include <optional>

#include "base/json.h"
#include "hub/model_name.h"
#include "hub/shown.h"

namespace weir::hub {

namespace {

std::string text_of(JsonObject object, std::string_view key) {
  const std::optional<JsonValue> value = json_get(object, key);
  std::string_view text;
  return value && value->get(text) == simdjson::SUCCESS ? shown(text) : std::string();
}

int64_t count_of(JsonObject object, std::string_view key) {
  const std::optional<JsonValue> value = json_get(object, key);
  int64_t count = 0;
  return value && value->get(count) == simdjson::SUCCESS ? std::max<int64_t>(count, 0) : 0;
}

bool truth_of(JsonObject object, std::string_view key) {
  const std::optional<JsonValue> value = json_get(object, key);
  bool truth = false;
  return value && value->get(truth) == simdjson::SUCCESS && truth;
}

void read_parameters(JsonObject object, ModelInfo& info) {
  constexpr size_t kTypesMax = 64;
  const std::optional<JsonValue> safetensors = json_get(object, "safetensors");
  JsonObject of_tensors, by_type;
  if (!safetensors || safetensors->get(of_tensors) != simdjson::SUCCESS) return;
  info.parameters_total = count_of(of_tensors, "total");
  const std::optional<JsonValue> parameters = json_get(of_tensors, "parameters");
  if (!parameters || parameters->get(by_type) != simdjson::SUCCESS) return;
  for (const auto& [type, value] : by_type) {
    int64_t count = 0;
    if (value.get(count) == simdjson::SUCCESS && info.parameters.size() < kTypesMax)
      info.parameters[shown(type)] = std::max<int64_t>(count, 0);
  }
}

Result<ModelInfo> read_info(JsonValue value) {
  constexpr size_t kTagsMax = 500;
  JsonObject object;
  if (value.get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, std::string("the hub's answer: expected an object, found ") +
                                         json_type_name(value));
  ModelInfo info;
  info.id = text_of(object, "id");
  if (!is_repo_id(info.id))
    return fail(ErrorCode::kInvalid,
                "the hub's answer: 'id': expected ORG/NAME, found '" + info.id + "'");
  info.commit = text_of(object, "sha");
  info.is_private = truth_of(object, "private");
  info.gated = text_of(object, "gated");
  if (info.gated.empty() && truth_of(object, "gated")) info.gated = "auto";
  info.disabled = truth_of(object, "disabled");
  info.pipeline_tag = text_of(object, "pipeline_tag");
  info.last_modified = text_of(object, "lastModified");
  info.downloads = count_of(object, "downloads");
  info.likes = count_of(object, "likes");
  JsonArray tags;
  if (const auto list = json_get(object, "tags"); list && list->get(tags) == simdjson::SUCCESS) {
    for (const JsonValue tag : tags) {
      std::string_view text;
      if (tag.get(text) == simdjson::SUCCESS && info.tags.size() < kTagsMax)
        info.tags.push_back(shown(text));
    }
  }
  read_parameters(object, info);
  return info;
}

}  // namespace

Result<ModelInfo> ModelInfo::parse(std::string_view json) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(json));
  WEIR_ASSIGN(ModelInfo info, read_info(doc.root()));
  if (!is_commit(info.commit))
    return fail(ErrorCode::kInvalid,
                "the hub's answer: 'sha': expected a commit, found '" + info.commit + "'");
  return info;
}

Result<std::vector<ModelInfo>> ModelInfo::parse_list(std::string_view json) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(json));
  JsonArray entries;
  if (doc.root().get(entries) != simdjson::SUCCESS)
    return fail(ErrorCode::kInvalid, std::string("the hub's answer: expected an array, found ") +
                                         json_type_name(doc.root()));
  std::vector<ModelInfo> infos;
  // Models of the hub's first years have names without an organisation: those cannot be pulled.
  for (const JsonValue entry : entries)
    if (Result<ModelInfo> info = read_info(entry)) infos.push_back(std::move(*info));
  return infos;
}

}  // namespace weir::hub
