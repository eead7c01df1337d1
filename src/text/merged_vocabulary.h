// The reader of vocabularies in two files, vocab.json and merges.txt, as transformers writes them
// for tokenizers that compute in Python.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_parts.h"

namespace weir::text {

// `json`: {"vocab": {token: id}, "merges": ["a b", ...]}, both files in one. How texts are cut no
// file says: `config`'s tokenizer_class does, and an error names those known.
Result<TokenizerParts> read_merged_vocabulary(std::string_view json, const TokenizerConfig& config);

}  // namespace weir::text
