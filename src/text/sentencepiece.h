// The reader of SentencePiece models (tokenizer.model): a protocol buffer with pieces, scores and
// the rules of normalisation.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_parts.h"

namespace weir::text {

// Unigram and BPE models. Control and user-defined pieces become added tokens, as they do where
// transformers converts such a file; `config` adds to them and says what goes around a text.
Result<TokenizerParts> read_sentencepiece(std::string_view file, const TokenizerConfig& config);

}  // namespace weir::text
