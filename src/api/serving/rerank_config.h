// RerankConfig: whether a model judges documents by the word that it would say next, and how it is
// asked: what the model's files say of it (card/rerank_settings.h), or --reranker.
//
// Threads: a plain value.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "card/rerank_settings.h"
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
// there is none. A choice that the vocabulary cannot fulfil is an error.
Result<RerankConfig> rerank_config(const card::RerankSettings& made,
                                   const text::Tokenizer& tokenizer, std::string_view chat_template,
                                   std::string_view choice);

}  // namespace weir::api
