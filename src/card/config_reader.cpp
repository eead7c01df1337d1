#include "card/config_reader.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/log.h"
#include "card/config_keys.h"

namespace weir::card {

namespace {

std::string quoted(std::string_view path, std::string_view key) {
  constexpr size_t kShown = 120;
  std::string out = "'";
  out.append(path).append(key.substr(0, kShown)).append("'");
  return out;
}

// What to do where the file is wrong, and the caller knows.
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

ConfigReader::ConfigReader(JsonValue value, std::string file, std::string path)
    : state_(std::make_shared<State>(State{std::move(file)})) {
  JsonObject object;
  const bool is_object = value.get(object) == simdjson::SUCCESS;
  node_ = state_->nodes
              .emplace_back(std::make_unique<Node>(
                  Node{std::move(path), is_object ? std::optional(object) : std::nullopt}))
              .get();
  if (is_object) return;
  reject(where() + "expected an object, found " + json_type_name(value));
}

bool ConfigReader::has(std::string_view key) const {
  return node_->object && json_get(*node_->object, key).has_value();
}

bool ConfigReader::is_null(std::string_view key) const {
  JsonValue value;
  return node_->object && node_->object->at_key(key).get(value) == simdjson::SUCCESS &&
         value.is_null();
}

bool ConfigReader::is(std::string_view key, std::string_view word) const {
  std::string_view text;
  const auto found = value(key);
  return found && found->get(text) == simdjson::SUCCESS && text == word;
}

std::optional<JsonValue> ConfigReader::value(std::string_view key) const {
  if (!node_->object) return std::nullopt;
  if (std::ranges::find(node_->read, key) == node_->read.end()) node_->read.emplace_back(key);
  return json_get(*node_->object, key);
}

std::string ConfigReader::where() const {
  const std::string& path = node_->path;
  return path.empty() ? "" : quoted("", path.substr(0, path.size() - 1)) + ": ";
}

void ConfigReader::reject(std::string message) const {
  if (!state_->error)
    state_->error = Error{ErrorCode::kConfig, state_->file + ": " + std::move(message)};
}

std::string ConfigReader::wrong_key(std::string_view key, std::string_view expected,
                                    std::string_view found) const {
  return quoted(node_->path, key) + ": expected " + std::string(expected) + ", found " +
         std::string(found);
}

void ConfigReader::wrong_type(std::string_view key, std::string_view expected,
                              JsonValue found) const {
  reject(wrong_key(key, expected, json_excerpt(found)));
}

int ConfigReader::require_int(std::string_view key, int min, int max) const {
  if (!has(key)) {
    for (const auto& [assumed, usual] : node_->assumed)
      if (assumed == key) return usual;
    reject(wrong_key(key, "an integer", "nothing"));
    return 0;
  }
  return int_or(key, 0, min, max);
}

void ConfigReader::assume(std::string_view key, int value) const {
  node_->assumed.emplace_back(key, value);
}

int ConfigReader::int_or(std::string_view key, int fallback, int min, int max) const {
  const auto value = this->value(key);
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
  if (!has(key)) reject(wrong_key(key, "a number", "nothing"));
  return float_or(key, 0);
}

float ConfigReader::float_or(std::string_view key, float fallback) const {
  const auto value = this->value(key);
  if (!value) return fallback;
  double number = 0;
  if (value->get(number) != simdjson::SUCCESS) {
    wrong_type(key, "a number", *value);
    return fallback;
  }
  return static_cast<float>(number);
}

std::optional<double> ConfigReader::number(std::string_view key, double min, double max) const {
  const auto value = this->value(key);
  if (!value) return std::nullopt;
  double number = 0;
  if (value->get(number) == simdjson::SUCCESS && number >= min && number <= max) return number;
  std::string range = "a number from ";
  JsonWriter(range).value(min);
  JsonWriter(range += " to ").value(max);
  wrong_type(key, range, *value);
  return std::nullopt;
}

bool ConfigReader::bool_or(std::string_view key, bool fallback) const {
  const auto value = this->value(key);
  if (!value) return fallback;
  bool flag = fallback;
  if (value->get(flag) != simdjson::SUCCESS) wrong_type(key, "true or false", *value);
  return flag;
}

std::string ConfigReader::string_or(std::string_view key, std::string_view fallback) const {
  const auto value = this->value(key);
  if (!value) return std::string(fallback);
  std::string_view text = fallback;
  if (value->get(text) != simdjson::SUCCESS) wrong_type(key, "a string", *value);
  return std::string(text);
}

namespace {

// Calls take(element) for each of a list, or for a value that stands alone.
template <class F>
void for_each(JsonValue value, F&& take) {
  JsonArray list;
  if (value.get(list) != simdjson::SUCCESS) return take(value);
  for (const JsonValue item : list) take(item);
}

}  // namespace

std::vector<std::string> ConfigReader::strings(std::string_view key) const {
  std::vector<std::string> out;
  const auto value = this->value(key);
  if (!value) return out;
  for_each(*value, [&](JsonValue item) {
    std::string_view text;
    if (item.get(text) != simdjson::SUCCESS) wrong_type(key, "strings", item);
    out.emplace_back(text);
  });
  return out;
}

std::vector<int> ConfigReader::ints(std::string_view key, int min) const {
  std::vector<int> out;
  const auto value = this->value(key);
  if (!value) return out;
  for_each(*value, [&](JsonValue item) {
    int64_t number = 0;
    if (item.get(number) == simdjson::SUCCESS && number >= min && number <= INT32_MAX)
      return out.push_back(static_cast<int>(number));
    wrong_type(key, "integers from " + std::to_string(min) + " to " + std::to_string(INT32_MAX),
               item);
  });
  return out;
}

std::vector<float> ConfigReader::floats(std::string_view key) const {
  std::vector<float> out;
  const auto value = this->value(key);
  if (!value) return out;
  for_each(*value, [&](JsonValue item) {
    double number = 0;
    if (item.get(number) != simdjson::SUCCESS) wrong_type(key, "numbers", item);
    out.push_back(static_cast<float>(number));
  });
  return out;
}

std::optional<ConfigReader> ConfigReader::child(std::string_view key) const {
  const auto value = this->value(key);
  if (!value) return std::nullopt;
  JsonObject object;
  if (value->get(object) != simdjson::SUCCESS) {
    wrong_type(key, "an object", *value);
    return std::nullopt;
  }
  const std::string path = node_->path + std::string(key) + ".";
  for (const auto& node : state_->nodes)  // Asked again: the same keys stay read.
    if (node->path == path) return ConfigReader(state_, node.get());
  return ConfigReader(state_,
                      state_->nodes.emplace_back(std::make_unique<Node>(Node{path, object})).get());
}

std::vector<std::string_view> ConfigReader::keys() const {
  std::vector<std::string_view> keys;
  if (!node_->object) return keys;
  if (node_->object->size() > kKeysMax) {
    reject(where() + "expected at most " + std::to_string(kKeysMax) + " keys, found " +
           std::to_string(node_->object->size()));
    return keys;
  }
  for (const auto [key, value] : *node_->object) keys.push_back(key);
  return keys;
}

void ConfigReader::expect(std::string_view key, std::string_view value,
                          std::string_view found) const {
  if (found == value) return;
  reject(wrong_key(key, value, found) + override_hint(node_->path, key, value));
}

void ConfigReader::expect_bool(std::string_view key, bool value) const {
  expect(key, value ? "true" : "false", bool_or(key, value) ? "true" : "false");
}

void ConfigReader::expect_int(std::string_view key, int value) const {
  expect(key, std::to_string(value), std::to_string(int_or(key, value)));
}

void ConfigReader::expect_absent(std::string_view key) const {
  const auto value = this->value(key);
  if (!value || !why_neutral(node_->path, key, *value).empty()) return;
  reject(wrong_key(key, "nothing, as this family has no such thing", json_excerpt(*value)) +
         override_hint(node_->path, key, "null"));
}

Result<void> ConfigReader::status() const {
  if (state_->error) return tl::unexpected(*state_->error);
  return {};
}

Result<void> ConfigReader::finish() const {
  WEIR_TRY(status());
  for (const auto& node : state_->nodes) {
    for (const auto [key, value] : *node->object) {
      if (std::ranges::find(node->read, key) != node->read.end()) continue;
      const std::string_view reason = why_neutral(node->path, key, value);
      if (reason.empty())
        return fail(ErrorCode::kConfig, state_->file + ": " + quoted(node->path, key) +
                                            ": expected only keys that this family knows, found " +
                                            json_excerpt(value) +
                                            "; it may change what the model computes" +
                                            override_hint(node->path, key, "null"));
      log::debug("model " + state_->file + " " + quoted(node->path, key) + " " +
                 json_excerpt(value) + " computes nothing: " + std::string(reason));
    }
  }
  return {};
}

}  // namespace weir::card
