#include "card/generation_settings.h"

#include <algorithm>
#include <string>
#include <utility>

#include "card/config_reader.h"

namespace weir::card {

namespace {

// A token id or a list of them.
std::vector<int32_t> eos_of(const ConfigReader& reader) { return reader.ints("eos_token_id", 0); }

void read_numbers(const ConfigReader& reader, GenerationSettings& out) {
  out.temperature = reader.number("temperature", 0, 100);
  if (reader.has("top_k"))  // -1 stands for all, in some files.
    out.top_k = std::max(0, reader.int_or("top_k", 0, -1));
  out.top_p = reader.number("top_p", 0, 1);
  out.min_p = reader.number("min_p", 0, 1);
  out.typical_p = reader.number("typical_p", 0, 1);
  out.repetition_penalty = reader.number("repetition_penalty", 0.01, 100);
  // do_sample false means greedy, as transformers has it. (vLLM and llama-server do not read it.)
  // Absent it means false to transformers too, but most makers that leave it out expect a server to
  // sample, so only the written word counts.
  if (!reader.bool_or("do_sample", true)) out.temperature = 0;
}

void read_speech(const ConfigReader& reader, SpeechSettings& out) {
  constexpr int kLayersMax = 1024, kHeadsMax = 1024;
  if (reader.has("suppress_tokens")) out.suppressed = reader.ints("suppress_tokens", 0);
  if (reader.has("begin_suppress_tokens"))
    out.suppressed_first = reader.ints("begin_suppress_tokens", 0);
  out.initial_timestamp_max =
      reader.int_or("max_initial_timestamp_index", out.initial_timestamp_max, 0);
  const std::optional<JsonValue> heads = reader.value("alignment_heads");
  if (!heads) return;
  JsonArray array;
  const auto wrong = [&] {
    out.alignment_heads.clear();
    reader.wrong_type("alignment_heads", "a list of [layer, head]", *heads);
  };
  if (heads->get(array) != simdjson::SUCCESS) return wrong();
  for (const JsonValue each : array) {
    JsonArray pair;
    int64_t layer = -1, head = -1;
    if (each.get(pair) != simdjson::SUCCESS || pair.size() != 2 ||
        pair.at(0).get(layer) != simdjson::SUCCESS || pair.at(1).get(head) != simdjson::SUCCESS ||
        layer < 0 || layer >= kLayersMax || head < 0 || head >= kHeadsMax)
      return wrong();
    out.alignment_heads.emplace_back(static_cast<int32_t>(layer), static_cast<int32_t>(head));
  }
}

}  // namespace

Result<GenerationSettings> read_generation_settings(const ModelFiles& files, JsonValue config) {
  constexpr char kFile[] = "generation_config.json";
  GenerationSettings settings;
  WEIR_ASSIGN(const std::optional<JsonDoc> generation, files.read_json(kFile));
  if (generation) {
    const ConfigReader reader(generation->root(), kFile);
    read_numbers(reader, settings);
    read_speech(reader, settings.speech);
    settings.eos_ids = eos_of(reader);
    WEIR_TRY(reader.status());
  }
  if (!settings.eos_ids.empty()) return settings;
  const ConfigReader reader(config);
  settings.eos_ids = eos_of(reader);
  for (const char* key : {"llm_config", "text_config"})
    if (const auto text = settings.eos_ids.empty() ? reader.child(key) : std::nullopt)
      settings.eos_ids = eos_of(*text);
  WEIR_TRY(reader.status());
  return settings;
}

}  // namespace weir::card
