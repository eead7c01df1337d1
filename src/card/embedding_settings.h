// EmbeddingSettings: how a model's makers want its hidden states made into an embedding, from the
// files of sentence-transformers beside the weights: modules.json, the pooling module's
// config.json, config_sentence_transformers.json. Without them: the last token's state, normalised.
//
// Threads: a plain value; the reader may run anywhere.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "card/model_files.h"
#include "card/modules.h"

namespace weir::card {

// Which of the hidden states of a prompt, one for each of its tokens, are its embedding.
enum class Pooling : uint8_t {
  kLast,  // The last token's, which alone has seen the whole prompt.
  kMean,  // The mean of all.
  kCls,   // The first token's.
};

struct EmbeddingSettings {
  Pooling pooling = Pooling::kLast;
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
Result<EmbeddingSettings> read_embedding_settings(const ModelFiles& files, const Modules& modules);

}  // namespace weir::card
