// `options` of Ollama's requests: what its runners take. What a request leaves out is as the model
// and this server have it, not as Ollama does.
#include <array>
#include <string>
#include <variant>
#include <vector>

#include "api/ollama/request.h"
#include "api/request/request_values.h"

namespace weir::api::ollama {

namespace {

// Below 1: as many as there is room for.
Result<void> parse_length(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t count, count_of(in, -2, INT32_MAX));
  out.max_tokens = count < 1 ? INT32_MAX : count;
  return {};
}

// Negative: the server draws one.
Result<void> parse_seed(const FieldInput& in, GenerateRequest& out) {
  WEIR_ASSIGN(const int64_t seed, integer_of(in.path, in.value));
  if (seed >= 0) out.seed = seed;
  return {};
}

using G = Request;
constexpr double kCountMax = INT32_MAX;

constexpr auto kOptions = std::to_array<Field<Request>>({
    {"num_predict", "integer", &parse_length, "Most tokens."},
    {"temperature", "number", &G::temperature, "0 is greedy.", 0, 2},
    {"top_k", "integer", &G::top_k, "The k most likely tokens.", -1, kCountMax},
    {"top_p", "number", &G::top_p, "Nucleus sampling.", 0, 1},
    {"min_p", "number", &G::min_p, "Least share of the most likely token's probability.", 0, 1},
    {"typical_p", "number", &G::typical_p, "Locally typical sampling.", 0, 1},
    {"seed", "integer", &parse_seed, "The same seed and request give the same text."},
    {"stop", "string or array", &parse_stop, "Strings that end the answer."},
    {"repeat_penalty", "number", &G::repetition_penalty, "Over prompt and output.", 0.01, 10},
    {"presence_penalty", "number", &G::presence_penalty, "For any occurrence.", -2, 2},
    {"frequency_penalty", "number", &G::frequency_penalty, "For each occurrence.", -2, 2},
    // What belongs to the machine or to the server's start, and windows of penalties.
    {"num_ctx", "integer", {}, "Accepted."},
    {"repeat_last_n", "integer", {}, "Accepted."},
    {"num_gpu", "integer", {}, "Accepted."},
    {"main_gpu", "integer", {}, "Accepted."},
    {"num_thread", "integer", {}, "Accepted."},
    {"num_batch", "integer", {}, "Accepted."},
    {"num_keep", "integer", {}, "Accepted."},
    {"use_mmap", "boolean", {}, "Accepted."},
    {"use_mlock", "boolean", {}, "Accepted."},
    {"low_vram", "boolean", {}, "Accepted."},
    {"numa", "boolean", {}, "Accepted."},
});

}  // namespace

Result<void> parse_options(const FieldInput& in, Request& out) {
  WEIR_ASSIGN(const JsonObject options, as_object(in.path, in.value));
  for (const Field<Request>& field : kOptions) {
    const auto value = json_get(options, field.name);
    if (!value) continue;
    const std::string path = join(in.path, field.name);
    const FieldInput option{path, *value, in.limits};
    WEIR_TRY(std::visit(FieldStore<Request>{field, option, out}, field.target));
  }
  static const std::vector<FieldDoc> kKnown = field_docs(kOptions, 0xff);
  Ignored unknown;
  unknown.add_unknown(options, kKnown);
  for (const std::string& name : unknown.names()) out.ignored.add(join(in.path, name));
  return {};
}

}  // namespace weir::api::ollama
