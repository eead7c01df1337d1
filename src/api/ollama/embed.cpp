#include "api/ollama/embed.h"

#include <array>
#include <chrono>
#include <cmath>
#include <utility>

#include "api/ollama/names.h"
#include "api/ollama/request.h"
#include "api/request/keep_alive.h"
#include "api/request/request_values.h"
#include "api/serving/model_name.h"
#include "api/vectors/embeddings.h"
#include "base/json.h"

namespace weir::api::ollama {

namespace {

struct EmbedBody : GenerateRequest {
  std::string shown_model;
  bool truncate = true;  // A text that is too long loses its end.
  std::optional<int64_t> dimensions;
};

Result<void> parse_model(const FieldInput& in, EmbedBody& out) {
  WEIR_ASSIGN(const std::string_view name, as_string(in.path, in.value));
  out.shown_model = name;
  out.model = bare_name(name);
  return {};
}

Result<void> parse_input(const FieldInput& in, GenerateRequest& out) {
  return parse_prompts(in.path, in.value, vectors::kEmbeddingInputsMax, in.limits, out.prompts);
}

Result<void> parse_prompt(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const std::string_view text, as_string(in.path, in.value));
  out.prompts = {std::string(text)};
  return {};
}

// Nothing is done with it yet, but that it is one.
Result<void> parse_keep_alive(const FieldInput& in, GenerateRequest&) {
  WEIR_TRY(keep_alive_of(in.path, in.value));
  return {};
}

using G = EmbedBody;
constexpr uint8_t kEmbed = 1, kEmbeddings = 2, kBoth = kEmbed | kEmbeddings;

constexpr auto kFields = std::to_array<Field<EmbedBody>>({
    {"model", "string", &parse_model,
     "The model's id or one of its aliases; :latest after it counts as nothing.", 0, 0, kBoth},
    {"input", "string or array", &parse_input, "A text, or several; token ids, too.", 0, 0, kEmbed,
     true},
    {"prompt", "string", &parse_prompt, "The text.", 0, 0, kEmbeddings, true},
    {"truncate", "boolean", &G::truncate,
     "Whether a text that is too long is cut at its end, else it is refused; absent: true.", 0, 0,
     kEmbed},
    {"dimensions", "integer", &G::dimensions, "The first so many numbers, normalised again.", 1,
     INT32_MAX, kEmbed},
    {"keep_alive", "string or number", &parse_keep_alive,
     "How long the model stays loaded: seconds, or \"5m\"; negative: for ever.", 0, 0, kBoth},
    {"options", "object", {}, "Accepted; none of them changes a vector.", 0, 0, kBoth},
});

Result<EmbedBody> parse(uint8_t endpoint, const ServingContext& serving, std::string_view body) {
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(body));
  WEIR_ASSIGN(const JsonObject object, body_object(doc));
  EmbedBody parsed;
  WEIR_TRY(read_fields(kFields, endpoint, object, {serving.config.vocab_size}, parsed));
  parsed.ignored.add_unknown(object, field_docs(kFields, endpoint));
  if (!check_model(serving.config, parsed.model))
    return tl::unexpected(not_found(parsed.shown_model));
  if (parsed.dimensions)
    WEIR_TRY(check_range("dimensions", static_cast<double>(*parsed.dimensions), 1,
                         serving.config.hidden_size));
  return parsed;
}

vectors::EmbeddingRequest request_of(EmbedBody& body, std::string_view field) {
  vectors::EmbeddingRequest request;
  request.model = std::move(body.model);
  request.field = field;
  request.inputs = std::move(body.prompts);
  if (body.truncate) request.truncation = {.tokens_max = -1, .keep_beginning = true};
  request.dimensions = body.dimensions;
  request.ignored = std::move(body.ignored);
  return request;
}

void append_vector(std::string& out, std::span<const float> vector) {
  JsonWriter json(out);
  json.begin_array();
  for (const float x : vector) json.value(x);
  json.end_array();
}

class EmbedShape final : public vectors::VectorsShape {
 public:
  EmbedShape(std::string model, sched::Clock::time_point arrived)
      : model_(std::move(model)), arrived_(arrived) {}

  void append_head(std::string& out) const override {
    JsonWriter(out).begin_object().field("model", model_);
    out += R"(,"embeddings":[)";
  }
  void append_item(std::string& out, size_t, std::span<const float> vector) const override {
    append_vector(out, vector);
  }
  void append_tail(std::string& out, int64_t prompt_tokens) const override {
    const std::chrono::duration<double, std::nano> total = sched::Clock::now() - arrived_;
    out += "],";
    JsonWriter json(out);
    json.field("total_duration", static_cast<int64_t>(std::llround(total.count())));
    json.field("load_duration", 0).field("prompt_eval_count", prompt_tokens).end_object();
  }

 private:
  const std::string model_;
  const sched::Clock::time_point arrived_;
};

class EmbeddingShape final : public vectors::VectorsShape {
 public:
  void append_head(std::string& out) const override { out += R"({"embedding":)"; }
  void append_item(std::string& out, size_t, std::span<const float> vector) const override {
    append_vector(out, vector);
  }
  void append_tail(std::string& out, int64_t) const override { out += '}'; }
};

}  // namespace

Result<PreparedBatch> prepare_embed(const ServingContext& serving, MemoryBudget& budget,
                                    const PrepareInput& in) {
  WEIR_ASSIGN(EmbedBody body, parse(kEmbed, serving, in.body));
  vectors::EmbeddingRequest request = request_of(body, "input");
  request.norm = vectors::kNormEuclid;
  return vectors::prepare_vectors(
      serving, budget, in, request,
      std::make_unique<EmbedShape>(
          body.shown_model.empty() ? serving.config.model_id : body.shown_model, in.arrived));
}

Result<PreparedBatch> prepare_embeddings(const ServingContext& serving, MemoryBudget& budget,
                                         const PrepareInput& in) {
  WEIR_ASSIGN(EmbedBody body, parse(kEmbeddings, serving, in.body));
  return vectors::prepare_vectors(serving, budget, in, request_of(body, "prompt"),
                                  std::make_unique<EmbeddingShape>());
}

std::vector<FieldDoc> embed_fields() { return field_docs(kFields, kEmbed); }
std::vector<FieldDoc> embeddings_fields() { return field_docs(kFields, kEmbeddings); }

}  // namespace weir::api::ollama
