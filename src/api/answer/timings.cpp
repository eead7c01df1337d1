#include "api/answer/timings.h"

#include "base/json.h"

namespace weir::api {

namespace {

// Nothing per nothing is nothing: JSON has no infinity.
double ratio(double a, double b) { return b > 0 ? a / b : 0; }

void write_phase(JsonWriter& json, const std::string& name, int64_t tokens, double ms) {
  const auto count = static_cast<double>(tokens);
  json.field(name + "_n", tokens).field(name + "_ms", ms);
  json.field(name + "_per_token_ms", ratio(ms, count));
  json.field(name + "_per_second", ratio(1000 * count, ms));
}

}  // namespace

void append_timings(std::string& out, const Timings& timings) {
  out.append(R"("timings":)");
  JsonWriter json(out);
  json.begin_object().field("cache_n", timings.cached);
  write_phase(json, "prompt", timings.prompt, timings.prompt_ms);
  write_phase(json, "predicted", timings.predicted, timings.predicted_ms);
  if (timings.drafted > 0)
    json.field("draft_n", timings.drafted).field("draft_n_accepted", timings.draft_right);
  json.end_object();
}

void append_progress(std::string& out, const PromptProgress& progress) {
  out.append(R"("prompt_progress":)");
  JsonWriter json(out);
  json.begin_object().field("total", progress.total).field("cache", progress.cached);
  json.field("processed", progress.processed).field("time_ms", progress.time_ms).end_object();
}

}  // namespace weir::api
