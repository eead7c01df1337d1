// The reader of the tokenizers that GGUF files carry in their metadata.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer_parts.h"

namespace weir::text {

// `json`: an object with the keys of `tokenizer.ggml.` without that prefix: model, pre, tokens,
// token_type, scores, merges, special ids and flags. Byte-level BPE (model gpt2), whose pattern
// `pre` names, SentencePiece's BPE (llama), and BPE of texts with U+2581 for spaces (gemma4).
// An error names the key; of unknown models and patterns it says which are known.
Result<TokenizerParts> read_gguf_tokenizer(std::string_view json);

}  // namespace weir::text
