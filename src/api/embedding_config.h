// EmbeddingConfig: how a model's makers want its hidden states made into an embedding, from the
// files of sentence-transformers beside the checkpoint: modules.json, the pooling module's
// config.json, config_sentence_transformers.json. Without them: the last token's state, normalised.
//
// Threads: a plain value.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/result.h"
#include "sched/request.h"

namespace weir::api {

struct EmbeddingConfig {
  sched::Pooling pooling = sched::Pooling::kLast;
  bool normalise = true;
  // Instructions that stand before an input, by the names that requests may give (prompt_name), and
  // the one that stands there otherwise.
  std::vector<std::pair<std::string, std::string>> prompts{};
  std::string default_prompt{};
  // Why embeddings of this model would not be what its makers mean; empty: they are.
  std::string refusal{};
};

// A missing file is no error, a malformed one is (kConfig, naming file and key). What the files ask
// for and this server does not do (another pooling, a further layer) becomes the refusal.
Result<EmbeddingConfig> read_embedding_config(const ModelFiles& files);

}  // namespace weir::api
