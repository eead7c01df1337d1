#include "card/weight_format.h"

#include <algorithm>
#include <array>
#include <optional>
#include <span>

namespace weir::card {

namespace {

Result<void> read_size(JsonObject object, std::string_view where, std::string_view key,
                       std::span<const int32_t> allowed, int32_t& out) {
  const auto value = json_get(object, key);
  if (!value) return {};  // Overrides may give one of the two.
  int64_t number = 0;
  if (value->get(number) == simdjson::SUCCESS && std::ranges::count(allowed, number) > 0) {
    out = static_cast<int32_t>(number);
    return {};
  }
  std::string list;
  for (const int32_t a : allowed) list += (list.empty() ? "" : ", ") + std::to_string(a);
  return fail(ErrorCode::kUnsupported, "config.json: " + std::string(where) + "." +
                                           std::string(key) + ": expected one of " + list +
                                           "; found " + json_excerpt(*value));
}

// MLX's formats of small floats, which have one size each.
struct FloatMode {
  std::string_view name;
  int32_t bits;
  int32_t group;
};
constexpr std::array kFloatModes = {
    FloatMode{"mxfp4", 4, 32},
    FloatMode{"mxfp8", 8, 32},
    FloatMode{"nvfp4", 4, 16},
};

// {"group_size": 64, "bits": 4, "mode": "affine"}: a module's numbers, on top of `format`. Without
// a mode they are affine, as MLX takes them, whatever mode other modules have.
Result<void> read_matrix(JsonObject object, std::string_view where, MatrixFormat& format) {
  static constexpr std::array<int32_t, 3> kGroups = {32, 64, 128};
  static constexpr std::array<int32_t, 6> kBits = {2, 3, 4, 5, 6, 8};
  std::string_view name = "affine";
  const auto mode = json_get(object, "mode");
  const auto* floats = kFloatModes.end();
  if (mode) {
    if (mode->get(name) == simdjson::SUCCESS)
      floats = std::ranges::find(kFloatModes, name, &FloatMode::name);
    if (name != "affine" && floats == kFloatModes.end())
      return fail(ErrorCode::kUnsupported, "config.json: " + std::string(where) +
                                               ".mode: expected \"affine\", \"mxfp4\", \"mxfp8\" "
                                               "or \"nvfp4\", found " +
                                               json_excerpt(*mode));
  }
  if (floats != kFloatModes.end()) {
    format = {.layout = MatrixFormat::Layout::kMlxFloats,
              .bits = floats->bits,
              .group = floats->group,
              .floats = true};
    WEIR_TRY(read_size(object, where, "group_size", std::span(&floats->group, 1), format.group));
    return read_size(object, where, "bits", std::span(&floats->bits, 1), format.bits);
  }
  if (format.layout != MatrixFormat::Layout::kMlx) format = {};
  WEIR_TRY(read_size(object, where, "group_size", kGroups, format.group));
  return read_size(object, where, "bits", kBits, format.bits);
}

// What says how matrices are stored, and `where` it is: at the top or, where a model of text lies
// within another, among its keys.
std::optional<JsonValue> find_quantisation(JsonObject root, std::string& where) {
  for (const char* model : {"", "llm_config", "text_config"}) {
    JsonObject keys = root;
    if (*model != '\0') {
      const auto within = json_get(root, model);
      if (!within || within->get(keys) != simdjson::SUCCESS) continue;
    }
    for (const char* key : {"quantization", "quantization_config"}) {
      where = *model == '\0' ? key : std::string(model) + "." + key;
      if (auto found = json_get(keys, key)) return found;
    }
  }
  return std::nullopt;
}

}  // namespace

const char* MatrixFormat::layout_name() const {
  switch (layout) {
    case Layout::kMlx:
    case Layout::kMlxFloats:
      return "MLX";
    case Layout::kGptq:
      return "gptq";
    case Layout::kAwq:
      return "awq";
    case Layout::kCompressed:
      return "compressed-tensors";
    case Layout::kModelopt:
      return "modelopt";
    case Layout::kFp8:
      return "fp8";
    case Layout::kOpenAi:
      return "mxfp4";
    case Layout::kBitNet:
      return "bitnet";
  }
  return "?";
}

Result<WeightFormat> WeightFormat::from_config(JsonValue config) {
  WeightFormat format;
  JsonObject root;
  if (config.get(root) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                std::string("config.json: expected an object, found ") + json_type_name(config));
  std::string where;
  const std::optional<JsonValue> found = find_quantisation(root, where);
  if (!found) return format;
  JsonObject object;
  if (found->get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                "config.json: " + where + ": expected an object, found " + json_type_name(*found));
  if (const auto method = json_get(object, "quant_method")) {
    std::string_view name;
    if (method->get(name) != simdjson::SUCCESS)
      return fail(ErrorCode::kConfig, "config.json: " + where +
                                          ".quant_method: expected a string, found " +
                                          json_excerpt(*method));
    WEIR_TRY(format.read_method(*found, std::string(name)));
  } else {
    WEIR_TRY(format.read_mlx(object, where));
  }
  format.quantised_ = true;
  return format;
}

Result<void> WeightFormat::read_mlx(JsonObject object, std::string_view where) {
  WEIR_TRY(read_matrix(object, where, default_));
  for (const auto [key, value] : object) {
    JsonObject entry;
    // `false` says that the module is not quantised, which the file says too.
    if (value.get(entry) != simdjson::SUCCESS) continue;
    MatrixFormat matrix = default_;
    WEIR_TRY(read_matrix(entry, key, matrix));
    overrides_.emplace(key, matrix);
  }
  return {};
}

const WeightFormat::Group* WeightFormat::group_of(std::string_view module) const {
  const std::string_view last = module.substr(module.rfind('.') + 1);
  const bool embedding = last.find("embed") != last.npos || last == "wte";
  const auto by_name = [&](const Group& g) { return std::ranges::count(g.names, module) > 0; };
  const auto by_pattern = [&](const Group& g) {
    return std::ranges::any_of(g.patterns,
                               [&](const NamePattern& p) { return p.matches_begin(module); });
  };
  const auto by_class = [&](const Group& g) { return embedding ? g.embedding : g.linear; };
  auto found = std::ranges::find_if(groups_, by_name);
  if (found == groups_.end()) found = std::ranges::find_if(groups_, by_pattern);
  if (found == groups_.end()) found = std::ranges::find_if(groups_, by_class);
  return found == groups_.end() ? nullptr : &*found;
}

Result<MatrixFormat> WeightFormat::of(std::string_view module) const {
  if (default_.layout == MatrixFormat::Layout::kCompressed) {
    const Group* group = group_of(module);
    if (group == nullptr)
      return fail(ErrorCode::kConfig,
                  "config.json: quantization_config.config_groups: expected a group whose targets "
                  "have '" +
                      std::string(module) + "', which is stored quantised; found none");
    return group->format;
  }
  for (const Rule& rule : rules_)
    if (rule.pattern.matches_begin(module)) return rule.format;
  const auto found = overrides_.find(module);
  return found == overrides_.end() ? default_ : found->second;
}

}  // namespace weir::card
