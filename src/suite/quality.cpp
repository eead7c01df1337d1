// quality: what the arithmetic of serving costs beside exact floats, and whether answers that are
// bound to a schema keep it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "suite/arithmetic.h"
#include "suite/chat.h"
#include "suite/parts.h"
#include "suite/sample_schema.h"
#include "suite/sample_text.h"

namespace weir::suite {

namespace {

// Product goals.
constexpr double kPerplexityWorseMax = 0.3, kDivergenceMax = 0.01;
// As much as fast arithmetic may cost, and what 3 bits cost beside 4 on top of it. SmolLM2 has .0034
// and .0064 (bench/README.md).
constexpr double kTq4DivergenceMax = 0.01, kTq3DivergenceMax = 0.02;
// Standard errors: of a short text a few tokens that are routed to other experts move more than
// that.
constexpr double kSure = 2;
constexpr int32_t kQuickTokens = 1024;
constexpr int32_t kSchemas = 200, kQuickSchemas = 40;
constexpr int32_t kAtOnce = 16;
// The longest answer that a sample schema allows is some 250 characters.
constexpr int32_t kAnswerTokens = 512;

Result<void> measure_arithmetic(Run& run) {
  if (!run.needs_inside("perplexity, divergence")) return {};
  WEIR_TRY(run.stop_server());  // Memory for two models more.
  run.say("perplexity beside exact arithmetic");
  const int32_t tokens = run.quick() ? kQuickTokens : std::numeric_limits<int32_t>::max();
  WEIR_ASSIGN(const ArithmeticFigures found,
              compare_arithmetic(run.options(), sample_text(), tokens));
  run.add({.name = "perplexity of " + std::to_string(found.tokens) + " tokens",
           .value = found.perplexity,
           .better = Better::kLess,
           .tolerance = kPerplexityWorseMax / 100});
  if (run.setting().compute == "exact") {
    run.skip("beside exact arithmetic", "it is exact (--compute exact)");
    return {};
  }
  run.add({.name = "perplexity, worse than exact by",
           .value = 100 * (found.perplexity / found.exact_perplexity - 1),
           .unit = "%"});
  run.add({.name = "of which the text is long enough to be sure",
           .value = 100 * std::expm1(found.loss_more - kSure * found.loss_more_error),
           .unit = "%",
           .limit = at_most(kPerplexityWorseMax)});
  run.add({.name = "divergence from exact",
           .value = found.divergence,
           .unit = "nats",
           .limit = at_most(kDivergenceMax)});
  run.add({.name = "same most likely token as exact",
           .value = 100 * found.same_top_share,
           .unit = "%"});
  return {};
}

// Compressed keys beside f16, both in exact arithmetic: rounded activations would hide the
// difference.
Result<void> measure_compressed(Run& run) {
  const std::string name = "compressed keys beside f16";
  if (!run.needs_inside(name)) return {};
  run.say(name);
  const int32_t tokens = run.quick() ? kQuickTokens : std::numeric_limits<int32_t>::max();
  for (const kv::Format format : {kv::Format::kTq4, kv::Format::kTq3}) {
    const Result<ArithmeticFigures> found =
        compare_arithmetic(run.options(), {.kv = kv::Format::kF16}, {.kv = format}, sample_text(),
                           tokens);
    if (!found) {
      run.skip(name, found.error().message);
      return {};
    }
    run.add({.name = std::string("divergence of ") + format.name() + " from f16",
             .value = found->divergence,
             .unit = "nats",
             .limit = at_most(format == kv::Format::kTq4 ? kTq4DivergenceMax : kTq3DivergenceMax)});
  }
  return {};
}

Request bound(const Run& run, const SampleSchema& schema, uint64_t number) {
  return chat(run, {.message = "Describe a " + words(1, number) + " as JSON.",
                    .max_tokens = kAnswerTokens,
                    .temperature = 0.8,
                    .seed = number,
                    .more = [&](JsonWriter& json) {
                      json.key("response_format").begin_object().field("type", "json_schema");
                      json.key("json_schema").begin_object().field("name", "thing");
                      json.field("strict", true).key("schema");
                      schema.write(json);
                      json.end_object().end_object();
                    }});
}

Result<void> measure_schemas(Run& run) {
  const auto count = static_cast<size_t>(run.quick() ? kQuickSchemas : kSchemas);
  const std::string name = std::to_string(count) + " answers bound to schemas: invalid";
  WEIR_ASSIGN(const Endpoint* at, run.endpoint());
  WEIR_ASSIGN(const bool chats, needs_chat(run, *at, name));
  if (!chats) return {};
  run.say("answers bound to schemas");
  std::vector<SampleSchema> schemas;
  std::vector<Request> requests;
  for (uint64_t i = 0; i < count; ++i) {
    schemas.push_back(SampleSchema::numbered(i));
    requests.push_back(bound(run, schemas.back(), i));
  }
  const std::vector<Answer> answers = at->ask(requests, kAtOnce);
  int32_t invalid = 0;
  std::string first;  // What is wrong with the first that is.
  for (size_t i = 0; i < count; ++i) {
    const std::string fault =
        answers[i].error.empty() ? schemas[i].fault(text_of(answers[i])) : answers[i].error;
    if (!fault.empty() && invalid++ == 0) first = fault;
  }
  run.add(
      {.name = name, .value = static_cast<double>(invalid), .limit = at_most(0), .note = first});
  return {};
}

}  // namespace

Result<void> measure_quality(Run& run) {
  WEIR_TRY(measure_arithmetic(run));
  WEIR_TRY(measure_compressed(run));
  return measure_schemas(run);
}

}  // namespace weir::suite
