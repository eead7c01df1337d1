#include "model/config_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace weir::model {

namespace {

// Keys that never change what the forward pass computes: bookkeeping, training, dropout, tokens
// (the tokenizer's business), and who wrote the file. Sorted.
constexpr std::array<std::string_view, 53> kMeaningless = {
    "_attn_implementation",
    "_name_or_path",
    "architectures",
    "attention_dropout",
    "attn_implementation",
    "attn_pdrop",
    "auto_map",
    "begin_suppress_tokens",
    "bos_token_id",
    "cache_implementation",
    "chunk_size_feed_forward",
    "classifier_dropout",
    "decoder_start_token_id",
    "dtype",
    "embd_pdrop",
    "eos_token_id",
    "finetuning_task",
    "gradient_checkpointing",
    "hidden_dropout",
    "id2label",
    "image_token_id",
    "initializer_range",
    "is_decoder",
    "is_encoder_decoder",
    "is_llama_config",
    "label2id",
    "language",
    "license",
    "max_length",
    "mlp_dropout",
    "model_name",
    "model_type",
    "output_attentions",
    "output_hidden_states",
    "output_router_logits",
    "pad_token_id",
    "resid_pdrop",
    "return_dict",
    "rope_interleaved",
    "router_aux_loss_coef",
    "router_jitter_noise",
    "router_z_loss_coef",
    "sep_token_id",
    "task_specific_params",
    "tf_legacy_loss",
    "tokenizer_class",
    "torch_dtype",
    "torchscript",
    "transformers.js_config",
    "transformers_version",
    "unsloth_fixed",
    "unsloth_version",
    "use_cache",
};
static_assert(std::is_sorted(kMeaningless.begin(), kMeaningless.end()));

std::string quoted(std::string_view path, std::string_view key) {
  constexpr size_t kShown = 120;
  std::string out = "'";
  out.append(path).append(key.substr(0, kShown)).append("'");
  return out;
}

}  // namespace

Result<JsonDoc> parse_config(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kWords = {
      {{"Infinity", "1e308"}, {"NaN", "null"}}};
  std::string json;
  json.reserve(text.size());
  bool in_string = false;
  for (size_t i = 0; i < text.size();) {
    size_t length = 1;
    std::string_view put = text.substr(i, 1);
    if (in_string && text[i] == '\\' && i + 1 < text.size()) {
      put = text.substr(i, length = 2);
    } else if (text[i] == '"') {
      in_string = !in_string;
    } else if (!in_string) {
      for (const auto& [word, number] : kWords)
        if (text.substr(i).starts_with(word)) length = word.size(), put = number;
    }
    json.append(put);
    i += length;
  }
  return JsonDoc::parse(json);
}

ConfigReader::ConfigReader(JsonObject root) : state_(std::make_shared<State>()) {
  node_ = &state_->nodes.emplace_back(Node{"", root, {}});
}

bool ConfigReader::has(std::string_view key) const {
  return json_get(node_->object, key).has_value();
}

bool ConfigReader::is_null(std::string_view key) const {
  JsonValue value;
  return node_->object.at_key(key).get(value) == simdjson::SUCCESS && value.is_null();
}

std::optional<JsonValue> ConfigReader::find(std::string_view key) const {
  node_->read.emplace(key);
  return json_get(node_->object, key);
}

void ConfigReader::reject(std::string message) const {
  if (!state_->error)
    state_->error = Error{ErrorCode::kConfig, "config.json: " + std::move(message)};
}

void ConfigReader::wrong_type(std::string_view key, std::string_view expected,
                              JsonValue found) const {
  reject(quoted(node_->path, key) + ": expected " + std::string(expected) + ", found " +
         json_excerpt(found));
}

int ConfigReader::require_int(std::string_view key, int min, int max) const {
  if (!has(key)) {
    reject(quoted(node_->path, key) + ": expected an integer, found nothing");
    return 0;
  }
  return int_or(key, 0, min, max);
}

int ConfigReader::int_or(std::string_view key, int fallback, int min, int max) const {
  const auto value = find(key);
  if (!value) return fallback;
  int64_t number = 0;
  double real = 0;  // 4096.0 is an integer too.
  if (value->get(number) != simdjson::SUCCESS) {
    if (value->get(real) != simdjson::SUCCESS || real != std::floor(real) ||
        std::fabs(real) > 1e15) {
      wrong_type(key, "an integer", *value);
      return fallback;
    }
    number = static_cast<int64_t>(real);
  }
  if (number < min || number > max) {
    wrong_type(key, "an integer from " + std::to_string(min) + " to " + std::to_string(max),
               *value);
    return fallback;
  }
  return static_cast<int>(number);
}

float ConfigReader::require_float(std::string_view key) const {
  if (!has(key)) reject(quoted(node_->path, key) + ": expected a number, found nothing");
  return float_or(key, 0);
}

float ConfigReader::float_or(std::string_view key, float fallback) const {
  const auto value = find(key);
  if (!value) return fallback;
  double number = 0;
  if (value->get(number) != simdjson::SUCCESS) {
    wrong_type(key, "a number", *value);
    return fallback;
  }
  return static_cast<float>(number);
}

bool ConfigReader::bool_or(std::string_view key, bool fallback) const {
  const auto value = find(key);
  if (!value) return fallback;
  bool flag = fallback;
  if (value->get(flag) != simdjson::SUCCESS) wrong_type(key, "true or false", *value);
  return flag;
}

std::string ConfigReader::string_or(std::string_view key, std::string_view fallback) const {
  const auto value = find(key);
  if (!value) return std::string(fallback);
  std::string_view text = fallback;
  if (value->get(text) != simdjson::SUCCESS) wrong_type(key, "a string", *value);
  return std::string(text);
}

std::vector<std::string> ConfigReader::strings(std::string_view key) const {
  std::vector<std::string> out;
  const auto value = find(key);
  if (!value) return out;
  JsonArray list;
  if (value->get(list) != simdjson::SUCCESS) {
    wrong_type(key, "a list of strings", *value);
    return out;
  }
  for (const JsonValue item : list) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS) wrong_type(key, "strings", item);
    out.emplace_back(text);
  }
  return out;
}

std::vector<int> ConfigReader::ints(std::string_view key) const {
  std::vector<int> out;
  const auto value = find(key);
  if (!value) return out;
  const auto append = [&](JsonValue item) {
    int64_t number = 0;
    if (item.get(number) != simdjson::SUCCESS || number < INT32_MIN || number > INT32_MAX)
      wrong_type(key, "32-bit integers", item);
    else
      out.push_back(static_cast<int>(number));
  };
  JsonArray list;
  if (value->get(list) != simdjson::SUCCESS) {
    append(*value);
    return out;
  }
  for (const JsonValue item : list) append(item);
  return out;
}

std::vector<float> ConfigReader::floats(std::string_view key) const {
  std::vector<float> out;
  const auto value = find(key);
  if (!value) return out;
  JsonArray list;
  if (value->get(list) != simdjson::SUCCESS) {
    wrong_type(key, "a list of numbers", *value);
    return out;
  }
  for (const JsonValue item : list) {
    double number = 0;
    if (item.get(number) != simdjson::SUCCESS) wrong_type(key, "numbers", item);
    out.push_back(static_cast<float>(number));
  }
  return out;
}

std::optional<ConfigReader> ConfigReader::child(std::string_view key) const {
  const auto value = find(key);
  if (!value) return std::nullopt;
  JsonObject object;
  if (value->get(object) != simdjson::SUCCESS) {
    wrong_type(key, "an object", *value);
    return std::nullopt;
  }
  const std::string path = node_->path + std::string(key) + ".";
  for (Node& node : state_->nodes)  // Asked again: the same keys stay read.
    if (node.path == path) return ConfigReader(state_, &node);
  return ConfigReader(state_, &state_->nodes.emplace_back(Node{path, object, {}}));
}

void ConfigReader::expect_string(std::string_view key, std::string_view value) const {
  const std::string found = string_or(key, value);
  if (found != value)
    reject(quoted(node_->path, key) + ": expected \"" + std::string(value) + "\", found \"" +
           found.substr(0, 80) + "\"");
}

void ConfigReader::expect_bool(std::string_view key, bool value) const {
  if (bool_or(key, value) != value)
    reject(quoted(node_->path, key) + ": expected " +
           (value ? "true, found false" : "false, found true"));
}

void ConfigReader::expect_int(std::string_view key, int value) const {
  const int found = int_or(key, value);
  if (found != value)
    reject(quoted(node_->path, key) + ": expected " + std::to_string(value) + ", found " +
           std::to_string(found));
}

void ConfigReader::expect_absent(std::string_view key) const {
  const auto value = find(key);
  if (!value) return;
  JsonArray list;
  if (value->get(list) == simdjson::SUCCESS && list.size() == 0) return;
  wrong_type(key, "nothing, as this family has no such thing", *value);
}

Result<void> ConfigReader::finish() const {
  if (state_->error) return tl::unexpected(*state_->error);
  for (const Node& node : state_->nodes) {
    for (const auto [key, value] : node.object) {
      if (node.read.contains(key)) continue;
      if (node.path.empty() && std::binary_search(kMeaningless.begin(), kMeaningless.end(), key))
        continue;
      return fail(ErrorCode::kConfig, "config.json: " + quoted(node.path, key) +
                                          ": expected only keys that this family knows, found " +
                                          json_excerpt(value) +
                                          "; it may change what the model computes");
    }
  }
  return {};
}

}  // namespace weir::model
