#include "card/rerank_settings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "card/config_reader.h"

namespace weir::card {

namespace {

Result<void> read_logit_score(const ModelFiles& files, const std::string& folder,
                              RerankSettings& settings) {
  const std::string file = (folder.empty() ? "1_LogitScore" : folder) + "/config.json";
  WEIR_ASSIGN(const std::optional<JsonDoc> doc, files.read_json(file));
  if (!doc) return fail(ErrorCode::kConfig, file + ": missing, though modules.json names it");
  const ConfigReader reader(doc->root(), file);
  const int32_t yes = reader.int_or("true_token_id", -1, 0);
  const int32_t no = reader.int_or("false_token_id", -1, 0);
  WEIR_TRY(reader.status());
  settings.roles = true;
  if (yes >= 0 && no >= 0)
    settings.tokens = {yes, no};
  else
    settings.refusal = file + " names " + (yes >= 0 ? "no false_token_id" : "no true_token_id") +
                       "; this server scores by the odds of two tokens";
  return {};
}

}  // namespace

Result<RerankSettings> read_rerank_settings(const ModelFiles& files, JsonValue config,
                                            const Modules& modules) {
  RerankSettings settings;
  if (modules) {
    const auto module = std::ranges::find(*modules, "LogitScore", &Module::type);
    if (module != modules->end()) {
      WEIR_TRY(read_logit_score(files, module->path, settings));
      return settings;
    }
  }
  constexpr char kKey[] = "classifier_from_token";
  const ConfigReader reader(config);
  std::vector<std::string> words = reader.strings(kKey);  // vLLM's: that for 0, then that for 1.
  if (reader.has(kKey) && words.size() != 2)
    reader.wrong_type(kKey, "two words", *reader.value(kKey));
  WEIR_TRY(reader.status());
  if (words.size() == 2) settings.words = {std::move(words[1]), std::move(words[0])};
  return settings;
}

}  // namespace weir::card
