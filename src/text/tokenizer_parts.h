// TokenizerParts: a tokenizer whose file is no tokenizer.json: its model, and the rest in the words
// of tokenizer.json. The readers: tiktoken.h, sentencepiece.h, gguf_tokenizer.h,
// merged_vocabulary.h.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "text/bpe.h"
#include "text/tokenizer_config.h"
#include "text/unigram.h"

namespace weir::text {

// A JSON object with `normalizer`, `pre_tokenizer`, `decoder` (each JSON, empty where there is
// none), `added_tokens`, and `post_processor` with the ids that go around a text.
struct TokenizerRest {
  std::string normaliser, pre_tokenizer, decoder;
  TokenizerConfig::Tokens added;
  std::vector<int32_t> before, after;

  std::string json() const;
};

// Texts cut by a regular expression, then as bytes in GPT-2's alphabet.
TokenizerRest byte_level_rest(std::string_view pattern);

struct TokenizerParts {
  std::variant<Bpe, Unigram> model;
  TokenizerRest rest;
};

}  // namespace weir::text
