// RerankSettings: by which tokens a model's makers want it to judge documents. Such a reranker is a
// causal model that answers "yes" or "no"; nothing in its weights tells it from any other, so its
// files say it: sentence-transformers' LogitScore module, vLLM's classifier_from_token in
// config.json.
//
// Threads: a plain value; the reader may run anywhere.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "base/result.h"
#include "card/model_files.h"
#include "card/modules.h"

namespace weir::card {

struct RerankSettings {
  // Each for a document that fits, and for one that does not.
  struct Tokens {
    int32_t yes = 0, no = 0;
  };
  struct Words {
    std::string yes{}, no{};
  };
  // At most one of the two: as ids, or as words.
  std::optional<Tokens> tokens{};
  std::optional<Words> words{};
  // There is a LogitScore module: the chat template gets messages of the roles query and document.
  bool roles = false;
  // Why the model does not rerank, if its makers mean it to.
  std::string refusal{};
};

// A malformed file is an error (kConfig, naming file and key). `config`: config.json.
Result<RerankSettings> read_rerank_settings(const ModelFiles& files, JsonValue config,
                                            const Modules& modules);

}  // namespace weir::card
