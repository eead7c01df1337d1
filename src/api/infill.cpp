#include "api/infill.h"

#include <array>
#include <cstdint>
#include <utility>

#include "api/api_error.h"
#include "base/json.h"

namespace weir::api {

namespace {

std::string& prefix_of(GenerateRequest& request) {
  if (request.prompts.empty()) request.prompts.emplace_back(std::string());
  return std::get<std::string>(request.prompts.front());
}

// The prefix, and `prompt`, which comes behind it.
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

// -1 and -2 mean as many as the context has room for.
Result<void> parse_length(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t count, integer_of(in.path, in.value));
  WEIR_TRY(check_range(in.path, static_cast<double>(count), -2, INT32_MAX));
  out.max_tokens = count < 0 ? INT32_MAX : count;
  return {};
}

constexpr uint8_t kInfill = static_cast<uint8_t>(Endpoint::kInfill);

// Besides what it shares with the other endpoints.
constexpr auto kFields = std::to_array<Field>({
    {"input_prefix", "string", &parse_prefix, "The text before.", 0, 0, kInfill, true},
    {"input_suffix", "string", &GenerateRequest::suffix, "The text behind.", 0, 0, kInfill, true},
    {"input_extra", "array", &parse_files, "Other files of the project: text and filename.", 0, 0,
     kInfill},
    {"prompt", "string", &parse_prefix, "Comes behind the prefix.", 0, 0, kInfill},
    {"n_predict", "integer", &parse_length,
     "Most tokens; 0 only fills the prefix cache; -1: as many as there is room for.", -2, INT32_MAX,
     kInfill},
});

// Members of llama-server's answers to completions that this server has something to say about.
class InfillShape final : public AnswerShape {
 public:
  InfillShape(std::string model, bool stream) : model_(std::move(model)), stream_(stream) {}

  void begin(std::string&, const Usage& usage) override { prompt_tokens_ = usage.prompt_tokens; }
  void begin_choice(std::string&, ChoiceRef) override {}
  void text(std::string& out, ChoiceRef, std::string_view text) override {
    if (!stream_) {
      content_ += text;
      return;
    }
    out += "data: ";
    JsonWriter json(out);
    json.begin_object().field("index", 0).field("content", text).field("stop", false);
    json.field("tokens_evaluated", prompt_tokens_).end_object();
    out += "\n\n";
  }
  // A completion is all content.
  void reasoning(std::string&, ChoiceRef, std::string_view) override {}
  void begin_call(std::string&, ChoiceRef, const CallRef&) override {}
  void call_arguments(std::string&, ChoiceRef, int32_t, std::string_view) override {}
  void end_call(std::string&, ChoiceRef, int32_t) override {}

  void finish(std::string&, ChoiceRef, const Finish& finish) override {
    stop_type_ = finish.kind == FinishKind::kLength ? "limit"
                 : finish.stop_string.empty()       ? "eos"
                                                    : "word";
    stopping_word_ = finish.stop_string;
  }

  void end(std::string& out, const Usage& usage) override {
    if (stream_) out += "data: ";
    JsonWriter json(out);
    json.begin_object().field("index", 0).field("content", content_).field("stop", true);
    json.field("model", model_);
    json.field("tokens_predicted", usage.completion_tokens);
    json.field("tokens_evaluated", usage.prompt_tokens);
    json.field("tokens_cached", usage.prompt_tokens + usage.completion_tokens);
    json.field("truncated", false);
    json.field("stop_type", stop_type_).field("stopping_word", stopping_word_);
    json.key("timings").begin_object().field("cache_n", usage.cached_tokens);
    json.field("prompt_n", usage.prompt_tokens - usage.cached_tokens);
    json.field("predicted_n", usage.completion_tokens).end_object().end_object();
    if (stream_) out += "\n\n";
  }

  void fail(std::string& out, const Error& error) override {
    out += "data: " + error_json(error) + "\n\n";
  }

 private:
  const std::string model_;
  const bool stream_;
  int64_t prompt_tokens_ = 0;
  std::string content_;  // Of an answer that is sent whole.
  std::string_view stop_type_;
  std::string stopping_word_;
};

}  // namespace

Result<GenerateRequest> parse_infill(std::string_view body, const RequestLimits& limits) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  GenerateRequest request;
  request.infill = true;
  request.max_tokens = INT32_MAX;
  WEIR_TRY(read_fields(kFields, kInfill, object, limits, request));
  WEIR_TRY(parse_fields(Endpoint::kInfill, object, limits, request));
  static const std::vector<FieldDoc> kKnown = infill_fields();
  request.ignored.add_unknown(object, kKnown);
  return request;
}

Result<PreparedAnswer> prepare_infill(const ApiConfig& config, MemoryBudget& budget,
                                      const PrepareInput& in) {
  WEIR_ASSIGN(const GenerateRequest request, parse_infill(in.body, {config.vocab_size}));
  if (!config.infill)
    return unsupported("input_suffix", "this model's vocabulary has no fill-in-the-middle tokens");
  return prepare_request(config, budget, in, request);
}

std::unique_ptr<AnswerShape> make_infill_shape(std::string model, bool stream) {
  return std::make_unique<InfillShape>(std::move(model), stream);
}

std::vector<FieldDoc> infill_fields() {
  std::vector<FieldDoc> docs = field_docs(kFields, kInfill);
  const std::vector<FieldDoc> shared = fields_of(Endpoint::kInfill);
  docs.insert(docs.end(), shared.begin(), shared.end());
  return docs;
}

}  // namespace weir::api
