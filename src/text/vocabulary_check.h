// Where a tokenizer's ids meet the model's vocabulary: an id at or above it has no row in the
// embedding. Files that disagree are common (tokens added after a vocabulary that was not
// enlarged), so this is the world's error and not ours.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/result.h"
#include "text/tokenizer.h"

namespace weir::text {

// An error that names the first token that the model lacks.
Result<void> check_tokens(std::span<const int32_t> ids, const Tokenizer& tokenizer,
                          int32_t vocab_size);

// The tokenizer as a whole: an error if it surrounds texts by a token that the model lacks, because
// then no text can be encoded; else what to warn of, empty if every token has its row.
Result<std::string> check_vocabulary(const Tokenizer& tokenizer, int32_t vocab_size);

}  // namespace weir::text
