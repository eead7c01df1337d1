// Unigram: the most probable sequence of tokens for one word (Viterbi), as SentencePiece's unigram
// model and the Hugging Face crate compute it.
//
// Threads: immutable after parse(); encode() may be called from any thread, each with its Scratch.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"
#include "text/trie.h"
#include "text/vocabulary.h"

namespace weir::text {

class Unigram {
 public:
  struct Node {
    double score = 0;  // Of the best path that ends here.
    size_t begin = 0;  // Where its last token begins.
    int32_t id = -1;   // That token; -1: no path yet.
  };
  // Memory that encode() reuses.
  struct Scratch {
    std::vector<Node> nodes;
    std::vector<int32_t> backwards;
  };

  // A piece of a SentencePiece model; its id is its place in the list.
  struct Piece {
    std::string_view text;
    double score = 0;
    bool sought = false;  // In texts; not control, unknown and byte pieces.
  };

  // tokenizer.json's `model`.
  static Result<Unigram> parse(JsonValue json);
  // REQUIRES: `unknown` is the id of a piece.
  static Result<Unigram> from_pieces(std::span<const Piece> pieces, int32_t unknown,
                                     bool byte_fallback);

  const Vocabulary& vocabulary() const { return vocabulary_; }
  // Appends the ids of a word. REQUIRES: valid UTF-8.
  void encode(std::string_view word, Scratch& scratch, std::vector<int32_t>& ids) const;

 private:
  // Puts the ids of a token's or unknown stretch's text, last first.
  void push_backwards(std::string_view text, std::vector<int32_t>& backwards) const;

  Vocabulary vocabulary_;
  std::vector<double> scores_;  // By id.
  Trie trie_;
  std::array<int32_t, 256> byte_ids_;  // <0x00> and following; -1: none.
  double unknown_score_ = 0;
  int32_t unknown_ = -1;
  bool byte_fallback_ = false;
};

}  // namespace weir::text
