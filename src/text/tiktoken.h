// The readers of vocabularies of bytes by rank: tiktoken's files, a token in base64 and its rank a
// line, and Mistral's tekken.json.
//
// Threads: pure functions.
#pragma once

#include <string_view>

#include "base/result.h"
#include "text/tokenizer_config.h"
#include "text/tokenizer_parts.h"

namespace weir::text {

// The pattern is `config`'s, or that of its tokenizer_class; an error names the classes known.
Result<TokenizerParts> read_tiktoken(std::string_view file, const TokenizerConfig& config);

Result<TokenizerParts> read_tekken(std::string_view json);

}  // namespace weir::text
