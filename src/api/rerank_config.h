// RerankConfig: whether a model judges documents by the word that it would say next, and how it is
// asked. Such a reranker is a causal model that answers "yes" or "no"; nothing in its weights tells
// it from any other, so its files say it: sentence-transformers' LogitScore module, vLLM's
// classifier_from_token in config.json. --reranker overrules them.
//
// Threads: a plain value.
#pragma once

#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "text/tokenizer.h"

namespace weir::api {

struct RerankConfig {
  // The tokens for a document that fits and for one that does not; -1: the model is no reranker.
  int32_t yes = -1, no = -1;
  // The chat template gets messages of the roles query and document, as sentence-transformers
  // gives it; else they are parts of a user's message.
  bool roles = false;
  // Why the model does not rerank, if its makers mean it to.
  std::string refusal{};

  bool reranks() const { return yes >= 0; }
};

// `choice`: "auto", "yes-no" or "none", as --reranker has it. `chat_template`: its source; empty:
// there is none. A malformed file is an error (kConfig, naming file and key), as is a choice that
// the vocabulary cannot fulfil.
Result<RerankConfig> read_rerank_config(const ModelFiles& files, const text::Tokenizer& tokenizer,
                                        std::string_view chat_template, std::string_view choice);

}  // namespace weir::api
