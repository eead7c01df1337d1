#include "card/weight_format.h"

#include <algorithm>
#include <array>

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
                                           "; found " + simdjson::minify(*value).substr(0, 80));
}

// {"group_size": 64, "bits": 4, "mode": "affine"}: a module's numbers, on top of `format`.
Result<void> read_matrix(JsonObject object, std::string_view where, MatrixFormat& format) {
  static constexpr std::array<int32_t, 3> kGroups = {32, 64, 128};
  static constexpr std::array<int32_t, 6> kBits = {2, 3, 4, 5, 6, 8};
  if (const auto mode = json_get(object, "mode")) {
    std::string_view name;
    if (mode->get(name) != simdjson::SUCCESS || name != "affine")
      return fail(ErrorCode::kUnsupported, "config.json: " + std::string(where) +
                                               ".mode: expected \"affine\", found " +
                                               simdjson::minify(*mode).substr(0, 80));
  }
  WEIR_TRY(read_size(object, where, "group_size", kGroups, format.group));
  return read_size(object, where, "bits", kBits, format.bits);
}

}  // namespace

Result<WeightFormat> WeightFormat::from_config(JsonValue config) {
  WeightFormat format;
  JsonObject root;
  if (config.get(root) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig,
                std::string("config.json: expected an object, found ") + json_type_name(config));
  std::string_view where = "quantization";
  auto found = json_get(root, where);
  if (!found) {
    where = "quantization_config";
    found = json_get(root, where);
  }
  if (!found) return format;
  JsonObject object;
  if (found->get(object) != simdjson::SUCCESS)
    return fail(ErrorCode::kConfig, "config.json: " + std::string(where) +
                                        ": expected an object, found " + json_type_name(*found));
  if (const auto method = json_get(object, "quant_method"))
    return fail(ErrorCode::kUnsupported,
                "config.json: " + std::string(where) +
                    ".quant_method: expected MLX's affine quantisation, found " +
                    simdjson::minify(*method).substr(0, 80));
  WEIR_TRY(read_matrix(object, where, format.default_));
  for (const auto [key, value] : object) {
    JsonObject entry;
    // `false` says that the module is not quantised, which the file says too.
    if (value.get(entry) != simdjson::SUCCESS) continue;
    MatrixFormat matrix = format.default_;
    WEIR_TRY(read_matrix(entry, key, matrix));
    format.overrides_.emplace(key, matrix);
  }
  format.quantised_ = true;
  return format;
}

MatrixFormat WeightFormat::of(std::string_view module, DType scale_type) const {
  const auto found = overrides_.find(module);
  MatrixFormat format = found == overrides_.end() ? default_ : found->second;
  format.scale_type = scale_type;
  return format;
}

}  // namespace weir::card
