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

}  // namespace

Result<GenerationSettings> read_generation_settings(const ModelFiles& files, JsonValue config) {
  constexpr char kFile[] = "generation_config.json";
  GenerationSettings settings;
  WEIR_ASSIGN(const std::optional<JsonDoc> generation, files.read_json(kFile));
  if (generation) {
    const ConfigReader reader(generation->root(), kFile);
    read_numbers(reader, settings);
    settings.eos_ids = eos_of(reader);
    WEIR_TRY(reader.status());
  }
  if (!settings.eos_ids.empty()) return settings;
  const ConfigReader reader(config);
  settings.eos_ids = eos_of(reader);
  if (settings.eos_ids.empty())
    if (const auto text = reader.child("text_config")) settings.eos_ids = eos_of(*text);
  WEIR_TRY(reader.status());
  return settings;
}

}  // namespace weir::card
