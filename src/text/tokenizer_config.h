// TokenizerConfig: what tokenizer_config.json says that a tokenizer is made of where there is no
// tokenizer.json: added tokens, the pattern that cuts texts, which tokens go around a text.
//
// Threads: a plain value.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace weir::text {

struct TokenizerConfig {
  struct Token {
    std::string content;
    bool special = true;
    bool single_word = false, strip_left = false, strip_right = false;
    bool normalised = false;
  };
  using Tokens = std::map<int32_t, Token>;  // By id.

  std::string tokenizer_class;
  std::string pattern;  // `pat_str`, a regular expression; empty: as the class has it.
  Tokens added;         // `added_tokens_decoder`.
  std::optional<bool> add_bos, add_eos;
  std::string bos, eos;  // Empty: none.
  bool legacy = true;    // Of a SentencePiece tokenizer: a space before each stretch of text.

  // An empty text, of a missing file, says nothing.
  static Result<TokenizerConfig> parse(std::string_view json);
  // The id of the added token with this text.
  std::optional<int32_t> find(std::string_view content) const;
};

}  // namespace weir::text
