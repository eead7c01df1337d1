// matrix: a model's speed and memory by where its experts are, how keys and values are stored, and
// how long the prompt is; each row a server of its own.
#include <algorithm>
#include <string>
#include <vector>

#include "base/json.h"
#include "suite/child.h"
#include "suite/json_value.h"
#include "suite/parts.h"

namespace weir::suite {

namespace {

constexpr int32_t kAnswerTokens = 64;

struct Place {
  const char* name;
  std::vector<std::string> words;
};

struct KvType {
  const char* name;
  const char* word;
  bool may_be_refused;  // A model may keep nothing that could be compressed.
};
constexpr KvType kKvTypes[] = {{"f16", "--kv-cache=f16", false}, {"tq4", "--kv-cache=tq4", true}};

std::string row_name(const Place& place, const KvType& kv, int32_t tokens) {
  return std::string(place.name) + ", " + kv.name + ", " + std::to_string(tokens);
}

Result<bool> has_experts(const Run& run) {
  std::vector<std::string> words = words_passed_on(run.options(), Command::kInfo);
  words.insert(words.begin(), "info");
  words.insert(words.end(), {"--stream-experts", "--json"});
  WEIR_ASSIGN(const std::string output, output_of(words));
  WEIR_ASSIGN(const JsonDoc doc, JsonDoc::parse(output));
  return value_or(doc.root()["footprint"]["experts"], int64_t{0}) > 0;
}

Result<void> measure_row(Run& run, const Server& server, const std::string& name, int32_t count,
                         int32_t tokens) {
  run.say(name);
  const Answer answer =
      server.endpoint().ask(completion({.prompt = words(count, static_cast<uint64_t>(tokens)),
                                        .max_tokens = kAnswerTokens,
                                        .stream = true}));
  if (!answer.error.empty()) {
    run.add({.name = name, .failure = answer.error});
    return {};
  }
  const double first = first_text_of(answer);
  const int64_t output = usage_of(answer, "completion_tokens");
  run.add({.name = name + ": first token", .value = 1000 * first, .unit = "ms"});
  if (output > 1 && answer.seconds > first)
    run.add({.name = name + ": decode",
             .value = static_cast<double>(output - 1) / (answer.seconds - first),
             .unit = "tokens/s"});
  run.add({.name = name + ": most resident",
           .value = static_cast<double>(server.usage().resident_bytes_max) / (1 << 20),
           .unit = "MiB"});
  return {};
}

Result<void> measure_place(Run& run, const Place& place, const KvType& kv, double per_word) {
  std::vector<int32_t> lengths;
  for (const int32_t tokens : {512, 40'000, 100'000}) {
    const std::string name = row_name(place, kv, tokens);
    if (!run.needs_context(name, tokens + kAnswerTokens)) continue;
    if (run.quick() && tokens > 512)
      run.skip(name, "not with --quick");
    else
      lengths.push_back(tokens);
  }
  if (lengths.empty()) return {};
  std::vector<std::string> words = place.words;
  words.emplace_back(kv.word);
  Result<Server> server = Server::start(run.options(), words);
  if (!server && kv.may_be_refused) {
    run.skip(std::string(place.name) + ", " + kv.name, server.error().message);
    return {};
  }
  if (!server) return tl::unexpected(server.error());
  for (const int32_t tokens : lengths)
    WEIR_TRY(measure_row(run, *server, row_name(place, kv, tokens),
                         static_cast<int32_t>(tokens / per_word), tokens));
  return server->stop();
}

}  // namespace

Result<void> measure_matrix(Run& run) {
  if (!run.needs_inside("experts and types of keys")) return {};
  WEIR_ASSIGN(const double per_word, run.tokens_per_word());
  WEIR_TRY(run.stop_server());
  WEIR_ASSIGN(const bool experts, has_experts(run));
  for (const Place& place : {Place{"resident", {}}, Place{"streamed", {"--stream-experts"}}}) {
    if (!place.words.empty() && !experts) {
      run.skip(place.name, "the model has no experts that can be read from disk");
      continue;
    }
    for (const KvType& kv : kKvTypes) WEIR_TRY(measure_place(run, place, kv, per_word));
  }
  return {};
}

}  // namespace weir::suite
