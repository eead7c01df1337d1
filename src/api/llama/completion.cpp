#include "api/llama/completion.h"

#include <algorithm>
#include <array>
#include <utility>

#include "api/llama/fields.h"
#include "api/request/request_values.h"

namespace weir::api::llama {

namespace {

Result<void> parse_mixed(std::string_view path, JsonArray array, const RequestLimits& limits,
                         MixedPrompt& out) {
  size_t index = 0;
  for (const JsonValue element : array) {
    const std::string each = at(path, index++);
    std::string_view text;
    if (element.get(text) == simdjson::SUCCESS) {
      out.parts.emplace_back(std::string(text));
      continue;
    }
    WEIR_ASSIGN(const int32_t id, parse_token_id(each, element, limits));
    if (out.parts.empty() || std::holds_alternative<std::string>(out.parts.back()))
      out.parts.emplace_back(std::vector<int32_t>());
    std::get<std::vector<int32_t>>(out.parts.back()).push_back(id);
  }
  return {};
}

// Numbers among texts: one prompt of both.
bool is_mixed(JsonArray array) {
  const auto is_text = [](JsonValue value) { return value.is_string(); };
  const auto is_token = [](JsonValue value) { return value.is_int64() || value.is_uint64(); };
  return std::any_of(array.begin(), array.end(), is_text) &&
         std::any_of(array.begin(), array.end(), is_token);
}

// Base64 in the order of the text's marks.
Result<void> parse_shown(std::string_view path, JsonValue data, std::string_view text,
                         GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray images, as_array(path, data));
  // More than any server takes (--max-images): the list must not outgrow what is leased for its text.
  constexpr size_t kImagesMax = 1024;
  if (images.size() > kImagesMax)
    return out_of_range(std::string(path), "expected at most 1024 images, found more");
  size_t index = 0;
  for (const JsonValue image : images) {
    const std::string each = at(path, index++);
    WEIR_ASSIGN(const std::string_view digits, as_string(each, image));
    out.media.push_back(media_of_base64(Medium::kPicture, each, digits));
  }
  out.prompts.emplace_back(ShownPrompt{.text = std::string(text), .pictures = index});
  return {};
}

Result<void> parse_one_prompt(std::string_view path, JsonValue value, const RequestLimits& limits,
                              GenerateRequest& request) {
  std::vector<Prompt>& out = request.prompts;
  JsonArray array;
  if (value.get(array) == simdjson::SUCCESS && is_mixed(array))
    return parse_mixed(path, array, limits, std::get<MixedPrompt>(out.emplace_back(MixedPrompt())));
  JsonObject object;
  if (value.get(object) == simdjson::SUCCESS) {
    WEIR_ASSIGN(const std::string_view text, required_string(path, object, "prompt_string"));
    if (const auto data = json_get(object, "multimodal_data"); data && !is_empty_value(*data))
      return parse_shown(join(path, "multimodal_data"), *data, text, request);
    out.emplace_back(std::string(text));
    return {};
  }
  return parse_prompts(path, value, kChoicesMax, limits, out);
}

Result<void> parse_llama_prompt(const FieldInput& in, GenerateRequest& out) {
  JsonArray array;
  const bool several =
      in.value.get(array) == simdjson::SUCCESS && array.size() > 0 && !is_mixed(array) &&
      std::any_of(array.begin(), array.end(),
                  [](JsonValue value) { return value.is_array() || value.is_object(); });
  if (!several) return parse_one_prompt(in.path, in.value, in.limits, out);
  if (array.size() > kChoicesMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kChoicesMax) +
                                     " prompts, found " + std::to_string(array.size()));
  size_t index = 0;
  for (const JsonValue element : array)
    WEIR_TRY(parse_one_prompt(at(in.path, index++), element, in.limits, out));
  return {};
}

using openai::Endpoint;
using G = openai::Request;
constexpr uint8_t kLlama = static_cast<uint8_t>(Endpoint::kLlama);

// Besides what it shares with others.
constexpr auto kFields = std::to_array<openai::RequestField>({
    {"prompt", "string or array or object", &parse_llama_prompt,
     "Text, token ids, both in one list, an object with a prompt_string and, where it has "
     "<__media__>, images as multimodal_data; or several of these.",
     0, 0, kLlama, true},
    {"n_cmpl", "integer", &G::n, "Answers to each prompt.", 1, kChoicesMax, kLlama},
    {"max_tokens", "integer", &G::max_tokens, "Another name of n_predict, which goes first.", 0,
     INT32_MAX, kLlama},
});

}  // namespace

Result<openai::Request> parse_llama_completion(std::string_view body, const RequestLimits& limits) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  openai::Request request;
  request.max_tokens = INT32_MAX;
  WEIR_TRY(read_fields(kFields, kLlama, object, limits, request));
  WEIR_TRY(read_fields(llama_fields(), kLlama, object, limits, request));
  WEIR_TRY(openai::parse_fields(Endpoint::kLlama, object, limits, request));
  WEIR_TRY(check_choices(request));
  complete_llama_request(request);
  static const std::vector<FieldDoc> kKnown = llama_completion_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

std::vector<FieldDoc> llama_completion_fields() {
  std::vector<FieldDoc> docs = field_docs(kFields, kLlama);
  for (const std::vector<FieldDoc>& more :
       {field_docs(llama_fields(), kLlama), openai::fields_of(Endpoint::kLlama)})
    docs.insert(docs.end(), more.begin(), more.end());
  return docs;
}

}  // namespace weir::api::llama
