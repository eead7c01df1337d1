#include "api/request/request_values.h"

#include <charconv>
#include <string>
#include <utility>

namespace weir::api {

Result<int32_t> parse_token_id(std::string_view path, JsonValue value,
                               const RequestLimits& limits) {
  WEIR_ASSIGN(const int64_t id, integer_of(path, value));
  if (id < 0 || id >= limits.vocab_size)
    return out_of_range(path, "expected a token id below " + std::to_string(limits.vocab_size) +
                                  ", found " + std::to_string(id));
  return static_cast<int32_t>(id);
}

Result<void> parse_token_ids(std::string_view path, JsonArray array, const RequestLimits& limits,
                             std::vector<int32_t>& out) {
  out.reserve(array.size());
  size_t index = 0;
  for (const JsonValue value : array) {
    WEIR_ASSIGN(const int32_t id, parse_token_id(at(path, index++), value, limits));
    out.push_back(id);
  }
  return {};
}

Result<void> parse_logit_bias(const FieldInput& in, GenerateRequest& out) {
  JsonObject object;
  if (in.value.get(object) != simdjson::SUCCESS)
    return wrong_type(in.path, "an object of token ids and numbers", in.value);
  if (object.size() > kLogitBiasMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kLogitBiasMax) +
                                     " entries, found " + std::to_string(object.size()));
  for (const auto [key, value] : object) {
    const std::string path = std::string(in.path) + "." + std::string(key.substr(0, 32));
    int32_t id = -1;
    const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
    if (error != std::errc() || end != key.data() + key.size() || id < 0 ||
        id >= in.limits.vocab_size)
      return out_of_range(path, "expected a token id below " +
                                    std::to_string(in.limits.vocab_size) + " as the key");
    double bias = 0;
    if (!is_number(value) || value.get(bias) != simdjson::SUCCESS)
      return wrong_type(path, "a number", value);
    WEIR_TRY(check_range(path, bias, -100, 100));
    out.logit_bias.emplace_back(id, static_cast<float>(bias));
  }
  return {};
}

Result<void> check_choices(const GenerateRequest& request) {
  const size_t choices =
      request.prompts.size() * static_cast<size_t>(request.candidates_per_prompt());
  if (choices > kChoicesMax)
    return out_of_range("n", "expected at most " + std::to_string(kChoicesMax) +
                                 " choices of all prompts together, found " +
                                 std::to_string(choices));
  return {};
}

Result<void> parse_stop(const FieldInput& in, GenerateRequest& out) {
  const auto add = [&](std::string_view path, JsonValue value) -> Result<void> {
    std::string_view text;
    if (value.get(text) != simdjson::SUCCESS)
      return wrong_type(path, "a string or an array of strings", value);
    if (text.size() > kStopBytesMax)
      return out_of_range(path, "expected at most " + std::to_string(kStopBytesMax) +
                                    " bytes, found " + std::to_string(text.size()));
    // An empty string comes from an empty input field and stops nothing.
    if (!text.empty()) out.stop.emplace_back(text);
    return {};
  };
  JsonArray array;
  if (in.value.get(array) != simdjson::SUCCESS) return add(in.path, in.value);
  if (array.size() > kStopStringsMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kStopStringsMax) +
                                     " strings, found " + std::to_string(array.size()));
  size_t index = 0;
  for (const JsonValue value : array) WEIR_TRY(add(at(in.path, index++), value));
  return {};
}

Result<void> parse_prompts(std::string_view path, JsonValue value, size_t prompts_max,
                           const RequestLimits& limits, std::vector<Prompt>& out) {
  constexpr std::string_view kExpected =
      "a string, an array of strings, an array of token ids, or an array of such arrays";
  std::string_view text;
  if (value.get(text) == simdjson::SUCCESS) {
    out.emplace_back(std::string(text));
    return {};
  }
  JsonArray array;
  if (value.get(array) != simdjson::SUCCESS) return wrong_type(path, kExpected, value);
  if (array.size() == 0) return out_of_range(path, "expected at least one prompt, found none");
  if (is_number(*array.begin())) {
    WEIR_TRY(parse_token_ids(path, array, limits,
                             std::get<1>(out.emplace_back(std::vector<int32_t>()))));
    return {};
  }
  if (array.size() > prompts_max)
    return out_of_range(path, "expected at most " + std::to_string(prompts_max) +
                                  " prompts, found " + std::to_string(array.size()));
  size_t index = 0;
  for (const JsonValue element : array) {
    const std::string each = at(path, index++);
    JsonArray ids;
    if (element.get(text) == simdjson::SUCCESS) {
      out.emplace_back(std::string(text));
    } else if (element.get(ids) == simdjson::SUCCESS) {
      if (ids.size() == 0) return out_of_range(each, "expected at least one token, found none");
      WEIR_TRY(parse_token_ids(each, ids, limits,
                               std::get<1>(out.emplace_back(std::vector<int32_t>()))));
    } else {
      return wrong_type(each, "a string or an array of token ids", element);
    }
  }
  return {};
}

}  // namespace weir::api
