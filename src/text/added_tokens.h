// AddedTokens: tokenizer.json's `added_tokens`: texts that are one token wherever they stand,
// whatever the model would make of them. Special ones (<|im_end|>) steer the model.
//
// Threads: immutable after parse(); find() may be called from any thread at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/normaliser.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace weir::text {

class AddedTokens {
 public:
  // A stretch of a text: an added token, or what lies between two.
  struct Part {
    size_t begin = 0, end = 0;
    std::optional<int32_t> id = {};
  };

  // `vocabulary` is the model's; a token's id must agree with it.
  static Result<AddedTokens> parse(std::optional<JsonValue> json, const Vocabulary& vocabulary,
                                   const Normaliser& normaliser);

  // Cuts a text at the tokens that are sought before (`normalised` false) or after normalisation.
  // Leftmost first, the longest of several. Special ones count only if `special`.
  void find(std::string_view text, bool normalised, bool special, std::vector<Part>& parts) const;
  bool has(bool normalised) const { return !tries_[normalised ? 1 : 0].empty(); }

  std::optional<int32_t> find_id(std::string_view content) const;
  // Empty for ids that are not of added tokens.
  std::string_view content(int32_t id) const;
  bool contains(int32_t id) const { return by_id_.contains(id); }
  bool is_special(int32_t id) const;
  int32_t id_end() const { return id_end_; }  // Largest id + 1; 0 if there are none.

 private:
  struct Token {
    std::string content;
    int32_t id = 0;
    bool special = false;
    bool single_word = false;
    bool strip_left = false, strip_right = false;
    bool normalised = false;
  };

  static Result<Token> parse_token(JsonValue json, const Vocabulary& vocabulary);
  Result<void> add(Token token);
  Result<void> build_tries(const Normaliser& normaliser);

  std::vector<Token> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, size_t> by_content_;
  // Index 0: sought in the text as it comes; 1: in its normal form. Values are indices of tokens_.
  // Tries and not one automaton: leftmost-longest matching begins anew after each match anyway,
  // and most places end at the root, by one look-up of their byte.
  Trie tries_[2];
  int32_t id_end_ = 0;
};

}  // namespace weir::text
