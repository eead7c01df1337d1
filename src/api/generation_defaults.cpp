#include "api/generation_defaults.h"

#include <algorithm>
#include <optional>
#include <string>

#include "api/sampling_fields.h"
#include "base/check.h"
#include "base/json.h"

namespace weir::api {

namespace {

// Reads one file's members; the first thing wrong is kept and everything after it ignored.
class ConfigReader {
 public:
  ConfigReader(std::string_view file, JsonObject object) : file_(file), object_(object) {}

  std::optional<double> number(std::string_view key, double min, double max) {
    const auto value = json_get(object_, key);
    if (!value || !ok()) return std::nullopt;
    double number = 0;
    if (value->is_bool() || value->get(number) != simdjson::SUCCESS) {
      wrong(key, "a number", json_type_name(*value));
      return std::nullopt;
    }
    if (number >= min && number <= max) return number;
    wrong(key, "a number from " + std::to_string(min) + " to " + std::to_string(max),
          std::to_string(number));
    return std::nullopt;
  }

  std::optional<double> count(std::string_view key) {
    const auto value = json_get(object_, key);
    if (!value || !ok()) return std::nullopt;
    int64_t number = 0;
    if (value->get(number) == simdjson::SUCCESS && number >= -1 && number <= INT32_MAX)
      return static_cast<double>(std::max<int64_t>(number, 0));
    wrong(key, "a count", simdjson::minify(*value));
    return std::nullopt;
  }

  std::optional<bool> flag(std::string_view key) {
    const auto value = json_get(object_, key);
    if (!value || !ok()) return std::nullopt;
    bool result = false;
    if (value->get(result) != simdjson::SUCCESS)
      wrong(key, "true or false", json_type_name(*value));
    return result;
  }

  // A token id or a list of them.
  void ids(std::string_view key, std::vector<int32_t>& out) {
    const auto value = json_get(object_, key);
    if (!value || !ok()) return;
    const auto add = [&](JsonValue element) {
      int64_t id = 0;
      if (element.get(id) != simdjson::SUCCESS || id < 0 || id > INT32_MAX)
        return wrong(key, "a token id or a list of them", simdjson::minify(element));
      out.push_back(static_cast<int32_t>(id));
    };
    JsonArray array;
    if (value->get(array) != simdjson::SUCCESS) return add(*value);
    for (const JsonValue element : array) add(element);
  }

  bool ok() const { return !error_.has_value(); }
  Result<void> result() const {
    if (error_) return tl::unexpected<Error>(*error_);
    return {};
  }

 private:
  void wrong(std::string_view key, const std::string& expected, const std::string& found) {
    if (error_) return;
    error_ = Error{ErrorCode::kConfig, std::string(file_) + ": expected " + std::string(key) +
                                           " to be " + expected + ", found " + found};
  }

  std::string_view file_;
  JsonObject object_;
  std::optional<Error> error_;
};

Result<std::optional<JsonDoc>> read_object(const ModelFiles& files, std::string_view file) {
  if (!files.has(file)) return std::nullopt;
  WEIR_ASSIGN(const FileView view, files.open_file(file));
  Result<JsonDoc> doc = JsonDoc::parse(view.text());
  if (!doc) return fail(ErrorCode::kConfig, view.name() + ": " + doc.error().message);
  if (!doc->root().is_object())
    return fail(ErrorCode::kConfig,
                view.name() + ": expected an object, found " + json_type_name(doc->root()));
  return std::optional<JsonDoc>(std::move(*doc));
}

void read_numbers(ConfigReader& reader, GenerationDefaults& defaults) {
  for (const SamplingNumber& number : sampling_numbers()) {
    if (number.key.empty()) continue;
    const bool counts = std::holds_alternative<int32_t sample::SamplingParams::*>(number.value);
    const std::optional<double> value =
        counts ? reader.count(number.key) : reader.number(number.key, number.min, number.max);
    if (value) defaults.set(number.name, *value, kFromCheckpoint);
  }
  // do_sample false means greedy, as transformers has it. (vLLM and llama-server do not read it.)
  // Absent it means false to transformers too, but most makers who leave it out expect a server to
  // sample, so only the written word counts.
  if (reader.flag("do_sample") == false) defaults.set("temperature", 0, kFromCheckpoint);
}

}  // namespace

void GenerationDefaults::set(std::string_view name, double value, std::string_view source) {
  const auto number = std::ranges::find(sampling_numbers(), name, &SamplingNumber::name);
  CHECK(number != sampling_numbers().end());
  set_value(*number, value, sampling);
  sources[number->name] = source;
}

Result<GenerationDefaults> read_generation_defaults(const ModelFiles& files) {
  GenerationDefaults defaults;
  WEIR_ASSIGN(const std::optional<JsonDoc> generation,
              read_object(files, "generation_config.json"));
  if (generation) {
    const JsonObject object = generation->root().get_object().value_unsafe();
    ConfigReader reader("generation_config.json", object);
    read_numbers(reader, defaults);
    reader.ids("eos_token_id", defaults.eos_ids);
    WEIR_TRY(reader.result());
  }
  if (!defaults.eos_ids.empty()) return defaults;

  WEIR_ASSIGN(const std::optional<JsonDoc> config, read_object(files, "config.json"));
  if (!config) return defaults;
  const JsonObject object = config->root().get_object().value_unsafe();
  ConfigReader reader("config.json", object);
  reader.ids("eos_token_id", defaults.eos_ids);
  WEIR_TRY(reader.result());
  const auto text_config = json_get(object, "text_config");
  if (defaults.eos_ids.empty() && text_config && text_config->is_object()) {
    ConfigReader text_reader("config.json", text_config->get_object().value_unsafe());
    text_reader.ids("eos_token_id", defaults.eos_ids);
    WEIR_TRY(text_reader.result());
  }
  return defaults;
}

}  // namespace weir::api
