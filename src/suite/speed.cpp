// speed: prefill and decode without scheduler and network, by `weir bench` in a process of its own.
#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "suite/child.h"
#include "suite/json_value.h"
#include "suite/parts.h"

namespace weir::suite {

namespace {

// A build that is so much slower than the older report's is a regression (product goals: 90 %).
constexpr double kTolerance = 0.1;

struct Shape {
  std::vector<int32_t> prompts, batches, depths;
  int32_t repetitions = 0;
};

Shape shape_of(bool quick) {
  if (quick) return {{512, 2000}, {1, 8, 32}, {8, 1024}, 5};
  return {{512, 2048, 8192}, {1, 2, 4, 8, 16, 32}, {8, 4096, 16384}, 5};
}
// Tokens decoded in one measurement.
constexpr int32_t kDecode = 64;

std::string list_of(const std::vector<int32_t>& numbers) {
  std::string text;
  for (const int32_t number : numbers)
    text.append(text.empty() ? "" : ",").append(std::to_string(number));
  return text;
}

std::string decode_name(int32_t batch, int32_t depth) {
  return "decode of " + std::to_string(batch) + " at depth " + std::to_string(depth);
}

struct Asked {
  int32_t prompt = 0;
  std::vector<int32_t> batches;
  int32_t depth = 0;
  int32_t decode = kDecode;
};

Result<JsonDoc> bench(const Run& run, const Asked& asked, int32_t repetitions) {
  std::vector<std::string> words = words_passed_on(run.options(), Command::kBench);
  words.insert(words.begin(), "bench");
  words.insert(
      words.end(),
      {"--json", "--prompt=" + std::to_string(asked.prompt), "--batch=" + list_of(asked.batches),
       "--depth=" + std::to_string(asked.depth), "--decode=" + std::to_string(asked.decode),
       "--repetitions=" + std::to_string(repetitions)});
  WEIR_ASSIGN(const std::string output, output_of(words));
  return JsonDoc::parse(output);
}

// Of the repetitions the quickest: what others take of the machine only makes them slower.
void add_speed(Run& run, std::string name, JsonValue from) {
  run.add({.name = std::move(name),
           .value = value_or(from["high"], 0.0),
           .unit = "tokens/s",
           .better = Better::kMore,
           .tolerance = kTolerance});
}

std::string prefill_name(int32_t prompt) { return "prefill of " + std::to_string(prompt); }

Result<void> measure_prefill(Run& run, int32_t prompt, int32_t repetitions) {
  // A decode of one token beside it, for which the bench asks at least.
  WEIR_ASSIGN(const JsonDoc doc,
              bench(run, {.prompt = prompt, .batches = {1}, .depth = 1, .decode = 1}, repetitions));
  JsonValue prefill;
  if (doc.root()["prefill"].get(prefill) == simdjson::SUCCESS)
    add_speed(run, prefill_name(prompt), prefill);
  return {};
}

Result<void> measure_decode(Run& run, int32_t depth, const std::vector<int32_t>& batches,
                            int32_t repetitions) {
  WEIR_ASSIGN(const JsonDoc doc,
              bench(run, {.prompt = 1, .batches = batches, .depth = depth}, repetitions));
  JsonArray rows;
  if (doc.root()["decode"].get(rows) != simdjson::SUCCESS)
    return fail(ErrorCode::kIo,
                "weir bench --json: expected 'decode'; found " + json_excerpt(doc.root()));
  for (const JsonValue row : rows) {
    const auto batch = value_or(row["batch"], int64_t{0});
    add_speed(run, decode_name(static_cast<int32_t>(batch), depth), row);
  }
  return {};
}

// Those of which all sequences find room; the others are skipped by name.
std::vector<int32_t> batches_that_fit(Run& run, const std::vector<int32_t>& batches,
                                      int32_t depth) {
  std::vector<int32_t> fitting;
  const int64_t tokens = run.model().kv_tokens;
  for (const int32_t batch : batches) {
    const int64_t needed = int64_t{batch} * (depth + kDecode);
    if (tokens == 0 || needed <= tokens)
      fitting.push_back(batch);
    else
      run.skip(decode_name(batch, depth), "there is memory for " + std::to_string(tokens) +
                                              " tokens, of " + std::to_string(needed));
  }
  return fitting;
}

}  // namespace

Result<void> measure_speed(Run& run) {
  if (!run.needs_inside("prefill and decode")) return {};
  WEIR_TRY(run.stop_server());
  const Shape shape = shape_of(run.quick());
  for (const int32_t prompt : shape.prompts) {
    if (!run.needs_context(prefill_name(prompt), prompt)) continue;
    run.say(prefill_name(prompt));
    WEIR_TRY(measure_prefill(run, prompt, shape.repetitions));
  }
  for (const int32_t depth : shape.depths) {
    const std::string name = "decode at depth " + std::to_string(depth);
    if (!run.needs_context(name, int64_t{depth} + kDecode)) continue;
    const std::vector<int32_t> batches = batches_that_fit(run, shape.batches, depth);
    if (batches.empty()) continue;
    run.say(name);
    WEIR_TRY(measure_decode(run, depth, batches, shape.repetitions));
  }
  return {};
}

}  // namespace weir::suite
