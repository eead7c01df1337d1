#include "api/llama/infill.h"

#include <array>
#include <utility>

#include "api/llama/fields.h"
#include "base/json.h"

namespace weir::api::llama {

namespace {

std::string& prefix_of(GenerateRequest& request) {
  if (request.prompts.empty()) request.prompts.emplace_back(std::string());
  return std::get<std::string>(request.prompts.front());
}

// The prefix, and `prompt`, which comes after it.
Result<void> parse_prefix(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const std::string_view text, as_string(in.path, in.value));
  prefix_of(out) += text;
  return {};
}

Result<void> parse_files(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const JsonArray array, as_array(in.path, in.value));
  if (array.size() > kInfillFilesMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kInfillFilesMax) +
                                     " files, found " + std::to_string(array.size()));
  for (const JsonValue element : array) {
    const std::string path = at(in.path, out.infill_files.size());
    WEIR_ASSIGN(const JsonObject object, as_object(path, element));
    InfillFile file{"tmp", {}};
    WEIR_ASSIGN(file.text, required_string(path, object, "text"));
    if (const auto name = json_get(object, "filename")) {
      WEIR_ASSIGN(file.name, as_string(join(path, "filename"), *name));
    }
    out.infill_files.push_back(std::move(file));
  }
  return {};
}

using openai::Endpoint;
constexpr uint8_t kInfill = static_cast<uint8_t>(Endpoint::kInfill);

// Besides what it shares with the other endpoints.
constexpr auto kFields = std::to_array<openai::RequestField>({
    {"input_prefix", "string", &parse_prefix, "The text before.", 0, 0, kInfill, true},
    {"input_suffix", "string", &GenerateRequest::suffix, "The text after the middle.", 0, 0,
     kInfill, true},
    {"input_extra", "array", &parse_files, "Other files of the project: text and filename.", 0, 0,
     kInfill},
    {"prompt", "string", &parse_prefix, "Text after the prefix.", 0, 0, kInfill},
});

}  // namespace

Result<openai::Request> parse_infill(std::string_view body, const RequestLimits& limits) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  openai::Request request;
  request.infill = true;
  request.max_tokens = INT32_MAX;
  WEIR_TRY(read_fields(kFields, kInfill, object, limits, request));
  WEIR_TRY(read_fields(llama_fields(), kInfill, object, limits, request));
  WEIR_TRY(openai::parse_fields(Endpoint::kInfill, object, limits, request));
  complete_llama_request(request);
  static const std::vector<FieldDoc> kKnown = infill_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

std::vector<FieldDoc> infill_fields() {
  std::vector<FieldDoc> docs = field_docs(kFields, kInfill);
  for (const std::vector<FieldDoc>& more :
       {field_docs(llama_fields(), kInfill), openai::fields_of(Endpoint::kInfill)})
    docs.insert(docs.end(), more.begin(), more.end());
  return docs;
}

}  // namespace weir::api::llama
