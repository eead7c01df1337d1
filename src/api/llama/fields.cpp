#include "api/llama/fields.h"

#include <array>
#include <limits>

#include "api/request/adapter_scale.h"
#include "api/request/request_values.h"
#include "sched/request.h"

namespace weir::api::llama {

namespace {

// -1 and -2 mean as many as the context has room for.
Result<void> parse_length(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t count, integer_of(in.path, in.value));
  WEIR_TRY(check_range(in.path, static_cast<double>(count), -2, INT32_MAX));
  out.max_tokens = count < 0 ? INT32_MAX : count;
  return {};
}

Result<void> parse_probabilities(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t count, integer_of(in.path, in.value));
  WEIR_TRY(check_range(in.path, static_cast<double>(count), 0, sched::kTopLogprobsMax));
  out.logprobs = count > 0;
  out.top_logprobs = count;
  return {};
}

// Negative: the server draws one.
Result<void> parse_seed(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t seed, integer_of(in.path, in.value));
  if (seed >= 0) out.seed = seed;
  return {};
}

Result<float> bias_of(std::string_view path, JsonValue value) {
  bool off = false;
  if (value.get(off) == simdjson::SUCCESS) {
    if (!off) return -std::numeric_limits<float>::infinity();  // Never.
    return wrong_type(path, "a number or false", value);
  }
  double bias = 0;
  if (value.get(bias) != simdjson::SUCCESS) return wrong_type(path, "a number or false", value);
  WEIR_TRY(check_range(path, bias, -100, 100));
  return static_cast<float>(bias);
}

// [[token id or text, addend or false], ...], or an object as elsewhere.
Result<void> parse_biases(const FieldInput& in, GenerateRequest& out) {
  JsonArray array;
  if (in.value.get(array) != simdjson::SUCCESS) return parse_logit_bias(in, out);
  if (array.size() > kLogitBiasMax)
    return out_of_range(in.path, "expected at most " + std::to_string(kLogitBiasMax) +
                                     " entries, found " + std::to_string(array.size()));
  size_t index = 0;
  for (const JsonValue element : array) {
    const std::string path = at(in.path, index++);
    WEIR_ASSIGN(const JsonArray pair, as_array(path, element));
    if (pair.size() != 2)
      return out_of_range(
          path, "expected a token and its bias, found " + std::to_string(pair.size()) + " values");
    const JsonValue token = pair.at(0).value_unsafe();
    WEIR_ASSIGN(const float bias, bias_of(at(path, 1), pair.at(1).value_unsafe()));
    if (token.is_string()) {
      WEIR_ASSIGN(const std::string_view text, as_string(at(path, 0), token));
      if (text.size() > kBadWordBytesMax)
        return out_of_range(at(path, 0), "expected at most " + std::to_string(kBadWordBytesMax) +
                                             " bytes, found " + std::to_string(text.size()));
      out.text_bias.emplace_back(text, bias);
      continue;
    }
    WEIR_ASSIGN(const int32_t id, parse_token_id(at(path, 0), token, in.limits));
    out.logit_bias.emplace_back(id, bias);
  }
  return {};
}

// [{"id": 0, "scale": 0.5}, ...]
Result<void> parse_lora(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(out.lora, parse_adapter_scales(in.path, in.value));
  return {};
}

using openai::Endpoint;
using G = openai::Request;
constexpr uint8_t kBoth =
    static_cast<uint8_t>(Endpoint::kLlama) | static_cast<uint8_t>(Endpoint::kInfill);

constexpr auto kFields = std::to_array<openai::RequestField>({
    {"n_predict", "integer", &parse_length,
     "Most tokens; 0 only fills the prefix cache; -1: as many as there is room for.", -2, INT32_MAX,
     kBoth},
    {"seed", "integer", &parse_seed, "The same seed and request give the same text; -1: random.",
     -0x1p63, 0x1p63, kBoth},
    {"logit_bias", "object or array", &parse_biases,
     "Token id to addend, -100 to 100; or pairs of a token id or a text and an addend or false.", 0,
     0, kBoth},
    {"n_probs", "integer", &parse_probabilities,
     "completion_probabilities: log-probabilities of the tokens, with so many alternatives.", 0,
     sched::kTopLogprobsMax, kBoth},
    {"return_tokens", "boolean", &G::return_token_ids, "The answer's token ids in tokens.", 0, 0,
     kBoth},
    {"post_sampling_probs", "boolean", &refuse,
     "Not supported: probabilities are those of the model, before any sampler.", 0, 0, kBoth},
    {"lora", "array", &parse_lora,
     "Which adapter, and by what its effect is multiplied: [{id, scale}], as GET /lora-adapters "
     "numbers them; one at most with a scale that is not 0.",
     0, 0, kBoth},
    {"id_slot", "integer", {}, "Accepted; requests have no places of their own.", 0, 0, kBoth},
    {"n_keep", "integer", {}, "Accepted; the context is never shifted.", 0, 0, kBoth},
    {"n_discard", "integer", {}, "Accepted; the context is never shifted.", 0, 0, kBoth},
    {"n_cache_reuse", "integer", {}, "Accepted; the prefix cache is always on.", 0, 0, kBoth},
});

}  // namespace

std::span<const openai::RequestField> llama_fields() { return kFields; }

void complete_llama_request(openai::Request& request) {
  request.shows_prompt = true;
  if (request.stream) request.return_token_ids = true;
}

}  // namespace weir::api::llama
