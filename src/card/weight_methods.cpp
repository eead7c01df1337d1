// What `quantization_config` says by its `quant_method`.
#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>

#include "card/weight_format.h"

namespace weir::card {

namespace {

constexpr int kGroupMax = 65536;

using Layout = MatrixFormat::Layout;

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// Cut to a length that a message bears.
std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  return out.append(text.substr(0, 80)).append("\"");
}

// What a config has there, or nothing, is none of those that are read.
tl::unexpected<Error> refuse(const std::string& key, const std::string& expected,
                             const std::string& found) {
  return fail(ErrorCode::kUnsupported, "config.json: quantization_config." + key + ": expected " +
                                           expected + ", found " + found);
}

// A string of the config, among `allowed` in small letters; "" stands for its absence.
Result<std::string> choice(const ConfigReader& c, const std::string& key,
                           std::initializer_list<std::string_view> allowed) {
  const std::string found = lower(c.string_or(key, ""));
  WEIR_TRY(c.status());
  if (std::ranges::count(allowed, found) > 0) return found;
  std::string list;
  for (const std::string_view one : allowed)
    if (!one.empty()) list.append(list.empty() ? "" : ", ").append(in_quotes(one));
  const bool several = std::ranges::count_if(allowed, [](auto one) { return !one.empty(); }) > 1;
  return refuse(key, several ? list.insert(0, "one of ") : list, in_quotes(found));
}

// A number of the config, among `allowed`.
Result<int32_t> number(const ConfigReader& c, const std::string& key,
                       std::initializer_list<int32_t> allowed) {
  const int32_t found = c.require_int(key);
  WEIR_TRY(c.status());
  if (std::ranges::count(allowed, found) > 0) return found;
  std::string list;
  for (const int32_t one : allowed)
    list.append(list.empty() ? "" : ", ").append(std::to_string(one));
  return refuse(key, allowed.size() > 1 ? list.insert(0, "one of ") : list, std::to_string(found));
}

// -1, or a size; 0 stands for all columns.
Result<int32_t> group_size(const ConfigReader& c, const std::string& key, int32_t fallback) {
  const int32_t found = c.int_or(key, fallback, -1, kGroupMax);
  WEIR_TRY(c.status());
  if (found == 0) return refuse(key, "-1 or a size", "0");
  return std::max(found, 0);
}

}  // namespace

Result<void> WeightFormat::read_method(JsonValue object, const std::string& method) {
  const ConfigReader c(object, "config.json", "quantization_config.");
  if (method == "gptq") return read_gptq(c);
  if (method == "awq") return read_awq(c);
  if (method == "compressed-tensors") return read_compressed(c);
  if (method == "modelopt") return read_modelopt(c);
  if (method == "fp8" || method == "fbgemm_fp8") return read_fp8(c);
  if (method == "bitnet") return read_bitnet(c);
  if (method == "mxfp4") {
    default_ = {.layout = Layout::kOpenAi, .bits = 4, .group = 32, .floats = true};
    return {};
  }
  return refuse("quant_method",
                "\"gptq\", \"awq\", \"compressed-tensors\", \"modelopt\", \"fp8\", \"fbgemm_fp8\", "
                "\"mxfp4\", \"bitnet\", or MLX's quantisation, which names none",
                in_quotes(method));
}

Result<void> WeightFormat::read_gptq(const ConfigReader& c) {
  default_ = {.layout = Layout::kGptq, .zero_less = 1, .reorders = c.bool_or("desc_act", false)};
  WEIR_ASSIGN(default_.bits, number(c, "bits", {2, 3, 4, 8}));
  WEIR_ASSIGN(default_.group, group_size(c, "group_size", -1));
  for (const char* key : {"checkpoint_format", "format"}) {
    WEIR_ASSIGN(const std::string version, choice(c, key, {"", "gptq", "gptq_v2"}));
    if (version == "gptq_v2") default_.zero_less = 0;
  }
  WEIR_TRY(choice(c, "pack_dtype", {"", "int32", "torch.int32"}));
  if (c.bool_or("is_marlin_format", false))
    return refuse("is_marlin_format", "false: GPTQ's own layout", "true");
  if (const auto rules = c.value("dynamic")) WEIR_TRY(read_dynamic(*rules));
  return c.status();
}

// {"-:REGEX": {}, "+:REGEX": {"bits": 8, "group_size": 64}}: the first that matches counts. What a
// rule leaves out is not quantised, which the file says too.
Result<void> WeightFormat::read_dynamic(JsonValue rules) {
  JsonObject object;
  if (rules.get(object) != simdjson::SUCCESS)
    return refuse("dynamic", "an object", json_type_name(rules));
  for (const auto [key, value] : object) {
    Rule rule = {.text = std::string(key), .pattern = {}, .format = default_};
    std::string_view pattern = key;
    const bool leaves_out = pattern.starts_with("-:");
    if (leaves_out || pattern.starts_with("+:")) pattern.remove_prefix(2);
    Result<NamePattern> compiled = NamePattern::compile(pattern);
    if (!compiled)
      return fail(ErrorCode::kUnsupported,
                  "config.json: quantization_config.dynamic: " + compiled.error().message);
    rule.pattern = *std::move(compiled);
    if (!leaves_out) {
      const ConfigReader c(value, "config.json", "quantization_config.dynamic." + rule.text + ".");
      WEIR_TRY(c.status());
      if (c.has("bits")) {
        WEIR_ASSIGN(rule.format.bits, number(c, "bits", {2, 3, 4, 8}));
      }
      if (c.has("group_size")) {
        WEIR_ASSIGN(rule.format.group, group_size(c, "group_size", -1));
      }
    }
    rules_.push_back(std::move(rule));
  }
  return {};
}

Result<void> WeightFormat::read_awq(const ConfigReader& c) {
  default_ = {.layout = Layout::kAwq, .symmetric = false};
  WEIR_ASSIGN(default_.bits, number(c, "bits", {4}));
  WEIR_ASSIGN(default_.group, group_size(c, "group_size", 128));
  for (const char* key : {"version", "checkpoint_format", "format"})
    WEIR_TRY(choice(c, key, {"", "gemm"}));
  if (!c.bool_or("zero_point", true)) return refuse("zero_point", "true", "false");
  return c.status();
}

Result<void> WeightFormat::read_modelopt(const ConfigReader& c) {
  default_ = {.layout = Layout::kModelopt, .bits = 8, .group = 16, .floats = true};
  WEIR_TRY(choice(c, "quant_algo",
                  {"", "fp8", "fp8_per_channel_per_token", "nvfp4", "mixed_precision"}));
  WEIR_ASSIGN(default_.group, group_size(c, "group_size", 16));
  if (const auto layers = c.value("quantized_layers")) {
    JsonObject object;
    if (layers->get(object) != simdjson::SUCCESS)
      return refuse("quantized_layers", "an object", json_type_name(*layers));
    for (const auto [key, value] : object) {
      const std::string path = "quantized_layers." + std::string(key);
      const ConfigReader layer(value, "config.json", "quantization_config." + path + ".");
      WEIR_TRY(choice(layer, "quant_algo", {"fp8", "fp8_per_channel_per_token", "nvfp4"}));
    }
  }
  return c.status();
}

Result<WeightFormat> WeightFormat::from_modelopt(JsonValue config) {
  const ConfigReader root(config, "hf_quant_config.json");
  WeightFormat format;
  const auto quantization = root.child("quantization");
  WEIR_TRY(root.status());
  if (!quantization) return format;
  WEIR_TRY(format.read_modelopt(*quantization));
  format.quantised_ = true;
  return format;
}

Result<void> WeightFormat::read_fp8(const ConfigReader& c) {
  default_ = {.layout = Layout::kFp8, .bits = 8, .group = 0, .floats = true};
  WEIR_TRY(choice(c, "fmt", {"", "e4m3", "float8_e4m3fn"}));
  WEIR_TRY(choice(c, "scale_fmt", {"", "ue8m0", "float"}));
  const std::vector<int> block = c.ints("weight_block_size", 1);
  WEIR_TRY(c.status());
  if (block.empty()) return {};
  if (block.size() != 2)
    return refuse("weight_block_size", "two numbers", std::to_string(block.size()));
  default_.block_rows = block[0];
  default_.block_columns = block[1];
  return {};
}

Result<void> WeightFormat::read_bitnet(const ConfigReader& c) {
  default_ = {.layout = Layout::kBitNet, .bits = 2, .group = 0};
  WEIR_ASSIGN(const std::string linear,
              choice(c, "linear_class", {"", "bitlinear", "autobitlinear"}));
  default_.divides = linear != "autobitlinear";
  WEIR_TRY(choice(c, "quantization_mode", {"", "offline"}));
  return {};
}

Result<void> WeightFormat::read_compressed(const ConfigReader& c) {
  default_ = {.layout = Layout::kCompressed, .reorders = true};
  static constexpr std::string_view kFormats =
      "pack-quantized, int-quantized, float-quantized, naive-quantized, nvfp4-pack-quantized, "
      "mxfp4-pack-quantized, mxfp8-quantized, dense, mixed-precision";
  const auto check_format = [&](const std::string& key, const std::string& found) -> Result<void> {
    const std::string all = ", " + std::string(kFormats) + ",";
    if (found.empty() || all.find(", " + found + ",") != all.npos) return {};
    return refuse(key, "one of " + std::string(kFormats), in_quotes(found));
  };
  WEIR_TRY(check_format("format", c.string_or("format", "")));
  if (const auto sparsity = c.child("sparsity_config"))
    WEIR_TRY(check_format("sparsity_config.format", sparsity->string_or("format", "")));
  const auto groups = c.child("config_groups");
  WEIR_TRY(c.status());
  if (!groups) return {};
  for (const std::string_view name : groups->keys()) {
    const auto group = groups->child(name);
    WEIR_TRY(c.status());
    if (!group || !group->has("weights")) continue;  // Activations alone.
    const std::string key = "config_groups." + std::string(name);
    WEIR_TRY(check_format(key + ".format", group->string_or("format", "")));
    WEIR_TRY(read_group(*group, key));
  }
  return c.status();
}

Result<void> WeightFormat::read_group(const ConfigReader& group, const std::string& key) {
  Group out{.format = {.layout = Layout::kCompressed, .reorders = true}};
  MatrixFormat& f = out.format;
  const ConfigReader w = *group.child("weights");
  f.bits = w.int_or("num_bits", 8, 1, 16);
  const std::string type = w.string_or("type", "int");
  f.floats = type == "float";
  f.symmetric = w.bool_or("symmetric", true);
  const std::string strategy = w.string_or("strategy", "");
  const int32_t size = w.int_or("group_size", -1, -1, kGroupMax);
  WEIR_TRY(w.status());
  const std::string at = key + ".weights.";
  if (type != "int" && type != "float")
    return refuse(at + "type", "\"int\" or \"float\"", in_quotes(type));
  if (f.floats ? f.bits != 4 && f.bits != 8 : f.bits < 2 || f.bits > 8)
    return refuse(at + "num_bits", f.floats ? "4 or 8 for floats" : "2 to 8 for integers",
                  std::to_string(f.bits));
  f.group = std::max(size, 0);
  if (strategy == "block") {
    const std::vector<int> block = w.ints("block_structure", 1);
    WEIR_TRY(w.status());
    if (block.size() != 2)
      return refuse(at + "block_structure", "two numbers", std::to_string(block.size()));
    f.block_rows = block[0];
    f.block_columns = block[1];
  } else if (strategy == "tensor" || strategy == "channel") {
    f.group = 0;
  } else if (!strategy.empty() && strategy != "group" && strategy != "tensor_group") {
    return refuse(at + "strategy", "tensor, channel, group, tensor_group or block",
                  in_quotes(strategy));
  }
  for (const std::string& target : group.strings("targets")) {
    if (target == "Linear") {
      out.linear = true;
    } else if (target == "Embedding") {
      out.embedding = true;
    } else if (target.starts_with("re:")) {
      Result<NamePattern> pattern = NamePattern::compile(std::string_view(target).substr(3));
      if (!pattern)
        return fail(ErrorCode::kUnsupported, "config.json: quantization_config." + key +
                                                 ".targets: " + pattern.error().message);
      out.patterns.push_back(*std::move(pattern));
    } else {
      out.names.push_back(target);
    }
  }
  WEIR_TRY(group.status());
  groups_.push_back(std::move(out));
  return {};
}

}  // namespace weir::card
