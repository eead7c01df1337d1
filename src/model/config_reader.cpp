#include "model/config_reader.h"

#include <array>
#include <cmath>

#include "base/log.h"
#include "model/config_keys.h"

namespace weir::model {

namespace {

std::string quoted(std::string_view path, std::string_view key) {
  constexpr size_t kShown = 120;
  std::string out = "'";
  out.append(path).append(key.substr(0, kShown)).append("'");
  return out;
}

// What to do for somebody who knows better than the file.
std::string override_hint(std::string_view path, std::string_view key, std::string_view value) {
  std::string out = " (if that is wrong: --config-override '";
  return out.append(path).append(key.substr(0, 120)).append("=").append(value).append("')");
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

void ConfigReader::expect(std::string_view key, std::string_view value,
                          std::string_view found) const {
  if (found == value) return;
  reject(quoted(node_->path, key) + ": expected " + std::string(value) + ", found " +
         std::string(found) + override_hint(node_->path, key, value));
}

void ConfigReader::expect_string(std::string_view key, std::string_view value) const {
  const auto shown = [](std::string_view text) {
    std::string out;
    append_json_string(out, text.substr(0, 80));
    return out;
  };
  expect(key, shown(value), shown(string_or(key, value)));
}

void ConfigReader::expect_bool(std::string_view key, bool value) const {
  expect(key, value ? "true" : "false", bool_or(key, value) ? "true" : "false");
}

void ConfigReader::expect_int(std::string_view key, int value) const {
  expect(key, std::to_string(value), std::to_string(int_or(key, value)));
}

void ConfigReader::expect_absent(std::string_view key) const {
  const auto value = find(key);
  if (!value || !why_neutral(node_->path, key, *value).empty()) return;
  reject(quoted(node_->path, key) + ": expected nothing, as this family has no such thing, found " +
         json_excerpt(*value) + override_hint(node_->path, key, "null"));
}

Result<void> ConfigReader::finish() const {
  if (state_->error) return tl::unexpected(*state_->error);
  for (const Node& node : state_->nodes) {
    for (const auto [key, value] : node.object) {
      if (node.read.contains(key)) continue;
      const std::string_view reason = why_neutral(node.path, key, value);
      if (reason.empty())
        return fail(ErrorCode::kConfig, "config.json: " + quoted(node.path, key) +
                                            ": expected only keys that this family knows, found " +
                                            json_excerpt(value) +
                                            "; it may change what the model computes" +
                                            override_hint(node.path, key, "null"));
      log::debug("model config.json " + quoted(node.path, key) + " " + json_excerpt(value) +
                 " computes nothing: " + std::string(reason));
    }
  }
  return {};
}

}  // namespace weir::model
